package import Authentication
import Cryptography
package import Foundation
import SQLDatabase

extension BackendStore {
  /// - Parameter limit: The maximum number of messages per user.
  /// - Returns: `false` if the owner has reached it; then nothing is stored.
  func add(_ message: StoredMessage, payload: String, limit: Int, now: Date) async throws -> Bool {
    let sealed = try sealer.seal(Array(payload.utf8), context: Self.context(message))
    return try await database.run { connection in
      let count = try connection.statement(
        "SELECT COUNT(*) FROM message WHERE owner = ?1 AND expires_at > ?2", message.owner.key,
        now.storedTime)
      guard try count.step(), count.integer(0) < Int64(limit) else { return false }
      try connection.change(
        """
        INSERT INTO message (id, owner, payload, created_at, expires_at, read_once, read_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, NULL)
        """, message.id, message.owner.key, sealed, message.createdAt.storedTime,
        message.expiresAt.storedTime, message.isReadOnce)
      return true
    }
  }

  /// Reads a message for its owner, and records the reading.
  func read(_ id: String, by user: UserName, audit: AuditLine, now: Date) async throws
    -> MessageReading
  {
    let sealer = sealer
    return try await database.run { connection in
      let found = try Self.message(id, of: user, connection, now: now)
      guard let (message, sealed) = found else {
        try Self.note(audit, outcome: "not found", connection)
        return .none
      }
      try Self.note(audit, outcome: sealed == nil ? "read before" : "done", connection)
      if message.readAt == nil {
        try connection.change(
          message.isReadOnce
            ? "UPDATE message SET read_at = ?2, payload = NULL WHERE id = ?1"
            : "UPDATE message SET read_at = ?2 WHERE id = ?1", id, now.storedTime)
      }
      let payload = try sealed.map { try Self.open($0, of: message, sealer) }
      return .found(message, payload: payload)
    }
  }

  /// The user's messages, newest first, without payloads.
  func messages(
    of user: UserName, limit: Int, audit: AuditLine, now: Date
  ) async throws -> [StoredMessage] {
    try await database.run { connection in
      try Self.note(audit, outcome: "done", connection)
      return try connection.rows(
        """
        SELECT id, created_at, expires_at, read_once, read_at FROM message
        WHERE owner = ?1 AND expires_at > ?2 ORDER BY created_at DESC, id LIMIT ?3
        """, user.key, now.storedTime, Int64(limit)
      ) { row in
        StoredMessage(
          id: row.text(0), owner: user, createdAt: Date(storedTime: row.integer(1)),
          expiresAt: Date(storedTime: row.integer(2)), isReadOnce: row.integer(3) != 0,
          readAt: row.optionalInteger(4).map { Date(storedTime: $0) })
      }
    }
  }

  /// - Returns: Whether the user had the message.
  func delete(_ id: String, by user: UserName, audit: AuditLine) async throws -> Bool {
    try await database.run { connection in
      let isDeleted =
        try connection.change("DELETE FROM message WHERE id = ?1 AND owner = ?2", id, user.key) > 0
      try Self.note(audit, outcome: isDeleted ? "done" : "not found", connection)
      return isDeleted
    }
  }

  /// Removes a message that could not be announced.
  func withdraw(_ id: String) async throws {
    try await database.run { connection in
      _ = try connection.change("DELETE FROM message WHERE id = ?1", id)
    }
  }

  private static func message(
    _ id: String, of user: UserName, _ connection: any SQLConnection, now: Date
  ) throws -> (StoredMessage, sealed: [UInt8]?)? {
    let row = try connection.statement(
      """
      SELECT created_at, expires_at, read_once, read_at, payload FROM message
      WHERE id = ?1 AND owner = ?2 AND expires_at > ?3
      """, id, user.key, now.storedTime)
    guard try row.step() else { return nil }
    let message = StoredMessage(
      id: id, owner: user, createdAt: Date(storedTime: row.integer(0)),
      expiresAt: Date(storedTime: row.integer(1)), isReadOnce: row.integer(2) != 0,
      readAt: row.optionalInteger(3).map { Date(storedTime: $0) })
    return (message, row.optionalBytes(4))
  }

  /// The context of a sealed payload, with which it cannot be opened as that of another message or
  /// owner.
  private static func context(_ message: StoredMessage) -> String {
    "message/\(message.id)/\(message.owner.key)"
  }

  private static func open(
    _ sealed: [UInt8], of message: StoredMessage, _ sealer: SecretSealer
  ) throws -> String {
    let payload: [UInt8]
    do {
      payload = try sealer.open(sealed, context: context(message))
    } catch {
      // The context that versions without separate name spaces used.
      payload = try sealer.open(
        sealed, context: "message/\(message.id)/\(message.owner.text)")
    }
    return String(decoding: payload, as: UTF8.self)
  }
}

/// A secure notification as stored by the backend.
package struct StoredMessage: Hashable, Sendable {
  /// 22 characters of base64url: 128 random bits, so that ids cannot be guessed.
  package let id: String
  package let owner: UserName
  package let createdAt: Date
  package let expiresAt: Date
  /// Whether the payload is deleted at its first reading.
  package let isReadOnce: Bool
  /// The time of the first reading; `nil` before it.
  package let readAt: Date?
}

/// The result of requesting a message.
enum MessageReading: Hashable, Sendable {
  /// - Parameter payload: `nil` if the message could be read only once and has been.
  case found(StoredMessage, payload: String?)
  /// The message does not exist, is another user's, or has expired.
  case none
}

/// A device that a user has registered through the backend.
package struct StoredDevice: Hashable, Sendable {
  package let id: String
  package let isInstallation: Bool
  /// The raw value of a `PushPlatform`.
  package let platform: String
  package let sealingKey: String?
}

extension StoredDevice {
  /// Reads id, kind, platform and sealing key, the first four columns.
  init(_ row: borrowing Statement) {
    self.init(
      id: row.text(0), isInstallation: row.integer(1) != 0, platform: row.text(2),
      sealingKey: row.optionalText(3))
  }
}

/// An audit line about a request.
package struct AuditLine: Hashable, Sendable {
  package let at: Date
  /// A ``UserName/key``, or a description of an unidentified actor.
  package let actor: String
  /// `sign in`, `refresh`, `revoke`, `hub token`, `create`, `send`, `read`, `list`, `delete`,
  /// `register`, `unregister`, `detached`, `erase`.
  package let action: String
  /// The id of a message or device, or a user's name.
  package let subject: String
  /// `done`, or the reason for the failure.
  package let outcome: String
  package let address: String

  package init(
    at: Date, actor: String, action: String, subject: String, outcome: String, address: String
  ) {
    self.at = at
    self.actor = actor
    self.action = action
    self.subject = subject
    self.outcome = outcome
    self.address = address
  }
}
