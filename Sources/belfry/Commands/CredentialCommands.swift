import Foundation
import HubCore
import NotificationHubs

private let hubOption = Option.value(
  "--hub", "NAME", "the hub (may be left out when there is only one)")

/// `belfry credential set`
struct CredentialSetCommand: Subcommand {
  static let help = CommandHelp(
    "credential set", "give a hub its credential of a push service",
    arguments: [("PLATFORM", "apns")],
    options: ManagementOptions.options + [
      hubOption,
      .value("--key", "FILE", "the .p8 signing key from Apple's developer portal"),
      .value("--key-id", "ID", "the key's id (taken from the name AuthKey_ID.p8 when left out)"),
      .value("--team-id", "ID", "the team that the key belongs to"),
      .value("--bundle-id", "ID", "the app, which is the topic of its pushes"),
      .value("--certificate", "FILE", "a .p12 with certificate and key, in place of a .p8"),
      .value("--password", "TEXT", "the password of the .p12 (or BELFRY_CERTIFICATE_PASSWORD)"),
      .value("--endpoint", "WHERE", "production (default), sandbox, or a URL"),
      .value(
        "--other-endpoint", "URL",
        "where tokens are tried that it does not know (default Apple's other environment), or none"),
    ],
    discussion: """
      The credential is checked before it is kept (does it parse, does the key fit, has it
      expired), and sealed at rest.

      \(ManagementOptions.note)
      """,
    examples: [
      "belfry credential set apns --hub news --key AuthKey_ABC123DEFG.p8 --team-id DEF123GHIJ \\",
      "    --bundle-id com.example.news",
      "belfry credential set apns --hub news --certificate push.p12 --endpoint sandbox",
    ])

  let files: APNsCredentialFiles
  let words: Words
  let management: ManagementOptions

  init(_ words: Words) throws {
    let platform = try words.argument(0)
    guard PushPlatform(installationWord: platform) == .apns else {
      throw words.fault("'\(platform)' is not served by this version; the platform is apns")
    }
    files = APNsCredentialFiles(
      keyFile: words.value("--key"), keyID: words.value("--key-id"),
      teamID: words.value("--team-id"), bundleID: words.value("--bundle-id"),
      certificateFile: words.value("--certificate"), password: words.value("--password"),
      endpoint: words.value("--endpoint"), otherEndpoint: words.value("--other-endpoint"))
    self.words = words
    management = ManagementOptions(words: words)
  }

  func run(in context: CommandContext) async throws {
    var files = files
    files.password = files.password ?? context.environment["BELFRY_CERTIFICATE_PASSWORD"]
    let credential = try files.credential(at: Date())
    try await management.withHub(in: context) { runtime in
      let hub = try await management.hubName(runtime)
      try await runtime.service.setCredential(credential, hub: hub, checkedBy: runtime.gateways)
      if management.json {
        return try context.printJSON(["hub": hub, "credential": credential.platform.rawValue])
      }
      context.print("hub \(hub) has its apns credential")
    }
  }
}

/// `belfry credential list`
struct CredentialListCommand: Subcommand {
  static let help = CommandHelp(
    "credential list", "list a hub's credentials, without their secrets",
    options: ManagementOptions.options + [hubOption], discussion: ManagementOptions.note,
    examples: ["belfry credential list --hub news"])

  let management: ManagementOptions
  init(_ words: Words) { management = ManagementOptions(words: words) }

  private struct Shown: Encodable {
    let platform: String
    let kind: String
    let endpoint: String?
    let app: String?
    let modifiedAt: String
  }

  func run(in context: CommandContext) async throws {
    try await management.withHub(in: context) { runtime in
      let hub = try await management.hubName(runtime)
      let shown = try await runtime.service.credentials(hub: hub).map { credential in
        Shown(
          platform: credential.platform.rawValue,
          kind: credential["Token"] == nil
            ? "certificate" : "token key \(credential["KeyId"] ?? "")",
          endpoint: credential["Endpoint"], app: credential["AppName"],
          modifiedAt: credential.modifiedAt.formatted(.iso8601))
      }
      if management.json { return try context.printJSON(["credentials": shown]) }
      for one in shown {
        context.print(
          [one.platform, one.kind, one.app ?? "", one.endpoint ?? "", one.modifiedAt]
            .filter { !$0.isEmpty }.joined(separator: "  "))
      }
      context.print(shown.count == 1 ? "1 credential" : "\(shown.count) credentials")
    }
  }
}

/// `belfry credential delete`
struct CredentialDeleteCommand: Subcommand {
  static let help = CommandHelp(
    "credential delete", "take a hub's credential of a push service away",
    arguments: [("PLATFORM", "apns")], options: ManagementOptions.options + [hubOption],
    discussion: ManagementOptions.note, examples: ["belfry credential delete apns --hub news"])

  let platform: PushPlatform
  let management: ManagementOptions

  init(_ words: Words) throws {
    let word = try words.argument(0)
    guard let platform = PushPlatform(installationWord: word) else {
      throw words.fault("'\(word)' is no platform")
    }
    self.platform = platform
    management = ManagementOptions(words: words)
  }

  func run(in context: CommandContext) async throws {
    try await management.withHub(in: context) { runtime in
      let hub = try await management.hubName(runtime)
      try await runtime.service.removeCredential(platform, hub: hub)
      if management.json {
        return try context.printJSON(["hub": hub, "deleted": platform.rawValue])
      }
      context.print("hub \(hub) has no \(platform.rawValue) credential any more")
    }
  }
}
