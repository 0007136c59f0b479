import HubCore
import NotificationHubs

/// `belfry credential delete`
struct CredentialDeleteCommand: Subcommand {
  static let help = CommandHelp(
    "credential delete", "take a hub's credential of a push service away",
    arguments: [
      ("PLATFORM", CredentialPlatform.list + "; mpns or gcm, where hub management has set one")
    ], argumentWords: CredentialPlatform.words,
    options: ManagementOptions.options + [ManagementOptions.hub],
    discussion: ManagementOptions.note, examples: ["belfry credential delete apns --hub news"])

  let platform: PushPlatform
  let management: ManagementOptions

  init(_ words: Words) throws {
    platform = try CredentialPlatform.of(words, includesEnded: true)
    management = ManagementOptions(words: words)
  }

  func run(in context: CommandContext) async throws {
    try await management.withHub(.changes, in: context) { runtime in
      let hub = try await management.hubName(runtime, in: context)
      try await runtime.service.removeCredential(platform, hub: hub)
      if management.json {
        return try context.printJSON(["hub": hub, "deleted": platform.rawValue])
      }
      context.print("hub \(hub) has no \(CredentialPlatform.word(platform)) credential any more")
    }
  }
}
