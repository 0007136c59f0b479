import HubSimulation
import HubStorage
import HubTesting
import Testing

@Suite("The simulator's database answers random calls")
struct StoreTwinTests {
  @Test("as the engine on a file does", arguments: UInt64(1)...12)
  func file(seed: UInt64) async throws {
    try await withTemporaryStore { engine in
      try await StoreTwins.compare(engine, SimulatedStore.alone(), seed: seed, rounds: 150)
    }
  }

  @Test(
    "as the engine for several nodes does",
    .enabled(if: PostgresStores.areInstalled, "PostgreSQL's server is not installed"),
    arguments: UInt64(101)...104)
  func database(seed: UInt64) async throws {
    try await PostgresStores.withNodes(1) { nodes in
      try await StoreTwins.compare(nodes[0], SimulatedStore.alone(), seed: seed, rounds: 100)
    }
  }
}
