package import Foundation
package import HubCore
package import NotificationHubs

/// Registrations that clients write themselves, and lists of all.
extension SimulatedStore {
  package func reserveRegistrationID(hub: Hub.ID) async throws -> String {
    try await write(ifUnclear: .again) { [self] state in
      try state.requireHub(hub)
      return coding.id(of: newNumber(&state), hub: hub)
    }
  }

  package func createRegistration(
    _ draft: RegistrationDraft, hub: Hub.ID, at: Date
  ) async throws -> StoredRegistration {
    // The number comes first, so that a creation whose end is not known can be looked for.
    let number = try await write(ifUnclear: .again) { [self] in newNumber(&$0) }
    return try await write { [self] state in
      try state.requireHub(hub)
      return insert(draft, as: number, publicID: nil, hub: hub, at: at, &state)
    }
  }

  package func putRegistration(
    _ id: String, _ draft: RegistrationDraft, hub: Hub.ID, condition: ETagCondition, at: Date
  ) async throws -> RegistrationWrite {
    try await write { [self] state in
      try state.requireHub(hub)
      guard let row = live(id, hub: hub, at: at, &state) else {
        guard condition == .none else { return .missing }
        let known = coding.number(in: id, hub: hub)
        if let known {
          // A database of which this one is an older copy may have given it out.
          let next = state.sequences.devices[.registration] ?? 1
          state.sequences.devices[.registration] = max(next, (known >> 8) + 1)
        }
        let number = known ?? newNumber(&state, slot: state.slot(of: id))
        let publicID = known == nil ? id : nil
        return .done(insert(draft, as: number, publicID: publicID, hub: hub, at: at, &state))
      }
      guard condition.holds(for: String(row.etag)) else { return .stale }
      var (changed, draft) = (row, draft)
      // One of an installation keeps its implicit tags.
      if row.installation != 0 { draft.tags = row.draft.tags.filter(\.isImplicit) + draft.tags }
      changed.rewrite(draft, byClient: true, at: at, commit: state.commit)
      state.removed[number: row.number] = nil
      state.put(changed)
      state.markShared(changed.device)
      state.forgetWrite(of: row.installation)
      return .done(changed.stored(coding))
    }
  }

  package func deleteRegistration(
    _ id: String, hub: Hub.ID, condition: ETagCondition, at: Date
  ) async throws -> RegistrationWrite {
    try await write { [self] state in
      guard state.hasHub(hub) else { return .missing }
      guard let row = live(id, hub: hub, at: at, &state) else {
        state.removed.removeAll { $0.row.hub == hub && $0.row.id(coding) == id }
        return .missing
      }
      guard condition.holds(for: String(row.etag)) else { return .stale }
      remove(row, &state)
      return .done(row.stored(coding))
    }
  }

  package func registration(
    _ id: String, hub: Hub.ID, asOf: Date
  ) async throws -> StoredRegistration? {
    try await read { [self] state in
      guard let row = find(id, hub: hub, state), !row.isOver(at: asOf) else { return nil }
      return row.stored(coding)
    }
  }

  package func registrations(
    _ query: RegistrationQuery, hub: Hub.ID, asOf: Date, after: RegistrationID, limit: Int
  ) async throws -> RegistrationPage {
    try await read { [self] state in
      var page = RegistrationPage()
      guard limit > 0 else { return page }
      for row in state.registrations.after(after) where row.hub == hub {
        guard !row.isOver(at: asOf), query.matches(row) else { continue }
        if page.isFull(limit) {
          page.hasMore = true
          break
        }
        page.append(row.stored(coding))
      }
      return page
    }
  }

  package func registrationNames(
    _ numbers: [RegistrationID], hub: Hub.ID
  ) async throws -> [RegistrationID: String] {
    try await read { [self] state in
      var names: [RegistrationID: String] = [:]
      for number in numbers { names[number] = state.registration(number, hub: hub)?.id(coding) }
      return names
    }
  }

