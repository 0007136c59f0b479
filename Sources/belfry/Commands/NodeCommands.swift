import Foundation
import HubStorage

struct NodeListCommand: ResultCommand {
  static let about = CommandHelp(
    "node list", "list the servers that work on a PostgreSQL database as one hub",
    discussion: """
      A node writes a heartbeat to the database every two seconds. After ten seconds without one the
      others take over its work; the list keeps the node for a day.
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
    /// The seconds since the node was last heard of.
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

  func result(in context: CommandContext) async throws -> CommandResult {
    let nodes = try await management.withStore(in: context) { try await $0.database.nodes() }
    let rows = nodes.map { node in
      String(node.id).padded(to: 5) + " " + node.name.padded(to: 20) + " "
        + (node.isAlive ? "alive" : "silent for \(Int(node.silence)) s").padded(to: 20) + " "
        + "belfry \(node.version) \(node.address)"
    }
    return CommandResult(
      nodes.map(Node.init), rows.isEmpty ? ["no server works on this database"] : rows)
  }
}

extension HubRuntime {
  /// The PostgreSQL database of the hubs.
  /// - Throws: `UsageError` if they are in a file.
  var database: PostgresHubStore {
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
