import Foundation
import HubCore
import NotificationHubs
import PushDemo

/// `belfry demo`
struct DemoCommand: Subcommand {
  static let help = CommandHelp(
    "demo", "play the tutorial on this machine: hub, push services and a virtual phone",
    options: [
      .flag("--exit", "end once the phone has shown the push: 0 if it did, 1 if it did not"),
      .value("--port", "N", "the hub's port (default: free ports for everything)"),
      .flag("--json", "in place of the story, print what came of it as one line of JSON"),
      .value("--timeout", "SECONDS", "how long to wait for the push (default 30)"),
    ],
    discussion: """
      Tells the story of the Azure Notification Hubs tutorial step by step, each with the curl
      command that does the same, and then stays up until Ctrl-C so that you can try them.
      Nothing is kept. Needs no Azure, no Apple account and no phone.
      """,
    examples: ["belfry demo", "belfry demo --exit"])

  let exits: Bool
  let json: Bool
  let port: Int
  let timeout: Int

  init(_ words: Words) throws {
    exits = words.flag("--exit")
    json = words.flag("--json")
    port = try words.integer("--port", in: 0...65535) ?? 0
    timeout = try words.integer("--timeout", in: 1...3600) ?? 30
  }

  func run(in context: CommandContext) async throws {
    let signal = ShutdownSignal()
    var options = DevelopmentStack.Options()
    options.port = port
    options.log = context.log
    options.hubLog = HubLog(level: .warning, write: context.note)
    let stack = try await DevelopmentStack.start(options)
    do {
      var listener = context
      if json { listener.print = { _ in } }
      let ending = try await DemoStory(stack: stack, context: listener, limit: .seconds(timeout))
        .tell(stays: !exits)
      if json { try context.printJSON(ending) }
    } catch {
      await stack.stop(within: .zero)
      throw error
    }
    if !exits { _ = await signal.wait() }
    await stack.stop(within: .seconds(5))
  }
}
