package import Foundation
package import HubStorage

/// Stores of the engine for several nodes, each on a database of its own of a server that all tests
/// of the process share.
package enum PostgresStores {
  /// Whether the server's programs are on this machine; `script/bootstrap` installs them.
  package static var areInstalled: Bool { PostgresServer.isInstalled }
  /// Why tests are left out.
  package static let absence = "PostgreSQL's server is not installed; script/bootstrap installs it"

  /// Few connections: many tests run at a time. Counts are exact, however busy the machine is.
  package static var options: PostgresHubStore.Options {
    var options = PostgresHubStore.Options()
    (options.writers, options.batchWriters, options.readers) = (2, 1, 2)
    options.countTime = .seconds(600)
    return options
  }

  /// The address of a new database that has the hub's tables.
  package static func makeDatabase() async throws -> String {
    try await PostgresServer.shared().makeDatabase(like: "hub") { address in
      try await PostgresHubStore.open(
        address: address, sealing: TestSealing(), options: options
      ).close()
    }
  }

  /// Opens a node's store.
  package static func open(
    _ address: String, as name: String = "node",
    options: PostgresHubStore.Options = PostgresStores.options,
    lease: TimeInterval = StoreNode.usualLease
  ) async throws -> PostgresHubStore {
    let store = try await PostgresHubStore.open(
      address: address, sealing: TestSealing(), options: options)
    do {
      try await store.join(as: StoreNode(name: name, lease: lease))
    } catch {
      try await store.close()
      throw error
    }
    return store
  }

  /// Runs `body` on the stores of nodes that share a new database, and closes them.
  /// - Parameters:
  ///   - bouncer: Stands between them and the database.
  ///   - lease: A long one has no heartbeats during a test.
  package static func withNodes(
    _ count: Int, options: PostgresHubStore.Options = PostgresStores.options,
    through bouncer: PgBouncer? = nil, lease: TimeInterval = StoreNode.usualLease,
    _ body: ([PostgresHubStore]) async throws -> Void
  ) async throws {
    var address = try await makeDatabase()
    if let bouncer { address = bouncer.address(of: address) }
    var nodes: [PostgresHubStore] = []
    let result: Result<Void, any Error>
    do {
      for number in 1...count {
        nodes.append(try await open(address, as: "node-\(number)", options: options, lease: lease))
      }
      result = .success(try await body(nodes))
    } catch {
      result = .failure(error)
    }
    for node in nodes { try await node.close() }
    try result.get()
  }
}
