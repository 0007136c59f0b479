package import Authentication
package import Cryptography
package import Foundation
package import SQLDatabase

/// The backend's storage: messages with sealed payloads, the owners of devices, and an audit log.
package final class BackendStore: Sendable {
  let database: DatabaseThread
  /// Whether several backends may use the database.
  let isShared: Bool
  let sealer: SecretSealer

  /// - Parameters:
  ///   - open: Opens a connection; the schema is migrated here.
  ///   - key: The key that seals payloads; without it they cannot be read again.
  /// - Throws: ``CryptographyError`` of kind `sealBroken` if the database was created with another
  ///   key; its contents stay unchanged.
  package init(
    key: MasterKey, open: @escaping @Sendable () throws -> any SQLConnection
  ) async throws {
    sealer = SecretSealer(key: key)
    database = try await DatabaseThread {
      let connection = try open()
      try connection.migrate(with: BackendSchema.migrations)
      return connection
    }
    isShared = try await database.run { $0.dialect != .sqlite }
    do {
      // The first sealed value, which reveals a wrong key.
      _ = try await signingKey()
    } catch {
      await database.close()
      throw error
    }
  }

  package func close() async { await database.close() }

  /// Returns only if the database can be read and written.
  func check() async throws {
    try await database.run { connection in
      _ = try connection.statement("SELECT 1").step()
    }
  }
}

extension Date {
  /// Milliseconds since 1970.
  var storedTime: Int64 {
    Int64(min(max(timeIntervalSince1970 * 1000, 0), 1e15).rounded())
  }

  init(storedTime: Int64) { self.init(timeIntervalSince1970: Double(storedTime) / 1000) }
}

/// A sign-in with a password for which tokens were issued.
struct StoredSession: Hashable, Sendable {
  /// 22 characters of base64url: 128 random bits.
  let id: String
  let owner: UserName
  let expiresAt: Date
  /// The fingerprint of the password that was given; see ``PasswordDirectory/fingerprint(of:)``.
  let fingerprint: [UInt8]
}

/// Backends that share a PostgreSQL database count wrong passwords together.
extension BackendStore: AttemptDatabase {
  package var attemptTable: String { BackendSchema.attempts }
  /// The maximum number of attempts; hundreds share a transaction.
  package var attemptsAtOnce: Int { 4_000 }

  package func countingAttempts<Value: Sendable>(
    _ body: @escaping @Sendable (any SQLConnection) throws -> Value
  ) async throws -> Value {
    try await database.run(body)
  }
}

extension BackendStore {
  /// The maximum number of sign-ins per user; a further one ends the one that expires first.
  static let sessionsPerUser = 100
  private static let keyContext = "signing-key"

  /// The newest schema version that this build knows.
  package static var newestSchema: Int { BackendSchema.migrations.count }

  /// Verifies that a key opens the sealed data of a backend's database, as far as it has any yet.
  /// - Throws: ``CryptographyError`` if it does not.
  package static func check(_ key: MasterKey, opens connection: any SQLConnection) throws {
    let row = try connection.statement("SELECT sealed FROM signing_key WHERE number = 1")
    guard try row.step() else { return }
    _ = try SecretSealer(key: key).open(row.bytes(0), context: keyContext)
  }

  /// The key that signs tokens, generated at the first start.
  func signingKey() async throws -> P256PrivateKey {
    let sealer = sealer
    let pem = try P256PrivateKey().pem()
    let new = try sealer.seal(Array(pem.utf8), context: Self.keyContext)
    let sealed = try await database.run { connection in
      try connection.change(
        "INSERT INTO signing_key (number, sealed) VALUES (1, ?1) ON CONFLICT (number) DO NOTHING",
        new)
      let row = try connection.statement("SELECT sealed FROM signing_key WHERE number = 1")
      return try row.step() ? row.bytes(0) : []
    }
    let own = try sealer.open(sealed, context: Self.keyContext)
    return try P256PrivateKey(pem: String(decoding: own, as: UTF8.self))
  }

