import Authentication
import Foundation
import SQLDatabase

/// The result of claiming a device's id for a user.
enum DeviceClaim: Hashable, Sendable {
  /// The id was unused.
  case new
  case own
  /// The id was another user's, on the same device.
  case taken
  /// The id is another device's, differs from another user's id only in letter case, or belongs to
  /// a registration and was requested for an installation, or the other way round.
  case refused
  /// The user has reached the maximum number of devices.
  case full
}

extension BackendStore {
  /// The owner of a device.
  struct DeviceOwner: Hashable, Sendable {
    /// The owner's ``UserName/key``.
    let user: String
    /// A digest of the device's push channel.
    let channel: [UInt8]
    /// Whether the id is an installation's, and not a registration's.
    let isInstallation: Bool

    /// Whether the device is the user's; an owner from before name spaces were separated counts if
    /// the name is the same.
    func isOwn(of user: UserName) -> Bool {
      // Compares bytes: two spellings that Unicode considers equivalent are two users.
      self.user.utf8.elementsEqual(user.key.utf8)
        || self.user.utf8.elementsEqual("\(UserName.Kind.old.rawValue):\(user.text)".utf8)
    }
  }

  func owner(ofDevice id: String) async throws -> DeviceOwner? {
    try await database.run { try Self.owner(ofDevice: id, $0) }
  }

  private static func owner(
    ofDevice id: String, _ connection: any SQLConnection
  ) throws -> DeviceOwner? {
    let row = try connection.statement(
      "SELECT owner, channel, is_installation FROM device WHERE id = ?1", id)
    guard try row.step() else { return nil }
    return DeviceOwner(
      user: row.text(0), channel: row.bytes(1), isInstallation: row.integer(2) != 0)
  }

  /// Whether another user has the id, or one that differs only in letter case, since some hubs
  /// treat the two as one.
  func isForeign(device id: String, to user: UserName) async throws -> Bool {
    try await database.run { connection in
      if let owner = try Self.owner(ofDevice: id, connection), !owner.isOwn(of: user) {
        return true
      }
      return try Self.hasForeignTwin(id, of: user, connection)
    }
  }

  private static func hasForeignTwin(
    _ id: String, of user: UserName, _ connection: any SQLConnection
  ) throws -> Bool {
    let twin = try connection.statement(
      "SELECT 1 FROM device WHERE folded = ?1 AND id <> ?2 AND owner <> ?3 LIMIT 1",
      id.lowercased(), id, user.key)
    return try twin.step()
  }

  /// Makes the user the owner of a device, if permitted. Check and write are atomic, so that only
  /// one of two concurrent claims succeeds.
  ///
  /// Another user's id is taken over only with that device's own push channel: a caller who knows
  /// both is the app on that device, on which another user has signed in. The previous owner is
  /// informed with the next send to them.
  ///
  /// - Parameter limit: The maximum number of devices per user.
  func claim(
    _ device: StoredDevice, of user: UserName, channel: [UInt8], limit: Int, audit: AuditLine,
    now: Date
  ) async throws -> DeviceClaim {
    try await database.run { connection in
      let owner = try Self.owner(ofDevice: device.id, connection)
      var claim = DeviceClaim.new
      if let owner {
        claim =
          owner.isInstallation != device.isInstallation
          ? .refused : owner.isOwn(of: user) ? .own : owner.channel == channel ? .taken : .refused
      }
      if try claim == .refused || Self.hasForeignTwin(device.id, of: user, connection) {
        try Self.note(audit, outcome: "another user's", connection)
        return .refused
      }
      if claim != .own {
        let count = try connection.statement(
          "SELECT COUNT(*) FROM device WHERE owner = ?1", user.key)
        if try count.step(), count.integer(0) >= limit {
          try Self.note(audit, outcome: "too many devices", connection)
          return .full
        }
      }
      try Self.write(device, of: user, channel: channel, connection, now: now)
      if claim == .taken, let loser = owner?.user {
        try connection.change(
          """
          INSERT INTO detached (owner, device, at) VALUES (?1, ?2, ?3)
          ON CONFLICT (owner, device) DO UPDATE SET at = excluded.at
          """, loser, device.id, now.storedTime)
        try Self.note(
          AuditLine(
            at: now, actor: loser, action: "detached", subject: device.id, outcome: "done",
            address: ""),
          outcome: "by \(user.key)", connection)
      }
      try connection.change(
        "DELETE FROM detached WHERE owner = ?1 AND device = ?2", user.key, device.id)
      try Self.note(audit, outcome: claim == .taken ? "taken over" : "done", connection)
      return claim
    }
  }

  private static func write(
    _ device: StoredDevice, of user: UserName, channel: [UInt8], _ connection: any SQLConnection,
    now: Date
  ) throws {
    try connection.change(
      """
      INSERT INTO device
        (id, owner, is_installation, platform, channel, sealing_key, updated_at, folded)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
      ON CONFLICT (id) DO UPDATE SET owner = excluded.owner,
        is_installation = excluded.is_installation, platform = excluded.platform,
        channel = excluded.channel, sealing_key = excluded.sealing_key,
        updated_at = excluded.updated_at, has_old_tag = 0
      """, device.id, user.key, device.isInstallation, device.platform, channel,
      device.sealingKey, now.storedTime, device.id.lowercased())
  }

  /// Removes a device if it is the user's.
  func removeDevice(_ id: String, of user: UserName, audit: AuditLine?) async throws {
    try await database.run { connection in
      guard try Self.owner(ofDevice: id, connection)?.isOwn(of: user) == true else { return }
      try connection.change("DELETE FROM device WHERE id = ?1", id)
      if let audit { try Self.note(audit, outcome: "done", connection) }
    }
  }

  /// - Parameter limit: The maximum number of devices to read.
  func devices(of user: UserName, limit: Int = 1000) async throws -> [StoredDevice] {
    try await database.run { connection in
      try connection.rows(
        """
        SELECT id, is_installation, platform, sealing_key FROM device
        WHERE owner = ?1 ORDER BY updated_at DESC LIMIT ?2
        """, user.key, Int64(limit)
      ) { StoredDevice($0) }
    }
  }

  /// Devices that other users have taken over from this one within a month, latest first.
  func detachedDevices(of user: UserName) async throws -> [(id: String, at: Date)] {
    try await database.run { connection in
      try connection.rows(
        "SELECT device, at FROM detached WHERE owner = ?1 ORDER BY at DESC LIMIT 20", user.key
      ) { ($0.text(0), Date(storedTime: $0.integer(1))) }
    }
  }
}
