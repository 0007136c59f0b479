package import Foundation
package import HubCore
package import NotificationHubs

/// Installations, each with the registrations that are derived from it.
extension SimulatedStore {
  package func installation(_ id: String, hub: Hub.ID) async throws -> Installation? {
    try await read { $0.installation(id, hub: hub)?.installation }
  }

  package func putInstallation(
    _ installation: Installation, registrations: [RegistrationDraft],
    request: InstallationRequest?, hub: Hub.ID, at: Date
  ) async throws {
    try await write(ifUnclear: .again) { [self] state in
      try state.requireHub(hub)
      let row = state.installation(installation.installationID, hub: hub)
      if let row, row.isRepeated(by: installation, registrations) {
        for registration in state.registrations(of: [row.number]) {
          state.registrations.change(registration.number) { registration in
            registration.confirmedAt = at.stored
            registration.confirmed = state.commit
          }
        }
      } else {
        // The app has registered again: nothing of before comes back.
        if let row { state.removed.removeAll { $0.row.installation == row.number } }
        write(installation, registrations, over: row, hub: hub, at: at, &state)
      }
    }
  }

  package func updateInstallation(
    _ id: String, hub: Hub.ID, at: Date,
    change: @escaping @Sendable (Installation) throws -> (Installation, [RegistrationDraft])
  ) async throws -> Bool {
    try await write { [self] state in
      try state.requireHub(hub)
      guard let row = state.installation(id, hub: hub) else { return false }
      let (installation, registrations) = try change(row.installation)
      write(installation, registrations, over: row, hub: hub, at: at, &state)
      return true
    }
  }

  package func deleteInstallation(_ id: String, hub: Hub.ID) async throws -> Bool {
    try await write(ifUnclear: .again) { state in
      guard let row = state.installation(id, hub: hub) else { return false }
      state.deleteInstallations([row.number])
      return true
    }
  }

  package func installations(
    _ filter: InstallationFilter, hub: Hub.ID, after: InstallationPosition?, limit: Int
  ) async throws -> InstallationPage {
    try await read { state in
      var page = InstallationPage()
      guard limit > 0 else { return page }
      var cursor = after ?? 0
      for row in state.installations.after(cursor) where row.hub == hub {
        if page.isFull(limit) {
          page.next = cursor
          break
        }
        cursor = row.number
        if filter.matches(row.installation) { page.append(row.installation) }
      }
      return page
    }
  }

  /// Writes an installation and derives its registrations, which keep their numbers as long as they
  /// are the same ones of it.
  private func write(
    _ installation: Installation, _ drafts: [RegistrationDraft], over old: InstallationRow?,
    hub: Hub.ID, at: Date, _ state: inout State
  ) {
    let id = installation.installationID
    let slot = state.slot(of: id)
    let number = old?.number ?? state.number(nextNumber(.installation, &state), slot: slot)
    let templates = installation.secondaryTiles.values.reduce(installation.templates.count) {
      $0 + $1.templates.count
    }
    // An installation may name templates that no registration has, as one with a dead handle does;
    // the next write creates them.
    let isWhole = templates == drafts.count { $0.kind != .native }
    state.installations.put(
      InstallationRow(
        number: number, hub: hub, installation: installation, written: isWhole ? drafts : nil))
    state.installationNumbers[HubKey(hub: hub, id: id)] = number
    var rest = state.registrations(of: [number])
    for draft in drafts {
      if let index = rest.firstIndex(where: { $0.draft.key == draft.key }) {
        var row = rest.remove(at: index)
        row.rewrite(draft, byClient: false, at: at, commit: state.commit)
        state.put(row)
      } else {
        state.put(
          RegistrationRow(
            number: newNumber(&state, slot: slot), hub: hub, installation: number, draft: draft,
            at: at, commit: state.commit))
      }
    }
    for row in rest { state.registrations[number: row.number] = nil }
    for row in state.registrations(of: [number]) { state.markShared(row.device) }
  }
}

