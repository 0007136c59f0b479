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
      guard state.hasHub(query.hub), limit > 0 else { return TargetPage() }
      let acceptance = query.notification.flatMap {
        state.notification($0, hub: query.hub)?.acceptance
      }
      let rows = state.registrations.first(limit + 1, after: after) {
        query.reaches($0) && query.reads($0, acceptance, slots: state.slots)
      }
      var page = page(of: Array(rows.prefix(limit)), state)
      if rows.count > limit { page.next = rows[limit - 1].number }
      // Those of a slot came to share a handle after the acceptance, if at all: others that have it
      // may have been passed over.
      if query.kind != .template, [0, state.slots + 1].contains(query.part) {
        state.markDuplicates(in: &page, query, after: after, acceptance)
      }
      return page
    }
  }

  package func count(_ query: AudienceQuery) async throws -> Int {
    try await read { state in state.registrations.count { query.reaches($0) } }
  }

  package func sample(_ query: AudienceQuery, limit: Int) async throws -> TargetPage {
    try await read { [self] state in
      guard limit > 0 else { return TargetPage() }
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
      page.targets.append(
        Target(
          registration: row.number, handle: page.append(row.handle), platform: row.draft.platform,
          template: index, variables: variables, confirmedAt: row.confirmedAt.milliseconds,
          isDuplicate: false, environment: row.environment))
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

extension TargetPage {
  /// - Returns: Where the handle stands.
  mutating func append(_ handle: String) -> Range<Int> {
    let start = handles.count
    handles += Array(handle.utf8)
    return start..<handles.count
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

  /// Whether a registration is read with the query's part. One reader takes those that were known to
  /// share a handle at the acceptance.
  fileprivate func reads(_ row: RegistrationRow, _ acceptance: Int64?, slots: Int) -> Bool {
    let isShared = row.sharedSince.map { $0 <= acceptance ?? .max } ?? false
    return switch part {
    case 0: true
    case 1...slots:
      Int(row.number) & (slots - 1) == part - 1
        && (kind == .template || acceptance == nil || !isShared)
    default: part == slots + 1 && isShared
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
    in page: inout TargetPage, _ query: AudienceQuery, after: RegistrationID, _ acceptance: Int64?
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
    page.twins[number] = others.suffix(TargetPage.twinLimit).map {
      HandleTwin(registration: $0.number, handle: page.append($0.handle))
    }
  }
}
