import HubCore
import NotificationHubs
import SQLDatabase

extension PostgresHubStore {
  /// Makes everything that is stored count as written before what happens on this server, whether
  /// or not it is known that the database came from another one. Can be called again after an
  /// interruption.
  /// - Returns: Number of registrations with transaction numbers in this server's future, and
  ///   number of notifications that are being delivered.
  package func adoptServer() async throws -> (registrations: Int, notifications: Int) {
    try await engine.perform(.single, on: engine.writers, ifUnclear: .again) { session in
      try session.connection.withoutAnswerLimit {
        try PostgresSchema.adopt(session.connection, session.slots)
      }
    }
  }
}

extension PostgresHubStore {
  /// Closes the database to servers, because its hub was moved away.
  /// - Parameter note: The destination and the time.
  package func noteMoved(_ note: String) async throws {
    try await write { session in
      try session.execute("CREATE TABLE IF NOT EXISTS moved (note TEXT NOT NULL)")
      try session.execute("DELETE FROM moved")
      try session.execute("INSERT INTO moved VALUES (?1)", note)
    }
  }

  /// The destination and time of a move of its hub; usually `nil`.
  package func moved() async throws -> String? {
    try await read { session in
      let isThere = try session.connection.rows("SELECT to_regclass('moved') IS NOT NULL") {
        $0.integer(0) != 0
      }
      guard isThere == [true] else { return nil }
      return try session.connection.rows("SELECT note FROM moved") { $0.text(0) }.first
    }
  }

  /// Whether a database has never stored anything of a hub.
  /// - Throws: ``StoreError`` when it cannot be reached.
  package static func isNew(at address: String) throws -> Bool {
    do {
      let connection = try PostgresConnection(address: address, component: "hub")
      defer { connection.close() }
      return try connection.schemaVersion() == 0
    } catch {
      throw PostgresRefusal.opening(error, address: address)
    }
  }
}
