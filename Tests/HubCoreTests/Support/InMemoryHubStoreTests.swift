import HubTesting
import Testing

@Suite("The store in memory keeps the contract of a hub store")
struct InMemoryHubStoreTests {
  @Test("it holds that", arguments: HubStoreContract.clauses)
  func keeps(_ clause: HubStoreContract.Clause) async throws {
    try await clause.check(InMemoryHubStore())
  }
}
