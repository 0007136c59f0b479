package import HubCore

extension SQLiteHubStore {
  package func targets(
    _ query: AudienceQuery, after: RegistrationID, limit: Int
  ) async throws -> TargetPage {
    // Evaluation starts and ends its own transactions.
    try await readers.perform { try $0.targets(query, after: after, limit: limit) }
  }

  package func count(_ query: AudienceQuery) async throws -> Int {
    try await readers.perform { try $0.count(query) }
  }
}
