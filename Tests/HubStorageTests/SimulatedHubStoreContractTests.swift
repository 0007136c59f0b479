import HubSimulation
import StoreContract
import Testing

@Suite("The simulator's database keeps the contract of a hub store")
struct SimulatedHubStoreContractTests {
  @Test("it holds that", arguments: HubStoreContract.clauses)
  func keeps(_ clause: HubStoreContract.Clause) async throws {
    try await clause.check(SimulatedStore.alone())
  }
}
