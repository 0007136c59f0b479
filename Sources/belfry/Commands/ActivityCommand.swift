import Foundation
import HubCore
import NotificationHubs

struct ActivityCommand: Subcommand {
  static let about = CommandHelp(
    "activity", "show who has changed or sent what, the newest first",
    discussion: """
      Reads the data directory, also when no server runs on it; with a connection string it asks a
      server over HTTP. Without --hub it is the log of the whole namespace, for which a connection
      string has to be of the namespace.

      It does not include requests of devices, unless an operator made the change at the portal.
      """,
    examples: [
      "belfry activity --from -1d", "belfry activity --hub news --action send --json",
      "belfry activity --actor user/ann",
    ])

  let client = ClientOptions(belfryOnly: "Manage")
  @Option(
    "--from", "TIME", "not before: 2030-01-05T10:00:00Z, or back from now: -90s, -2h, -3d", .instant
  )
  var from: Date?
  @Option("--until", "TIME", "before", .instant) var until: Date?
  @Option("--actor", "NAME", "only by this one: policy/NAME, user/NAME or command-line/NAME")
  var actor: String?
  @Option("--action", "WORD", "only this: send, updateHub, deleteHub …") var action: String?
  @Option("--limit", "N", "at most so many", .integer(1...1_000_000)) var limit = 100

  func run(in context: CommandContext) async throws {
    var query = ActivityQuery(from: from, until: until, actor: actor, action: action)
    query.pageSize = min(100, limit + 1)
    let place = client.place
    let found: [HubActivity]
    if case .connection(let connection) = try place.target(in: context).place {
      found = try await ask(connection, query, in: context)
    } else {
      let asked = query
      found = try await place.withHub(in: context) { try await read($0, asked, in: context) }
    }
    let shown = Array(found.prefix(limit))
    if client.json { return context.printJSON(written: ActivityList.json(shown)) }
    for line in shown { context.print(Self.text(line)) }
    context.print(
      shown.count.counted("line") + (found.count > limit ? "; there are more: raise --limit" : ""))
  }

  private func ask(
    _ connection: ConnectionString, _ query: ActivityQuery, in context: CommandContext
  ) async throws -> [HubActivity] {
    guard client.hub ?? context.environment["BELFRY_HUB"] == nil else {
      let access = try await client.access(.looks("Manage"), in: context)
      return try await access.calling { try await access.client.activity(query).first(limit + 1) }
    }
    let access = try client.namespaceAccess(connection, in: context)
    return try await access.calling {
      try await NamespaceClient(
        connectionString: access.connection, transport: access.transport
      ).activity(query).first(limit + 1)
    }
  }

  private func read(
    _ runtime: HubRuntime, _ query: ActivityQuery, in context: CommandContext
  ) async throws -> [HubActivity] {
    var hub: Hub?
    if let name = client.hub ?? context.environment["BELFRY_HUB"] {
      hub = try await runtime.hub(named: name)
    }
    var lines: [HubActivity] = []
    var after: ListPosition?
    repeat {
      let page = try await runtime.service.activity(
        query, hub: hub, after: after, limit: limit + 1 - lines.count)
      lines += page.lines
      after = page.next
    } while after != nil && lines.count <= limit
    return lines
  }

  private static func text(_ line: HubActivity) -> String {
    [
      line.time.formatted(.iso8601), (line.hub ?? "-").padded(to: 16),
      line.actor.padded(to: 40), line.via.rawValue.padded(to: 12), String(line.status),
      line.action + (line.object.map { " \($0)" } ?? ""),
      line.address.isEmpty ? "" : "from \(line.address)",
    ].filter { !$0.isEmpty }.joined(separator: "  ")
  }
}
