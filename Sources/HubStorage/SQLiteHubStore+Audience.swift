package import HubCore

extension SQLiteHubStore {
  package func targets(
    _ query: AudienceQuery, after: RegistrationID, limit: Int
  ) async throws -> TargetPage {
    try await read { try $0.targets(query, after: after, limit: limit) }
  }

  package func count(_ query: AudienceQuery) async throws -> Int {
    try await read { try $0.count(query) }
  }
}
