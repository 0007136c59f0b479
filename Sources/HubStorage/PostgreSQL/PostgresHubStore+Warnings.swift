import HubCore
import SQLDatabase

extension PostgresHubStore {
  /// A condition that an operator should look at now; usually `nil`.
  package var lockWarning: StoreWarning? {
    guard engine.shared.health.hasWaitedForLocks else { return nil }
    return StoreWarning(
      code: "database-lock-held",
      text: "another session of the database holds locks that writes wait for: they are refused "
        + "after \(PostgresHealth.lockWait.components.seconds) s; see "
        + "docs/operate/troubleshooting.md for who it is")
  }

  /// Whether every role of the server may connect to the database, and so hold its locks.
  package func isOpenToAll() async throws -> Bool {
    try await read { session in
      try session.first(
        "SELECT has_database_privilege('public', current_database(), 'CONNECT')::int") == 1
    }
  }

  /// The names of the tables that the database lacks.
  package func missingTables() async throws -> [String] {
    try await read { session in
      let there = Set(
        try session.connection.rows(
          """
          SELECT relname::text FROM pg_class
          WHERE pg_table_is_visible(oid) AND relkind IN ('r', 'p')
          """
        ) { $0.text(0) })
      return PostgresSchema.tables(session.slots).filter { !there.contains($0) }
    }
  }

  /// Warnings to operators about the configuration of the database and of the connection to it.
  package func warnings() async throws -> [StoreWarning] {
    let options = engine.shared.options
    return try await read { session in
      [
        try PostgresWarnings(session).durabilityWarning(),
        try PostgresWarnings(session).lockWarning(options),
        PostgresWarnings(session).encryptionWarning(),
        try PostgresWarnings(session).serverWarning(),
      ].compactMap(\.self)
    }
  }

  /// Number of client connections of the server, and the limit without those reserved for
  /// superusers.
  package func connections() async throws -> (used: Int, limit: Int, version: String) {
    try await read { session in
      let row = try session.connection.statement(
        """
        SELECT (SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
          current_setting('max_connections')::BIGINT
            - current_setting('superuser_reserved_connections')::BIGINT,
          current_setting('server_version')
        """)
      guard try row.step() else { return (0, 0, "") }
      return (Int(row.integer(0)), Int(row.integer(1)), row.text(2))
    }
  }
}
