import HubStorage
import HubTesting
import StoreContract
import Testing

@Suite("SQLite keeps the contract of a hub store")
struct SQLiteHubStoreContractTests {
  @Test("it holds that", arguments: HubStoreContract.clauses)
  func keeps(_ clause: HubStoreContract.Clause) async throws {
    try await withTemporaryStore { try await clause.check($0) }
  }

  @Test(
    "it holds, with no memory for bitmaps, tags merged at once and templates counted by rows, that",
    arguments: HubStoreContract.clauses)
  func keepsWithoutMemory(_ clause: HubStoreContract.Clause) async throws {
    var options = SQLiteHubStore.Options()
    options.audienceBytes = 0
    options.tagLogLimit = 3
    options.keyLogLimit = 3
    options.keyPortion = 1
    options.countedNames = 1
    options.readers = 1
    try await withTemporaryStore(options: options) { try await clause.check($0) }
  }
}
