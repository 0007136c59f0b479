import Authentication
package import SQLDatabase

/// Nodes count wrong passwords together.
extension PostgresHubStore: AttemptDatabase {
  package var attemptTable: String { PostgresSchema.attempts }
  /// Each attempt has a transaction of its own, of a few milliseconds, on one of the connections
  /// for sends.
  package var attemptsAtOnce: Int { 64 }

  package func countingAttempts<Value: Sendable>(
    _ body: @escaping @Sendable (any SQLConnection) throws -> Value
  ) async throws -> Value {
    try await write { session in
      // A node that was suspended in the middle of a count must not block the writers of the
      // others.
      try session.execute("SET LOCAL lock_timeout = '1s'")
      return try body(session.connection)
    }
  }
}