  func add(_ session: StoredSession, audit: AuditLine) async throws {
    try await database.run { connection in
      try connection.change(
        "INSERT INTO session (id, owner, expires_at, fingerprint) VALUES (?1, ?2, ?3, ?4)",
        session.id, session.owner.key, session.expiresAt.storedTime, session.fingerprint)
      try connection.change(
        """
        DELETE FROM session WHERE owner = ?1 AND id NOT IN
          (SELECT id FROM session WHERE owner = ?1 ORDER BY expires_at DESC, id
           LIMIT \(Self.sessionsPerUser))
        """, session.owner.key)
      try Self.note(audit, outcome: "done", connection)
    }
  }

  /// - Returns: `nil` if the session is revoked or expired.
  func session(_ id: String, at now: Date) async throws -> StoredSession? {
    try await database.run { connection in
      let row = try connection.statement(
        "SELECT owner, expires_at, fingerprint FROM session WHERE id = ?1 AND expires_at > ?2",
        id, now.storedTime)
      guard try row.step(), let owner = UserName(key: row.text(0)) else { return nil }
      return StoredSession(
        id: id, owner: owner, expiresAt: Date(storedTime: row.integer(1)),
        fingerprint: row.bytes(2))
    }
  }

  /// Extends a session.
  /// - Returns: `false` if it has been revoked in the meantime.
  func extend(_ id: String, to expiry: Date, audit: AuditLine) async throws -> Bool {
    try await database.run { connection in
      let count = try connection.change(
        "UPDATE session SET expires_at = ?2 WHERE id = ?1", id, expiry.storedTime)
      guard count > 0 else { return false }
      try Self.note(audit, outcome: "done", connection)
      return true
    }
  }

  /// Ends one sign-in, or all of a user's.
  /// - Returns: The number of sign-ins ended.
  @discardableResult
  package func revoke(
    _ user: UserName, session: String? = nil, audit: AuditLine
  ) async throws -> Int {
    try await database.run { connection in
      let count = try connection.change(
        "DELETE FROM session WHERE owner = ?1 AND (?2 = '' OR id = ?2)", user.key, session ?? "")
      try Self.note(audit, outcome: "done", connection)
      return count
    }
  }
}

extension BackendStore {
  /// The retention of audit lines, in seconds: a year.
  static let auditLife: TimeInterval = 365 * 86_400
  /// The maximum number of lines in 24 hours with the same user, action and outcome; the last one
  /// says that further ones are omitted. Otherwise a client in a loop would fill the disk. Outcomes
  /// are counted separately, so that password guessing does not hide a successful sign-in.
  package static let auditLinesPerDay: Int64 = 1000

  package func note(_ line: AuditLine) async throws {
    try await database.run { connection in
      try Self.note(line, outcome: line.outcome, connection)
    }
  }

  static func note(_ line: AuditLine, outcome: String, _ connection: any SQLConnection) throws {
    let count = try connection.statement(
      """
      SELECT COUNT(*) FROM (SELECT 1 FROM audit
        WHERE actor = ?1 AND action = ?2 AND outcome = ?3 AND at > ?4 LIMIT ?5) AS today
      """, line.actor, line.action, outcome, line.at.addingTimeInterval(-86_400).storedTime,
      auditLinesPerDay)
    let left = auditLinesPerDay - (try count.step() ? count.integer(0) : 0)
    guard left > 0 else { return }
    let subject = left > 1 ? line.subject : "\(line.subject) (more of this day is left out)"
    let last = try connection.statement("SELECT COALESCE(MAX(number), 0) FROM audit")
    let number = try last.step() ? last.integer(0) + 1 : 1
    try connection.change(
      """
      INSERT INTO audit (number, at, actor, action, subject, outcome, address)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
      """, number, line.at.storedTime, line.actor, line.action, subject, outcome, line.address)
  }

  /// The latest audit lines, newest first.
  /// - Parameter user: Restricts the result to lines by or about this user.
  package func audit(of user: UserName? = nil, limit: Int = 100) async throws -> [AuditLine] {
    try await database.run { connection in
      try connection.rows(
        """
        SELECT at, actor, action, subject, outcome, address FROM audit
        WHERE ?1 = '' OR actor = ?1 OR subject = ?1 ORDER BY number DESC LIMIT ?2
        """, user?.key ?? "", Int64(limit)
      ) { row in
        AuditLine(
          at: Date(storedTime: row.integer(0)), actor: row.text(1), action: row.text(2),
          subject: row.text(3), outcome: row.text(4), address: row.text(5))
      }
    }
  }

