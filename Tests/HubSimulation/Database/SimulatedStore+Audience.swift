package import Foundation
package import HubCore
package import NotificationHubs
import Synchronization

/// The audience of a query: its targets, their number, a sample.
extension SimulatedStore {
  package func targets(
    _ query: AudienceQuery, after: RegistrationID, limit: Int
  ) async throws -> TargetPage {
    try await read { [self] state in
      guard state.hasHub(query.hub), limit > 0,
        let part = AudiencePart(number: query.part, slots: state.slots)
      else { return TargetPage() }
      let acceptance = query.notification.flatMap {
        state.notification($0, hub: query.hub)?.acceptance
      }
      let members = state.registrations.after(after).lazy.filter {
        query.reaches($0) && part.has($0, query, acceptance, state)
      }.prefix(limit + 1)
      let rows = Array(members)
      var page = page(of: Array(rows.prefix(limit)), state)
      if rows.count > limit { page.next = rows[limit - 1].number }
      // Those of a slot came to share a handle after the acceptance, if at all: others that have it
      // may have been passed over.
      if query.kind != .template, query.part == 0 || part == .sharedHandles {
        state.markDuplicates(in: &page, query, after: after, acceptance)
      }
      return page
    }
  }

  package func count(_ query: AudienceQuery) async throws -> Int {
    try await read { state in
      state.hasHub(query.hub) ? state.registrations.count { query.reaches($0) } : 0
    }
  }

  package func sample(_ query: AudienceQuery, limit: Int) async throws -> TargetPage {
    try await read { [self] state in
      guard state.hasHub(query.hub), limit > 0 else { return TargetPage() }
      var members = state.registrations.filter { query.reaches($0) }
      for place in 0..<min(limit, members.count) {
        members.swapAt(place, place + Int(random() % UInt64(members.count - place)))
      }
      return page(of: members.prefix(limit).sorted { $0.number < $1.number }, state)
    }
  }

  package func counts(
    of expression: TagExpression?, hub: Hub.ID, asOf: Date
  ) async throws -> AudienceCounts {
    try await read { state in
      var counts = AudienceCounts()
      guard state.hasHub(hub) else { return counts }
      for row in state.registrations
      where row.hub == hub && !row.isOver(at: asOf) && expression?.chooses(row) ?? true {
        if case .template(_, let name) = row.draft.kind {
          counts.templates[.init(platform: row.draft.platform, name: name ?? ""), default: 0] += 1
        } else {
          counts.native[row.draft.platform, default: 0] += 1
        }
      }
      return counts
    }
  }

  /// Lays rows out as a page.
  func page(of rows: [RegistrationRow], _ state: State) -> TargetPage {
    var page = TargetPage()
    page.revision = StoreVersion(rawValue: state.commit)
    var indexes: [PushTemplate: Int32] = [:]
    for row in rows {
      var index: Int32 = -1
      if let template = row.template {
        index = indexes[template] ?? Int32(page.templates.count)
        if indexes.updateValue(index, forKey: template) == nil {
          page.templates.append(StoredTemplate(id: number(of: template), template: template))
        }
      }
      var variables: Int32 = -1
      if !row.draft.pushVariables.isEmpty {
        variables = Int32(page.pushVariables.count)
        page.pushVariables.append(row.draft.pushVariables)
      }
      let start = page.handles.count
      page.handles += Array(row.handle.utf8)
      page.targets.append(
        Target(
          registration: row.number, handle: start..<page.handles.count,
          platform: row.draft.platform, template: index, variables: variables,
          confirmedAt: row.confirmedAt.milliseconds, isDuplicate: false,
          environment: row.environment))
    }
    return page
  }

  /// By which this process keeps what is compiled from it.
  private func number(of template: PushTemplate) -> Int64 {
    process.withLock { process in
      let number = process.templates[template] ?? Int64(process.templates.count + 1)
      process.templates[template] = number
      return number
    }
  }
}

