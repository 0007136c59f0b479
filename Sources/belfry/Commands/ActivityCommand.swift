import Foundation
import NotificationHubs

struct ActivityCommand: ResultCommand {
  static let about = CommandHelp(
    "activity", "show who has changed or sent what, the newest first",
    discussion: """
      Without --hub it is the log of the whole namespace, for which a connection string has to be of
      the namespace.

      It does not include requests of devices, unless an operator made the change at the portal.

      The actions are \(ActivityAction.allCases.map(\.rawValue).joined(separator: ", ")).
      """,
    examples: [
      "belfry activity --from -1d", "belfry activity --hub news --action send --json",
      "belfry activity --actor user/ann",
    ])

  let client = ClientOptions(belfryOnly: "Manage", naming: .optional, directoryAccess: .inProcess)
  @Option(
    "--from", "TIME", "not before: 2030-01-05T10:00:00Z, or back from now: -90s, -2h, -3d", .instant
  )
  var from: Date?
  @Option("--until", "TIME", "before", .instant) var until: Date?
  @Option("--actor", "NAME", "only by this one: policy/NAME, user/NAME or command-line/NAME")
  var actor: String?
  @Option("--action", "WORD", "only this action", .word)
  var action: ActivityAction?
  @Option("--limit", "N", "at most so many", .integer(1...1_000_000)) var limit = 100

  func result(in context: CommandContext) async throws -> CommandResult {
    var query = ActivityQuery(from: from, until: until, actor: actor, action: action?.rawValue)
    query.pageSize = min(100, limit + 1)
    let found = try await client.withHub(in: context) { access in
      let list =
        access.hub.isEmpty ? access.namespace.activity(query) : access.client.activity(query)
      return try await list.first(limit + 1)
    }
    let shown = Array(found.prefix(limit))
    return CommandResult(
      written: ActivityList.json(shown),
      shown.map(Self.text) + [
        shown.count.counted("line") + (found.count > limit ? "; there are more: raise --limit" : "")
      ])
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
