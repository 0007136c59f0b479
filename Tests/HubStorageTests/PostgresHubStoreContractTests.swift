import HubStorage
import HubTesting
import Testing

@Suite(
  "PostgreSQL keeps the contract of a hub store",
  .enabled(if: PostgresStores.areInstalled, "PostgreSQL's server is not installed"))
struct PostgresHubStoreContractTests {
  @Test("it holds that", arguments: HubStoreContract.clauses)
  func keeps(_ clause: HubStoreContract.Clause) async throws {
    try await PostgresStores.withNodes(1) { try await clause.check($0[0]) }
  }
}
