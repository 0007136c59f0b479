import NotificationHubs

/// `belfry notification cancel`
struct NotificationCancelCommand: Subcommand {
  static let help = CommandHelp(
    "notification cancel", "take a scheduled notification back",
    arguments: [("ID", "what `belfry send --at` printed")], options: ClientOptions.options,
    discussion: """
      A notification whose time has come cannot be taken back: the hub refuses, and exit code 1 says
      so.

      \(ClientOptions.note)
      """,
    examples: [
      "belfry notification cancel af14e491a7994a65b7b3a5681a373337_20300105100000_1_1_Q-S1"
    ])

  let id: String
  let client: ClientOptions

  init(_ words: Words) throws {
    id = try words.argument(0)
    client = ClientOptions(words: words)
  }

  func run(in context: CommandContext) async throws {
    let access = try await client.access(.changes("Send"), in: context)
    try await access.calling { try await access.client.cancel(scheduled: id) }
    if client.json {
      try context.printJSON(["notificationId": id, "state": "Canceled"])
    } else {
      context.print("cancelled: \(id)")
    }
  }
}
