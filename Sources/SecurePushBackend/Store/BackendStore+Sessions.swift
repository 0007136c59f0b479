import Cryptography
import Foundation
import SQLDatabase

/// A sign-in with a password, for which tokens were given.
struct StoredSession: Hashable, Sendable {
  /// 22 characters of base64url: 128 random bits.
  let id: String
  let owner: UserName
  let expiresAt: Date
  /// Of the password that was given; see ``PasswordDirectory/fingerprint(of:)``.
  let fingerprint: [UInt8]
}

extension BackendStore {
  /// The most sign-ins of one user; another one ends the one that expires first.
  static let sessionsPerUser = 100
  private static let keyContext = "signing-key"

  /// The key that tokens are signed with, made on first use.
  func signingKey() async throws -> P256PrivateKey {
    let sealer = sealer
    let pem = try P256PrivateKey().pem()
    let new = try sealer.seal(Array(pem.utf8), context: Self.keyContext)
    let sealed = try await database.run { connection in
      let insert = try connection.statement(
        "INSERT INTO signing_key (number, sealed) VALUES (1, ?1) ON CONFLICT (number) DO NOTHING")
      try insert.bind(new, at: 1)
      try insert.run()
      let row = try connection.statement("SELECT sealed FROM signing_key WHERE number = 1")
      return try row.step() ? row.bytes(0) : []
    }
    let own = try sealer.open(sealed, context: Self.keyContext)
    return try P256PrivateKey(pem: String(decoding: own, as: UTF8.self))
  }

  func add(_ session: StoredSession, audit: AuditLine) async throws {
    try await database.run { connection in
      let insert = try connection.statement(
        "INSERT INTO session (id, owner, expires_at, fingerprint) VALUES (?1, ?2, ?3, ?4)")
      try insert.bind(session.id, at: 1)
      try insert.bind(session.owner.key, at: 2)
      try insert.bind(session.expiresAt.storedTime, at: 3)
      try insert.bind(session.fingerprint, at: 4)
      try insert.run()
      let trim = try connection.statement(
        """
        DELETE FROM session WHERE owner = ?1 AND id NOT IN
          (SELECT id FROM session WHERE owner = ?1 ORDER BY expires_at DESC, id
           LIMIT \(Self.sessionsPerUser))
        """)
      try trim.bind(session.owner.key, at: 1)
      try trim.run()
      try Self.note(audit, outcome: "done", connection)
    }
  }

  /// - Returns: `nil` when it has been revoked, or is over.
  func session(_ id: String, at now: Date) async throws -> StoredSession? {
    try await database.run { connection in
      let row = try connection.statement(
        "SELECT owner, expires_at, fingerprint FROM session WHERE id = ?1 AND expires_at > ?2")
      try row.bind(id, at: 1)
      try row.bind(now.storedTime, at: 2)
      guard try row.step(), let owner = UserName(key: row.text(0)) else { return nil }
      return StoredSession(
        id: id, owner: owner, expiresAt: Date(storedTime: row.integer(1)),
        fingerprint: row.bytes(2))
    }
  }

  /// Lets a session live longer.
  /// - Returns: `false` when it has been revoked meanwhile.
  func extend(_ id: String, to expiry: Date, audit: AuditLine) async throws -> Bool {
    try await database.run { connection in
      let update = try connection.statement("UPDATE session SET expires_at = ?2 WHERE id = ?1")
      try update.bind(id, at: 1)
      try update.bind(expiry.storedTime, at: 2)
      guard try connection.changes(running: update) > 0 else { return false }
      try Self.note(audit, outcome: "done", connection)
      return true
    }
  }

  /// Ends one sign-in, or all of a user.
  /// - Returns: How many there were.
  @discardableResult
  package func revoke(
    _ user: UserName, session: String? = nil, audit: AuditLine
  ) async throws -> Int {
    try await database.run { connection in
      let delete = try connection.statement(
        "DELETE FROM session WHERE owner = ?1 AND (?2 = '' OR id = ?2)")
      try delete.bind(user.key, at: 1)
      try delete.bind(session ?? "", at: 2)
      let count = try connection.changes(running: delete)
      try Self.note(audit, outcome: "done", connection)
      return count
    }
  }
}
