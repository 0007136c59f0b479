import HubTesting
import SQLDatabase
import StoreContract
import Testing

@testable import HubStorage

@Suite(
  "A snapshot of a PostgreSQL database",
  .enabled(if: PostgresStores.areInstalled, "PostgreSQL's server is not installed"))
struct PostgresSnapshotTests {
  @Test("that the database has ended is reported as such by what reads it")
  func lost() async throws {
    let address = try await PostgresStores.makeDatabase()
    let snapshot = try PostgresSnapshot(of: address)
    var options = PostgresStores.options
    options.snapshot = snapshot.name
    let store = try await PostgresHubStore.open(
      address: address, sealing: TestSealing(), options: options)
    #expect(try await store.hubs().isEmpty)
    let connection = try PostgresConnection(address: address, component: "test")
    defer { connection.close() }
    let ended = try connection.numbers(
      """
      SELECT CAST(pg_terminate_backend(pid, 60000) AS INT) FROM pg_stat_activity
      WHERE datname = current_database() AND state = 'idle in transaction'
      """)
    #expect(ended == [1])
    let error = await #expect(throws: PostgresSnapshot.Lost.self) { _ = try await store.hubs() }
    #expect(
      error?.description == "the database ended the backup's snapshot; make the backup again")
    withExtendedLifetime(snapshot) {}
    try await store.close()
  }

  @Test("is held without the server's time limits, of which older servers know fewer")
  func settings() {
    func limits(_ version: Int) -> [String] {
      PostgresSnapshot.settings(ofServer: version).filter { $0.value == "0" }.map(\.name)
    }
    #expect(limits(160_004) == ["idle_in_transaction_session_timeout"])
    #expect(limits(170_000) == ["idle_in_transaction_session_timeout", "transaction_timeout"])
  }
}