extension AudienceQuery {
  func reaches(_ row: RegistrationRow) -> Bool {
    guard row.hub == hub, !row.isOver(at: asOf) else { return false }
    switch kind {
    case .native(let platform):
      guard row.isNative, row.draft.platform == platform else { return false }
    case .template: if row.isNative { return false }
    }
    return expression?.chooses(row) ?? true
  }
}

extension AudiencePart {
  /// Whether a registration is read with this part.
  func has(
    _ row: RegistrationRow, _ query: AudienceQuery, _ acceptance: Int64?,
    _ state: SimulatedDatabase.State
  ) -> Bool {
    switch self {
    case .whole: return true
    case .slot(let slot):
      guard state.slot(ofNumber: row.number) == slot else { return false }
      // Those that were known to share a handle by then are read by one reader.
      guard query.kind != .template, let acceptance, let since = row.sharedSince else {
        return true
      }
      return since > acceptance
    case .sharedHandles:
      guard let since = row.sharedSince else { return false }
      return acceptance.map { since <= $0 } ?? true
    }
  }
}

extension TagExpression {
  func chooses(_ row: RegistrationRow) -> Bool {
    switch self {
    case .tag(let tag): row.carries(tag)
    case .not(let inner): !inner.chooses(row)
    case .and(let left, let right): left.chooses(row) && right.chooses(row)
    case .or(let left, let right): left.chooses(row) || right.chooses(row)
    }
  }
}

extension RegistrationRow {
  /// Implicit tags are those of installations; nobody else has one.
  func carries(_ tag: Tag) -> Bool {
    let folded = tag.folded
    guard folded.utf8.first == UInt8(ascii: "$") else { return tags.contains(folded) }
    guard installation != 0, folded.hasPrefix("$installationid:{") || folded.hasPrefix("$userid:{")
    else { return false }
    return tags.contains(folded)
  }
}

extension SimulatedDatabase.State {
  /// Marks the targets of a page whose handle a smaller number of the same audience was sent to, or
  /// whose installation of FCM is sent to through another.
  ///
  /// One of an earlier page counts only when nothing has written it since the notification was
  /// accepted: then it was in the audience, with this handle, when its page was read.
  fileprivate func markDuplicates(
    in page: inout TargetPage, _ query: AudienceQuery, after: RegistrationID,
    _ acceptance: Int64?
  ) {
    var sent: Set<PushDevice> = []
    for index in page.targets.indices {
      let number = page.targets[index].registration
      guard let row = registrations[number: number], row.sharedSince != nil else { continue }
      // In rising order of their numbers.
      let holders = registrations.filter { other in
        other.device == row.device && query.reaches(other)
          && acceptance.map { other.written <= $0 } ?? true
      }
      if row.device.isInstallation {
        mark(index, of: holders, in: &page)
      } else {
        page.targets[index].isDuplicate =
          !sent.insert(row.device).inserted || holders.contains { $0.number <= after }
      }
    }
  }

  /// Marks a target that is an installation of FCM: the registration written last is sent to.
  private func mark(_ index: Int, of holders: [RegistrationRow], in page: inout TargetPage) {
    let number = page.targets[index].registration
    let members = holders.sorted { ($0.written, $0.number) > ($1.written, $1.number) }
    guard let first = members.first else { return }
    guard first.number == number else {
      // One that was written meanwhile is passed over only when the device was sent to already.
      page.targets[index].isDuplicate =
        first.number < number || members.contains { $0.number == number }
      return
    }
    let others = members.filter { $0.handle != first.handle }
    guard !others.isEmpty else { return }
    page.twins[number] = others.suffix(TargetPage.twinLimit).map { other in
      let start = page.handles.count
      page.handles += Array(other.handle.utf8)
      return HandleTwin(registration: other.number, handle: start..<page.handles.count)
    }
  }
}
