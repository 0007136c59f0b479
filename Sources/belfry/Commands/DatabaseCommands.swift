import HubStorage
import NotificationHubs

struct DatabaseAdoptCommand: ResultCommand {
  static let about = CommandHelp(
    "database adopt", "declare that a PostgreSQL database has moved to another server",
    discussion: """
      Rows hold the numbers of the transactions that wrote them. On another PostgreSQL server these
      may lie in the future, and devices that a push service reports as dead would stay. A Belfry
      server detects another PostgreSQL server by itself, as after pg_restore. Run this if it
      cannot: after an upgrade by logical replication, if a server had opened the replica before, or
      if the database's user may not call pg_control_system() (`belfry check` says so).

      Stop the nodes first. If it is interrupted, run it again; a second run changes nothing.
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

  func result(in context: CommandContext) async throws -> CommandResult {
    let result = try await management.withStore(
      .changesNamespace, as: (.adoptDatabase, nil), in: context
    ) {
      runtime in
      let database = try runtime.database
      let alive = try await database.livingNodes()
      guard alive.isEmpty else {
        throw CommandFailure(
          "nodes work on the database (\(alive.map(\.name).joined(separator: ", "))): stop them, so that "
            + "nothing of what they write is taken for old")
      }
      let (registrations, notifications) = try await database.adoptServer()
      return Result(registrations: registrations, notifications: notifications)
    }
    return CommandResult(
      result,
      [
        "\(result.registrations) registrations had transaction numbers of another server, and count as "
          + "written before now; \(result.notifications) notifications are under way"
      ])
  }
}
