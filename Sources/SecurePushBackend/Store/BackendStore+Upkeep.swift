package import Foundation
import SQLDatabase

// What is done now and then: sorting what an older version has stored, and removing what is over.
extension BackendStore {
  /// Sorts the owners that an older version has stored into names and subjects.
  ///
  /// Typed names were lower-cased, so an owner with a capital letter is a subject. Any other could be
  /// either; where only one kind of user signs in it is of that kind. What stays unsure belongs to
  /// nobody: its messages end in their time, and its devices register again at their app's next
  /// start.
  /// - Returns: How many owners stay unsure.
  func settle(_ kinds: Set<UserName.Kind>) async throws -> Int {
    try await database.run { connection in
      let prefix = UserName.Kind.old.rawValue + ":"
      var owners: [String] = []
      do {
        let rows = try connection.statement(
          """
          SELECT owner FROM message WHERE owner LIKE '\(prefix)%'
          UNION SELECT owner FROM device WHERE owner LIKE '\(prefix)%'
          UNION SELECT actor FROM audit WHERE actor LIKE '\(prefix)%'
          """)
        while try rows.step() { owners.append(rows.text(0)) }
      }
      var unsure = 0
      for owner in owners {
        let text = String(owner.dropFirst(prefix.count))
        let kind: UserName.Kind
        if text != text.lowercased() {
          kind = .subject
        } else if kinds.count == 1, let only = kinds.first {
          kind = only
        } else {
          unsure += 1
          continue
        }
        guard let user = kind == .name ? UserName(typed: text) : UserName(subject: text) else {
          continue
        }
        for (table, column) in [("message", "owner"), ("device", "owner"), ("audit", "actor")] {
          let update = try connection.statement(
            "UPDATE \(table) SET \(column) = ?2 WHERE \(column) = ?1")
          try update.bind(owner, at: 1)
          try update.bind(user.key, at: 2)
          try update.run()
        }
      }
      // The tag of a typed name is what it was.
      try connection.run(
        "UPDATE device SET has_old_tag = 0 WHERE has_old_tag = 1 AND owner LIKE 'name:%'")
      return unsure
    }
  }

  /// Devices whose tag at the hub could also be somebody else's, with their owners.
  func devicesWithOldTag(limit: Int = 100) async throws -> [(device: StoredDevice, owner: String)] {
    try await database.run { connection in
      let rows = try connection.statement(
        """
        SELECT id, is_installation, platform, sealing_key, owner FROM device
        WHERE has_old_tag = 1 ORDER BY id LIMIT ?1
        """)
      try rows.bind(Int64(limit), at: 1)
      var devices: [(device: StoredDevice, owner: String)] = []
      while try rows.step() {
        let device = StoredDevice(
          id: rows.text(0), isInstallation: rows.integer(1) != 0, platform: rows.text(2),
          sealingKey: rows.optionalText(3))
        devices.append((device, rows.text(4)))
      }
      return devices
    }
  }

  /// The device has its new tag, unless it has registered meanwhile.
  func noteNewTag(device id: String) async throws {
    try await database.run { connection in
      let update = try connection.statement("UPDATE device SET has_old_tag = 0 WHERE id = ?1")
      try update.bind(id, at: 1)
      try update.run()
    }
  }

  /// Removes what is over: messages, sign-ins, audit lines of a year ago, what was taken over a month
  /// ago. In small steps, so that nobody waits for long.
  package func sweep(at now: Date) async throws {
    let month = now.addingTimeInterval(-30 * 86_400)
    let sweeps = [
      ("message", "id", "expires_at", now), ("session", "id", "expires_at", now),
      ("audit", "number", "at", now.addingTimeInterval(-Self.auditLife)),
    ]
    for (table, key, column, limit) in sweeps {
      while true {
        let removed = try await database.run { connection in
          let delete = try connection.statement(
            """
            DELETE FROM \(table) WHERE \(key) IN
              (SELECT \(key) FROM \(table) WHERE \(column) <= ?1 ORDER BY \(column) LIMIT 500)
            """)
          try delete.bind(limit.storedTime, at: 1)
          return try connection.changes(running: delete)
        }
        if removed < 500 { break }
      }
    }
    try await database.run { connection in
      let delete = try connection.statement("DELETE FROM detached WHERE at <= ?1")
      try delete.bind(month.storedTime, at: 1)
      try delete.run()
    }
  }
}