/// Forgetting a user.
extension SimulatedStore {
  /// One that ends early goes on when it is called again.
  package func eraseUser(_ userID: String, hub: Hub.ID) async throws -> UserErasure {
    let (notifications, tags, templates) = try await read { state in
      state.belongings(of: userID, hub: hub)
    }
    // First: some are known to be the user's by tags that go with the devices.
    var erasure = try await write { state in
      try state.requireHub(hub)
      return state.erase(notifications: notifications)
    }
    let (installations, records) = try await write { state in
      try state.requireHub(hub)
      return state.eraseDevices(of: userID, hub: hub)
    }
    erasure.installations = installations
    erasure.deviceRecords += records
    (erasure.tags, erasure.templates) = (tags, templates)
    return erasure
  }
}

extension SimulatedDatabase.State {
  fileprivate func installations(of user: String, hub: Hub.ID) -> [InstallationRow] {
    installations.filter {
      $0.hub == hub && $0.installation.userID?.lowercased() == user.lowercased()
    }
  }

  /// The numbers of notifications that were for a user alone, and how many tags and templates nobody
  /// else has.
  fileprivate func belongings(
    of user: String, hub: Hub.ID
  ) -> (notifications: [Int64], tags: Int, templates: Int) {
    let devices = installations(of: user, hub: hub)
    let own = registrations(of: Set(devices.map(\.number)))
    let numbers = Set(own.map(\.number))
    let others = registrations.filter { $0.hub == hub && !numbers.contains($0.number) }
    let tags = Set(own.flatMap(\.plainTags)).subtracting(others.flatMap(\.plainTags))
    let templates = Set(own.compactMap(\.template)).subtracting(others.compactMap(\.template))
    let meant = Set(tags.map { Tag(rawValue: $0) })
      .union(devices.map { Tag.installation($0.installation.installationID) })
      .union([.user(user)])
    let handles = Set(own.map(\.handle))
    let found = notifications.filter { row in
      guard row.record.hub == hub else { return false }
      if let expression = row.record.request.expression { return expression.isOnly(for: meant) }
      return !row.targets.isEmpty && row.targets.allSatisfy { handles.contains($0.handle) }
    }
    return (found.map(\.number), tags.count, templates.count)
  }

  fileprivate mutating func erase(notifications numbers: [Int64]) -> UserErasure {
    var erasure = UserErasure(installations: 0, schedules: 0, notifications: 0, deviceRecords: 0)
    for number in numbers {
      guard let row = notifications[number: number] else { continue }
      delete(row)
      erasure.deviceRecords += row.failures.count
      if row.record.state == .scheduled {
        erasure.schedules += 1
      } else {
        erasure.notifications += 1
      }
    }
    return erasure
  }

  /// - Returns: How many, and how many outcomes told of them.
  fileprivate mutating func eraseDevices(
    of user: String, hub: Hub.ID
  ) -> (installations: Int, records: Int) {
    let devices = installations(of: user, hub: hub)
    let numbers = Set(registrations(of: Set(devices.map(\.number))).map(\.number))
    let ids = Set(devices.map(\.installation.installationID))
    var records = 0
    // In the failures of a direct send the number is that of a target.
    for row in notifications where row.record.hub == hub && !row.record.request.isDirect {
      let rest = row.failures.filter { number, kept in
        !numbers.contains(number) && kept.device?.installationID.map { !ids.contains($0) } ?? true
      }
      guard rest.count < row.failures.count else { continue }
      records += row.failures.count - rest.count
      notifications.change(row.number) { $0.failures = rest }
    }
    deleteInstallations(devices.map(\.number))
    return (devices.count, records)
  }
}

extension RegistrationRow {
  fileprivate var plainTags: [String] { tags.filter { $0.utf8.first != UInt8(ascii: "$") } }

  /// All but its tags; `nil` when it is native.
  var template: PushTemplate? {
    guard case .template(var template, _) = draft.kind else { return nil }
    template.tags = []
    return template
  }
}
