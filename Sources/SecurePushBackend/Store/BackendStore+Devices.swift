import Foundation
import SQLDatabase

extension BackendStore {
  /// Who has a device.
  struct DeviceOwner: Hashable, Sendable {
    let user: String
    /// A digest of its push channel.
    let channel: [UInt8]
  }

  func owner(ofDevice id: String) async throws -> DeviceOwner? {
    try await database.run { connection in
      let row = try connection.statement("SELECT owner, channel FROM device WHERE id = ?1")
      try row.bind(id, at: 1)
      return try row.step() ? DeviceOwner(user: row.text(0), channel: row.bytes(1)) : nil
    }
  }

  func put(
    _ device: StoredDevice, of user: UserName, channel: [UInt8], audit: AuditLine, now: Date
  ) async throws {
    try await database.run { connection in
      let put = try connection.statement(
        """
        INSERT INTO device
          (id, owner, is_installation, platform, channel, sealing_key, updated_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
        ON CONFLICT (id) DO UPDATE SET owner = excluded.owner,
          is_installation = excluded.is_installation, platform = excluded.platform,
          channel = excluded.channel, sealing_key = excluded.sealing_key,
          updated_at = excluded.updated_at
        """)
      try put.bind(device.id, at: 1)
      try put.bind(user.text, at: 2)
      try put.bind(device.isInstallation, at: 3)
      try put.bind(device.platform, at: 4)
      try put.bind(channel, at: 5)
      try put.bind(device.sealingKey, at: 6)
      try put.bind(now.storedTime, at: 7)
      try put.run()
      try Self.note(audit, outcome: "done", connection)
    }
  }

  func removeDevice(_ id: String, audit: AuditLine?) async throws {
    try await database.run { connection in
      let delete = try connection.statement("DELETE FROM device WHERE id = ?1")
      try delete.bind(id, at: 1)
      try delete.run()
      if let audit { try Self.note(audit, outcome: "done", connection) }
    }
  }

  /// - Parameter limit: The most that are read.
  func devices(of user: UserName, limit: Int = 1000) async throws -> [StoredDevice] {
    try await database.run { connection in
      let rows = try connection.statement(
        """
        SELECT id, is_installation, platform, sealing_key FROM device
        WHERE owner = ?1 ORDER BY updated_at DESC LIMIT ?2
        """)
      try rows.bind(user.text, at: 1)
      try rows.bind(Int64(limit), at: 2)
      var devices: [StoredDevice] = []
      while try rows.step() {
        devices.append(
          StoredDevice(
            id: rows.text(0), isInstallation: rows.integer(1) != 0, platform: rows.text(2),
            sealingKey: rows.optionalText(3)))
      }
      return devices
    }
  }
}
