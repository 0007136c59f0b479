import Foundation
import HubCore
import NotificationHubs

private let hubOption = Option.value(
  "--hub", "NAME", "the hub (may be left out when there is only one)")

/// `belfry credential set`
struct CredentialSetCommand: Subcommand {
  static let help = CommandHelp(
    "credential set", "give a hub its credential of a push service",
    arguments: [("PLATFORM", "apns, fcm, browser, wns, adm, baidu or xiaomi")],
    options: ManagementOptions.options + [
      hubOption,
      .value("--service-account", "FILE", "fcm: the JSON file of a service account"),
      .value("--private-key", "FILE", "browser: the private key of the VAPID pair"),
      .value("--subject", "WHO", "browser: mailto:ADDRESS or an https page"),
      .value("--package-sid", "SID", "wns: the package SID, ms-app://…"),
      .value("--client-id", "ID", "adm: the client id"),
      .value("--api-key", "KEY", "baidu: the API key"),
      .value(
        "--secret", "TEXT",
        "wns, adm, baidu, xiaomi: the secret (or BELFRY_CREDENTIAL_SECRET, which others cannot see)"
      ),
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
      "belfry credential set fcm --hub news --service-account service-account.json",
      "belfry credential set browser --hub news --subject mailto:ops@example.com --private-key vapid.pem",
    ])

  let platform: PushPlatform
  let files: APNsCredentialFiles
  let words: Words
  let management: ManagementOptions

  init(_ words: Words) throws {
    let platform = try words.argument(0)
    let word = ["fcm": "fcmv1", "web": "browser"][platform.lowercased()] ?? platform
    guard let known = PushPlatform(installationWord: word), ![.mpns, .gcm].contains(known) else {
      throw words.fault(
        "'\(platform)' is not served by this version; it is one of apns, fcm, browser, wns, adm, "
          + "baidu, xiaomi")
    }
    self.platform = known
    files = APNsCredentialFiles(
      keyFile: words.value("--key"), keyID: words.value("--key-id"),
      teamID: words.value("--team-id"), bundleID: words.value("--bundle-id"),
      certificateFile: words.value("--certificate"), password: words.value("--password"),
      endpoint: words.value("--endpoint"), otherEndpoint: words.value("--other-endpoint"))
    self.words = words
    management = ManagementOptions(words: words)
  }

  func run(in context: CommandContext) async throws {
    let credential = try credential(context.environment)
    try await management.withHub(in: context) { runtime in
      let hub = try await management.hubName(runtime)
      try await runtime.service.setCredential(credential, hub: hub, checkedBy: runtime.gateways)
      if management.json {
        return try context.printJSON(["hub": hub, "credential": credential.platform.rawValue])
      }
      context.print("hub \(hub) has its \(credential.platform.rawValue) credential")
    }
  }

  private func credential(_ environment: [String: String]) throws -> PushCredential {
    switch platform {
    case .apns:
      var files = files
      files.password = files.password ?? environment["BELFRY_CERTIFICATE_PASSWORD"]
      return try files.credential(at: Date())
    case .fcmv1:
      guard let file = words.value("--service-account") else {
        throw words.fault("fcm wants --service-account FILE")
      }
      return try FCMCredentialFile(serviceAccount: file, endpoint: words.value("--endpoint"))
        .credential(at: Date())
    case .browser:
      guard let subject = words.value("--subject") else {
        throw words.fault("browser wants --subject mailto:ADDRESS and --private-key FILE")
      }
      return try WebPushCredentialFiles(
        subject: subject, privateKeyFile: words.value("--private-key")
      ).credential(at: Date())
    default:
      return try PlainCredentialValues.credential(platform, at: Date()) { option in
        words.value(option)
          ?? (option == "--secret" ? environment["BELFRY_CREDENTIAL_SECRET"] : nil)
      }
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
          kind: Self.kind(credential),
          endpoint: credential["Endpoint"], app: Self.app(credential),
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

extension CredentialListCommand {
  private static func kind(_ credential: PushCredential) -> String {
    switch credential.platform {
    case .apns:
      credential["Token"] == nil ? "certificate" : "token key \(credential["KeyId"] ?? "")"
    case .fcmv1: "service account"
    case .browser: "VAPID pair"
    default: "secret"
    }
  }

  /// What names the app at its push service, none of which is secret.
  private static func app(_ credential: PushCredential) -> String? {
    ["AppName", "ProjectId", "VapidPublicKey", "PackageSid", "ClientId", "BaiduApiKey"]
      .lazy.compactMap { credential[$0] }.first
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
