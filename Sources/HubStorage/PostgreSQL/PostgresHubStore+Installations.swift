package import Foundation
package import HubCore
package import NotificationHubs
import SQLDatabase
import Wire

extension PostgresHubStore {
  package func installation(_ id: String, hub: Hub.ID) async throws -> Installation? {
    try await readFreely { session in
      let row = try session.connection.statement(
        """
        SELECT document FROM installation WHERE hub = ?1 AND slot = ?2 AND public_id = ?3
          AND EXISTS (SELECT 1 FROM hub WHERE hub.id = ?1)
        """, hub, session.slots.slot(of: id), id)
      guard try row.step() else { return nil }
      return try InstallationDocument.decode(row.bytes(0), id: id)
    }
  }

  package func putInstallation(
    _ installation: consuming Installation, registrations: consuming [RegistrationDraft],
    request: InstallationRequest?, hub: Hub.ID, at: Date
  ) async throws {
    let content = InstallationContent(
      consume installation, registrations: consume registrations, hub: hub, at: at,
      shared: engine.shared)
    try await intercepted(#function) { [engine] in
      do {
        try await engine.batches.wait(content.label) { end in
          InstallationWork(content: content, resume: { end.succeed(()) }, fail: { end.fail($0) })
        }
      } catch let refusal as JobRefusal {
        throw StoreError(refusal)
      }
    }
  }

  package func updateInstallation(
    _ id: String, hub: Hub.ID, at: Date,
    change: @escaping @Sendable (Installation) throws -> (Installation, [RegistrationDraft])
  ) async throws -> Bool {
    let hash = PreparedInstallation.hash(id.foldingCapitals)
    return try await write(as: .asked(.devices, rows: JobLabel.unknownRows)) { session in
      try session.lockHub(hub)
      try session.requireHub(hub)
      try PostgresDevices(session).lock([PostgresDevices.DeviceLock.device(hub: hub, hash: hash)])
      guard let row = try PostgresInstallations(session).installationRow(id, hub: hub),
        let present = try PostgresInstallations(session).installation(row.number, hub: hub)
      else { return false }
      let (changed, registrations) = try change(present)
      let content = InstallationContent(
        changed, registrations: registrations, hub: hub, at: at, shared: session.shared)
      try PostgresDevices(session).lock(content.handleLocks)
      try PostgresInstallations(session).write([(content, row)], forgettingRemoved: false)
      return true
    }
  }

  package func deleteInstallation(_ id: String, hub: Hub.ID) async throws -> Bool {
    let hash = PreparedInstallation.hash(id.foldingCapitals)
    return try await write(
      as: .asked(.devices, rows: JobLabel.unknownRows), ifUnclear: .again
    ) { session in
      guard try session.hasHub(hub) else { return false }
      try PostgresDevices(session).lock([PostgresDevices.DeviceLock.device(hub: hub, hash: hash)])
      guard let row = try PostgresInstallations(session).installationRow(id, hub: hub) else {
        return false
      }
      try PostgresInstallations(session).deleteInstallations([(hub, row.number)])
      return true
    }
  }

  package func installations(
    _ filter: InstallationFilter, hub: Hub.ID, after: InstallationPosition?, limit: Int
  ) async throws -> InstallationPage {
    try await read {
      try PostgresInstallations($0).installations(filter, hub: hub, after: after, limit: limit)
    }
  }
}

extension PostgresHubStore {
  /// Number of devices in a transaction: each costs the server a lock, and others wait for them.
  private static let erasureSlice = 200

  /// An erasure that ends early can be continued by calling it again.
  package func eraseUser(_ userID: String, hub: Hub.ID) async throws -> UserErasure {
    let (devices, notifications, found) = try await read { session in
      try PostgresErasure(session).belongings(of: userID, hub: hub)
    }
    // Notifications first: some are recognised by tags that are deleted with the devices.
    var erasure = try await write { session in
      try session.lockHub(hub)
      try session.requireHub(hub)
      return try NotificationTable(session.connection).erase(notifications)
    }
    (erasure.tags, erasure.templates) = (found.tags, found.templates)
    for start in stride(from: 0, to: devices.count, by: Self.erasureSlice) {
      let slice = Array(devices[start...].prefix(Self.erasureSlice))
      let (installations, records) = try await write { session in
        try session.lockHub(hub)
        try session.requireHub(hub)
        return try PostgresErasure(session).erase(devices: slice, of: userID, hub: hub)
      }
      erasure.installations += installations
      erasure.deviceRecords += records
    }
    return erasure
  }
}
