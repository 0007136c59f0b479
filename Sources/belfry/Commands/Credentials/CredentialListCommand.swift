import Foundation
import HubCore
import NotificationHubs
import PushGateways

/// `belfry credential list`
struct CredentialListCommand: Subcommand {
  static let help = CommandHelp(
    "credential list", "list a hub's credentials, without their secrets",
    options: ManagementOptions.options + [ManagementOptions.hub],
    discussion: ManagementOptions.note, examples: ["belfry credential list --hub news"])

  let management: ManagementOptions
  init(_ words: Words) { management = ManagementOptions(words: words) }

  private struct Shown: Encodable {
    let platform: String
    let kind: String
    let endpoint: String?
    let app: String?
    let modifiedAt: String
    let expiresAt: String?
  }

  func run(in context: CommandContext) async throws {
    try await management.withHub(in: context) { runtime in
      let hub = try await management.hubName(runtime, in: context)
      let shown = try await runtime.service.credentials(hub: hub).map { credential in
        Shown(
          platform: credential.platform.rawValue,
          kind: Self.kind(credential),
          endpoint: Self.endpoint(credential), app: Self.app(credential),
          modifiedAt: credential.modifiedAt.formatted(.iso8601),
          expiresAt: runtime.gateways.end(of: credential)?.formatted(.iso8601))
      }
      if management.json { return try context.printJSON(["credentials": shown]) }
      for one in shown {
        context.print(
          [
            one.platform, one.kind, one.app ?? "", one.endpoint ?? "", one.modifiedAt,
            one.expiresAt.map { "expires \($0)" } ?? "",
          ].filter { !$0.isEmpty }.joined(separator: "  "))
      }
      context.print(shown.count == 1 ? "1 credential" : "\(shown.count) credentials")
    }
  }

  private static func kind(_ credential: PushCredential) -> String {
    switch credential.platform {
    case .apns:
      credential["Token"] == nil ? "certificate" : "token key \(credential["KeyId"] ?? "")"
    case .fcmv1: "service account"
    case .browser: "VAPID pair"
    case .wns where credential["TenantId"] != nil: "Entra secret"
    default: "secret"
    }
  }

  /// What names the app at its push service, none of which is secret.
  private static func app(_ credential: PushCredential) -> String? {
    ["AppName", "ProjectId", "VapidPublicKey", "PackageSid", "ClientId", "BaiduApiKey"]
      .lazy.compactMap { credential[$0] }.first
  }

  private static func endpoint(_ credential: PushCredential) -> String? {
    ["Endpoint", "SendUrlTemplate", "BaiduEndPoint", "WindowsLiveEndpoint"]
      .lazy.compactMap { credential[$0] }.first
  }
}
