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
    /// Handles that the push service has called dead in the last seven days.
    let handlesRemoved: Int
    /// What the server that runs says is wrong: `dead-handles`, `refused`.
    let alarms: [String]
  }

  func run(in context: CommandContext) async throws {
    try await management.withHub(in: context) { runtime in
      let hub = try await management.hubName(runtime, in: context)
      let removed = try await runtime.service.removedDevices(
        hub: try await runtime.hub(named: hub), RemovalWave())
      let alarms = await Self.alarms(runtime)
      let shown = try await runtime.service.credentials(hub: hub).map { credential in
        Shown(
          platform: credential.platform.rawValue,
          kind: Self.kind(credential),
          endpoint: Self.endpoint(credential), app: Self.app(credential),
          modifiedAt: credential.modifiedAt.formatted(.iso8601),
          expiresAt: runtime.gateways.end(of: credential)?.formatted(.iso8601),
          handlesRemoved: removed.items.filter { $0.platform == credential.platform }
            .reduce(0) { $0 + $1.registrations },
          alarms: Self.alarmMetrics.filter { metric, _, _ in
            alarms.contains(
              "\(metric){hub=\"\(hub)\",platform=\"\(credential.platform.rawValue)\"} 1")
          }.map { $0.code })
      }
      if management.json { return try context.printJSON(["credentials": shown]) }
      for one in shown {
        context.print(
          [
            one.platform, one.kind, one.app ?? "", one.endpoint ?? "", one.modifiedAt,
            one.expiresAt.map { "expires \($0)" } ?? "",
            one.handlesRemoved > 0 ? "\(one.handlesRemoved) handles removed in 7 days" : "",
          ].filter { !$0.isEmpty }.joined(separator: "  "))
        for (_, code, text) in Self.alarmMetrics where one.alarms.contains(code) {
          context.print("  ALARM: \(one.platform) \(text)")
        }
      }
      context.print(shown.count == 1 ? "1 credential" : "\(shown.count) credentials")
    }
  }

  private static let alarmMetrics: [(metric: String, code: String, text: String)] = [
    (
      "belfry_dead_handle_alarm", "dead-handles",
      "calls so many handles dead that none is removed; check app and environment of the "
        + "credential (docs/operations.md)"
    ),
    ("belfry_credential_refused", "refused", "refuses the credential"),
  ]

  /// The samples of the server's metrics; empty when none runs. Alarms are its alone to know.
  private static func alarms(_ runtime: HubRuntime) async -> Set<String> {
    guard runtime.data.isServed, let address = runtime.data.address,
      let url = URL(string: address + "/metrics"), let endpoint = ServiceEndpoint(parsing: address),
      let root = try? await runtime.service.rootPolicy()
    else { return [] }
    let token = SharedAccessSignature(
      resource: endpoint.url, keyName: root.name, key: root.primaryKey,
      expiresAt: Date().addingTimeInterval(60))
    let reply = try? await ClientTransport.shared.send(
      TransportRequest(
        method: "GET", url: url, headers: [WireName.authorization: token.text], body: nil))
    guard let reply, reply.status == 200 else { return [] }
    return Set(
      String(decoding: reply.body, as: UTF8.self).split(separator: "\n").map(String.init))
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
