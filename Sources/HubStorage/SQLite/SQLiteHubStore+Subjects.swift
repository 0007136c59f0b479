import HubCore

extension SQLiteHubStore: SubjectStore {
  package func reading<Value: Sendable>(
    _ call: String, _ body: @escaping @Sendable (any SubjectReading) throws -> Value
  ) async throws -> Value {
    try await read(call) { try body($0) }
  }

  package func polling<Value: Sendable>(
    _ call: String, _ body: @escaping @Sendable (any TargetReading) throws -> Value
  ) async throws -> Value {
    try await read(call, as: .delivery()) { try body($0) }
  }

  package var ownRetries: String {
    "retry r JOIN notification n ON n.id = r.notification AND n.ended_at IS NULL"
  }

  package func writing<Value: Sendable>(
    _ call: String, _ body: @escaping @Sendable (any SubjectWriting) throws -> Value
  ) async throws -> Value {
    try await write(call) { try body($0) }
  }
}
