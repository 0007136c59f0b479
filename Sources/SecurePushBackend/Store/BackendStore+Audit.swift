import Foundation
import SQLDatabase

extension BackendStore {
  /// How long lines are kept, in seconds: a year.
  static let auditLife: TimeInterval = 365 * 86_400

  func note(_ line: AuditLine) async throws {
    try await database.run { connection in
      try Self.note(line, outcome: line.outcome, connection)
    }
  }

  static func note(_ line: AuditLine, outcome: String, _ connection: any SQLConnection) throws {
    let last = try connection.statement("SELECT COALESCE(MAX(number), 0) FROM audit")
    let number = try last.step() ? last.integer(0) + 1 : 1
    let insert = try connection.statement(
      """
      INSERT INTO audit (number, at, actor, action, subject, outcome, address)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
      """)
    try insert.bind(number, at: 1)
    try insert.bind(line.at.storedTime, at: 2)
    try insert.bind(line.actor, at: 3)
    try insert.bind(line.action, at: 4)
    try insert.bind(line.subject, at: 5)
    try insert.bind(outcome, at: 6)
    try insert.bind(line.address, at: 7)
    try insert.run()
  }

  /// The latest lines, the newest first.
  /// - Parameter user: Only those by or about this user.
  package func audit(of user: UserName? = nil, limit: Int = 100) async throws -> [AuditLine] {
    try await database.run { connection in
      let rows = try connection.statement(
        """
        SELECT at, actor, action, subject, outcome, address FROM audit
        WHERE ?1 = '' OR actor = ?1 OR subject = ?1 ORDER BY number DESC LIMIT ?2
        """)
      try rows.bind(user?.key ?? "", at: 1)
      try rows.bind(Int64(limit), at: 2)
      var lines: [AuditLine] = []
      while try rows.step() {
        lines.append(
          AuditLine(
            at: Date(storedTime: rows.integer(0)), actor: rows.text(1), action: rows.text(2),
            subject: rows.text(3), outcome: rows.text(4), address: rows.text(5)))
      }
      return lines
    }
  }

  /// Forgets a user: messages, sign-ins, and the lines about them.
  /// - Returns: How many of each; `nil` when devices are left, which have to leave the hub first.
  func erase(_ user: UserName, audit line: AuditLine) async throws -> Erasure? {
    try await database.run { connection in
      func delete(_ sql: String) throws -> Int {
        let statement = try connection.statement(sql)
        try statement.bind(user.key, at: 1)
        return try connection.changes(running: statement)
      }
      do {
        let rest = try connection.statement("SELECT 1 FROM device WHERE owner = ?1 LIMIT 1")
        try rest.bind(user.key, at: 1)
        if try rest.step() { return nil }
      }
      _ = try delete("DELETE FROM session WHERE owner = ?1")
      _ = try delete("DELETE FROM detached WHERE owner = ?1")
      let erasure = Erasure(
        messages: try delete("DELETE FROM message WHERE owner = ?1"),
        auditLines: try delete("DELETE FROM audit WHERE actor = ?1 OR subject = ?1"))
      try Self.note(line, outcome: "done", connection)
      return erasure
    }
  }
}

/// What the backend kept of a user before it forgot it.
package struct Erasure: Hashable, Sendable {
  package let messages: Int
  package let auditLines: Int
}
