import NotificationHubs

/// `belfry notification show`
struct NotificationShowCommand: Subcommand {
  static let help = CommandHelp(
    "notification show", "show what became of a notification",
    arguments: [("ID", "what `belfry send` printed")],
    options: ClientOptions.options + [
      .flag("--wait", "wait until every device has its outcome"),
      .value("--timeout", "SECONDS", "how long --wait waits (default 60)"),
    ],
    discussion: """
      With --wait the exit code is 1 when no device was reached, or the time is up.

      \(ClientOptions.note)
      """,
    examples: ["belfry notification show 2e7f83cc61d44e3d9397c86939918508-20200723042753-1-1"])

  let id: String
  let waits: Bool
  let timeout: Int
  let client: ClientOptions

  init(_ words: Words) throws {
    id = try words.argument(0)
    waits = words.flag("--wait")
    timeout = try words.integer("--timeout", in: 1...86_400) ?? 60
    client = ClientOptions(words: words)
  }

  func run(in context: CommandContext) async throws {
    let access = try await client.access(.looks("Send"), in: context)
    let telemetry = try await TelemetryWatch(access: access, client: client, context: context)
      .finished(id, within: waits ? .seconds(timeout) : .zero)
    try ShownTelemetry(telemetry).print(json: client.json, in: context)
    guard waits else { return }
    guard telemetry.state.isFinal else {
      throw CommandFailure("still \(telemetry.state) after \(timeout) s; it goes on")
    }
    try NotificationEnd.check(
      telemetry.state, succeeded: telemetry.count(of: .success), id, client.words)
  }
}