  package func devices(
    _ filter: RegistrationFilter, hub: Hub.ID, asOf: Date, limit: Int
  ) async throws -> FoundDevices {
    try await read { [self] state in
      var found = FoundDevices()
      let live = state.registrations.filter { $0.hub == hub && filter.mayMean($0) }
      // Of a device whose handle is dead only the installation is left.
      let removed = state.removed.map(\.row).filter { $0.hub == hub && filter.mayMean($0) }
      let installations = Set((live + removed).map(\.installation)).subtracting([0]).sorted()
      let kept = installations.prefix(limit)
      let others = state.registrations(of: Set(kept)).map(\.number)
      let numbers = Set(live.prefix(limit + 1).map(\.number) + others).sorted()
      found.hasMore = installations.count > limit || numbers.count > limit
      var names: [Int64: String] = [:]
      for row in kept.compactMap({ state.installations[number: $0] })
      where filter.matches(row.installation) {
        names[row.number] = row.installation.installationID
        if row.installation.expirationTime.map({ $0 > asOf }) ?? true {
          found.append(row.installation)
        }
      }
      found.sortInstallations()
      for row in numbers.prefix(limit).compactMap({ state.registrations[number: $0] })
      where !row.isOver(at: asOf)
        && filter.matches(platform: row.draft.platform, channel: row.draft.channel)
      {
        found.append(
          .init(
            stored: row.stored(coding), installationID: names[row.installation],
            environment: row.environment, confirmedAt: row.confirmedAt))
      }
      return found
    }
  }

  // MARK: Rows

  /// - Parameter slot: `nil` for any, when the id follows from the number.
  func newNumber(_ state: inout State, slot: Int64? = nil) -> RegistrationID {
    let sequential = nextNumber(.registration, &state)
    return state.number(sequential, slot: slot ?? state.slot(ofNumber: sequential))
  }

  /// The registration that clients call so, its time over or not.
  private func find(_ id: String, hub: Hub.ID, _ state: State) -> RegistrationRow? {
    if let number = coding.number(in: id, hub: hub) { return state.registration(number, hub: hub) }
    return state.registrations.first { $0.publicID == id && $0.hub == hub }
  }

  /// As ``find(_:hub:_:)``; one whose time is over is removed.
  private func live(_ id: String, hub: Hub.ID, at: Date, _ state: inout State) -> RegistrationRow? {
    guard let row = find(id, hub: hub, state) else { return nil }
    guard row.isOver(at: at) else { return row }
    remove(row, &state)
    return nil
  }

  private func remove(_ row: RegistrationRow, _ state: inout State) {
    state.removed[number: row.number] = nil
    state.remove(row)
  }

  private func insert(
    _ draft: RegistrationDraft, as number: RegistrationID, publicID: String?, hub: Hub.ID,
    at: Date, _ state: inout State
  ) -> StoredRegistration {
    let row = RegistrationRow(
      number: number, hub: hub, installation: 0, publicID: publicID, draft: draft, at: at,
      commit: state.commit)
    state.put(row)
    state.markShared(row.device)
    return row.stored(coding)
  }
}

extension RegistrationQuery {
  fileprivate func matches(_ row: RegistrationRow) -> Bool {
    switch self {
    case .all: true
    case .tag(let tag): row.carries(tag)
    case .device(let filter):
      filter.matches(platform: row.draft.platform, channel: row.draft.channel)
    }
  }
}

extension RegistrationFilter {
  /// Whether it is of a device that has one of the handles, or another one at FCM.
  fileprivate func mayMean(_ row: RegistrationRow) -> Bool {
    let (hub, own) = (row.hub, row.draft.platform)
    return platform ?? own == own
      && handles.contains { PushDevice(hub: hub, platform: own, handle: $0) == row.device }
  }

  /// Whether the device, or one of its tiles, has one of the handles.
  fileprivate func matches(_ installation: Installation) -> Bool {
    matches(platform: installation.platform, channel: installation.pushChannel)
      || installation.secondaryTiles.values.contains {
        matches(platform: installation.platform, channel: .handle($0.pushChannel))
      }
  }
}
