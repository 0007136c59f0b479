package import Foundation
package import HubCore
package import NotificationHubs
import SQLDatabase

extension SQLiteHubStore {
  package func installation(_ id: String, hub: Hub.ID) async throws -> Installation? {
    let hash = PreparedInstallation.hash(id.lowercased())
    return try await read { session in
      guard try session.hasHub(hub),
        let row = try session.connection.installationRow(id, idHash: hash, hub: hub)
      else { return nil }
      return try session.connection.installation(row.number, templates: session.templates)
    }
  }

  package func putInstallation(
    _ installation: Installation, registrations: [RegistrationDraft], hub: Hub.ID, at: Date
  ) async throws {
    let prepared = PreparedInstallation(
      installation, registrations: registrations, hub: hub, at: at)
    try await write { try $0.put(prepared) }
  }

  package func updateInstallation(
    _ id: String, hub: Hub.ID, at: Date,
    change: @escaping @Sendable (Installation) throws -> (Installation, [RegistrationDraft])
  ) async throws -> Bool {
    let hash = PreparedInstallation.hash(id.lowercased())
    return try await write { session in
      try session.requireHub(hub)
      guard
        let row = try session.connection.installationRow(id, idHash: hash, hub: hub),
        let present = try session.connection.installation(
          row.number, templates: session.templates)
      else { return false }
      let (changed, registrations) = try change(present)
      try session.write(
        PreparedInstallation(changed, registrations: registrations, hub: hub, at: at), over: row)
      return true
    }
  }

  package func deleteInstallation(_ id: String, hub: Hub.ID) async throws -> Bool {
    let hash = PreparedInstallation.hash(id.lowercased())
    return try await write { session in
      guard try session.hasHub(hub) else { return false }
      return try session.deleteInstallation(id, idHash: hash, hub: hub)
    }
  }

  package func installations(
    hub: Hub.ID, after: String?, limit: Int
  ) async throws -> [Installation] {
    try await read { session in
      guard try session.hasHub(hub) else { return [] }
      // The order is that of the index: by the hash of the id, then by the id.
      let row = try session.connection.statement(
        """
        SELECT id FROM installation WHERE hub = ?1 AND id_hash >= ?2
          AND (id_hash > ?2 OR public_id > ?3) ORDER BY id_hash, public_id LIMIT ?4
        """)
      try row.bind(hub, at: 1)
      try row.bind(after.map { PreparedInstallation.hash($0.lowercased()) } ?? .min, at: 2)
      try row.bind(after ?? "", at: 3)
      try row.bind(Int64(max(0, limit)), at: 4)
      var installations: [Installation] = []
      while try row.step() {
        if let found = try session.connection.installation(
          row.integer(0), templates: session.templates)
        {
          installations.append(found)
        }
      }
      return installations
    }
  }
}

extension SQLConnection {
  /// The installation of a number.
  func installation(_ number: Int64, templates: TemplateTable) throws -> Installation? {
    let row = try statement("SELECT public_id, document FROM installation WHERE id = ?1")
    try row.bind(number, at: 1)
    guard try row.step() else { return nil }
    return try InstallationDocument.decode(row.bytes(1), id: row.text(0)) {
      try templates.template($0)
    }
  }
}
