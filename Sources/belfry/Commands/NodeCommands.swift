import Foundation
import HubStorage

struct NodeListCommand: Subcommand {
  static let about = CommandHelp(
    "node list", "list the servers that work on a PostgreSQL database as one hub",
    discussion: """
      A node tells the database every two seconds that it lives. After ten seconds of silence the
      others take over what it had; the list remembers it for a day.
      """,
    examples: [
      "belfry node list --data /var/lib/belfry", "BELFRY_DATABASE=… belfry node list --json",
    ])

  private let management = ManagementOptions(namesHub: false, settings: [.database])

  private struct Node: Encodable {
    let id: Int64
    let name: String
    let address: String
    let version: String
    let startedAt: Date
    let isAlive: Bool
    /// Seconds since it was heard of.
    let silence: Double

    init(_ node: StoreNode) {
      id = node.id
      name = node.name
      address = node.address
      version = node.version
      startedAt = node.startedAt
      isAlive = node.isAlive
      silence = node.silence
    }
  }

  func run(in context: CommandContext) async throws {
    let nodes = try await management.withHub(in: context) { try await $0.database.nodes() }
    if management.json { return try context.printJSON(nodes.map(Node.init)) }
    if nodes.isEmpty { context.print("no server works on this database") }
    for node in nodes {
      context.print(
        String(node.id).padded(to: 5) + " " + node.name.padded(to: 20) + " "
          + (node.isAlive ? "alive" : "silent for \(Int(node.silence)) s").padded(to: 20) + " "
          + "belfry \(node.version) \(node.address)")
    }
  }
}

struct DatabaseAdoptCommand: Subcommand {
  static let about = CommandHelp(
    "database adopt", "say that a PostgreSQL database has come to another server",
    discussion: """
      Rows name the transactions that wrote them by numbers of their PostgreSQL server. On another one
      these may lie in the future, and devices that a push service calls dead would stay. A server that
      opens the database notices another PostgreSQL server by itself, as after pg_restore; give this
      where it cannot: after an upgrade by logical replication, when a server had opened the replica
      before, or where the database's user may not call pg_control_system() (`belfry check` tells).

      Stop the nodes first. Interrupted, run it again; run twice, it changes nothing more.
      """,
    examples: [
      "belfry database adopt --data /var/lib/belfry",
      "BELFRY_DATABASE=… belfry database adopt --json",
    ])

  private let management = ManagementOptions(namesHub: false, settings: [.database])

  private struct Result: Encodable {
    let registrations: Int
    let notifications: Int
  }

  func run(in context: CommandContext) async throws {
    let change = HubPlace.Change("adoptDatabase")
    let result = try await management.withHub(.changesNamespace, as: change, in: context) {
      runtime in
      let database = try runtime.database
      let alive = try await database.nodes().filter(\.isAlive)
      guard alive.isEmpty else {
        throw CommandFailure(
          "nodes work on the database (\(alive.map(\.name).joined(separator: ", "))): stop them, so that "
            + "nothing of what they write is taken for old")
      }
      let (registrations, notifications) = try await database.adoptServer()
      return Result(registrations: registrations, notifications: notifications)
    }
    if management.json { return try context.printJSON(result) }
    context.print(
      "\(result.registrations) registrations named transactions that this server has not come to, and "
        + "count as written before; \(result.notifications) notifications are under way")
  }
}

extension HubRuntime {
  /// The PostgreSQL database that the hubs are in.
  /// - Throws: `UsageError` where they are in a file.
  fileprivate var database: PostgresHubStore {
    get throws {
      guard let shared else {
        throw UsageError(
          "\(data.path) keeps its hubs in a file, which has one server; nodes share a PostgreSQL "
            + "database, named with --database URL")
      }
      return shared
    }
  }
}