  /// Erases a user: messages, sign-ins, and the lines about them.
  /// - Returns: The numbers erased; `nil` if devices remain, which must first be removed from the
  ///   hub.
  func erase(_ user: UserName, audit line: AuditLine) async throws -> Erasure? {
    try await database.run { connection in
      do {
        let rest = try connection.statement(
          "SELECT 1 FROM device WHERE owner = ?1 LIMIT 1", user.key)
        if try rest.step() { return nil }
      }
      try connection.change("DELETE FROM session WHERE owner = ?1", user.key)
      try connection.change("DELETE FROM detached WHERE owner = ?1", user.key)
      let erasure = Erasure(
        messages: try connection.change("DELETE FROM message WHERE owner = ?1", user.key),
        auditLines: try connection.change(
          "DELETE FROM audit WHERE actor = ?1 OR subject = ?1", user.key))
      try Self.note(line, outcome: "done", connection)
      return erasure
    }
  }
}

/// The numbers of records erased with a user.
package struct Erasure: Hashable, Sendable {
  package let messages: Int
  package let auditLines: Int
}

// Maintenance: migrating the data of older versions, and removing expired data.
extension BackendStore {
  /// Separates the owners that an older version stored into names and subjects.
  ///
  /// Typed names were lower-cased, so an owner with a capital letter is a subject. Any other could
  /// be either; if only one kind of user can sign in, it is of that kind. Ambiguous owners match no
  /// user: their messages expire, and their devices register again at the next start of their app.
  /// - Returns: The number of owners that remain ambiguous.
  func settle(_ kinds: Set<UserName.Kind>) async throws -> Int {
    try await database.run { connection in
      let prefix = UserName.Kind.old.rawValue + ":"
      let owners = try connection.rows(
        """
        SELECT owner FROM message WHERE owner LIKE '\(prefix)%'
        UNION SELECT owner FROM device WHERE owner LIKE '\(prefix)%'
        UNION SELECT actor FROM audit WHERE actor LIKE '\(prefix)%'
        """
      ) { $0.text(0) }
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
          try connection.change(
            "UPDATE \(table) SET \(column) = ?2 WHERE \(column) = ?1", owner, user.key)
        }
      }
      // The tag of a typed name has not changed.
      try connection.run(
        "UPDATE device SET has_old_tag = 0 WHERE has_old_tag = 1 AND owner LIKE 'name:%'")
      return unsure
    }
  }

  /// Devices whose tag at the hub could also be another user's, with their owners.
  func devicesWithOldTag(limit: Int = 100) async throws -> [(device: StoredDevice, owner: String)] {
    try await database.run { connection in
      try connection.rows(
        """
        SELECT id, is_installation, platform, sealing_key, owner FROM device
        WHERE has_old_tag = 1 ORDER BY id LIMIT ?1
        """, Int64(limit)
      ) { (StoredDevice($0), $0.text(4)) }
    }
  }

  /// Records that the device has its new tag, unless it has registered in the meantime.
  func noteNewTag(device id: String) async throws {
    try await database.run { connection in
      _ = try connection.change("UPDATE device SET has_old_tag = 0 WHERE id = ?1", id)
    }
  }

  /// Removes expired messages and sign-ins, audit lines older than a year, and takeovers older than
  /// a month. Works in small steps, so that other work is not delayed.
  package func sweep(at now: Date) async throws {
    let month = now.addingTimeInterval(-30 * 86_400)
    let sweeps = [
      ("message", "id", "expires_at", now), ("session", "id", "expires_at", now),
      ("audit", "number", "at", now.addingTimeInterval(-Self.auditLife)),
    ]
    for (table, key, column, limit) in sweeps {
      while true {
        let removed = try await database.run { connection in
          try connection.change(
            """
            DELETE FROM \(table) WHERE \(key) IN
              (SELECT \(key) FROM \(table) WHERE \(column) <= ?1 ORDER BY \(column) LIMIT 500)
            """, limit.storedTime)
        }
        if removed < 500 { break }
      }
    }
    try await database.run { connection in
      _ = try connection.change("DELETE FROM detached WHERE at <= ?1", month.storedTime)
    }
    while isShared {
      let hasMore = try await countingAttempts { connection in
        try SharedAttempts.clear(BackendSchema.attempts, connection)
      }
      if !hasMore { break }
    }
  }
}
