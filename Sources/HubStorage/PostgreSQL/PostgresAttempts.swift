import Authentication
package import SQLDatabase

/// Nodes count wrong passwords together.
extension PostgresHubStore: AttemptDatabase {
  package var attemptTable: String { PostgresSchema.attempts }

  package func countingAttempts<Value: Sendable>(
    _ body: @escaping @Sendable (any SQLConnection) throws -> Value
  ) async throws -> Value {
    try await write { try body($0.connection) }
  }
}
