import Cryptography
import Foundation
import HubCore
import NotificationHubs
import PushGateways
import Wire

struct CredentialSetCommand: Subcommand {
  static let about = CommandHelp(
    "credential set", "set the credential of a hub for a push service",
    discussion: """
      The credential is checked before it is stored (that it parses, that its parts match, that it
      has not expired), and sealed at rest; it is never shown again. A running hub uses it for the
      next send.

      --probe asks the push service without sending to a device. It exits with 1 if the service
      refuses the credential and with 69 if it cannot be reached; in both cases nothing is stored.
      """,
    examples: [
      "belfry credential set apns --hub news --key AuthKey_ABC123DEFG.p8 --team-id DEF123GHIJ \\",
      "    --bundle-id com.example.news --probe",
      "belfry credential set apns --hub news --certificate push.p12 --endpoint sandbox",
      "belfry credential set fcm --hub news --service-account service-account.json",
      "belfry credential set web --hub news --subject mailto:ops@example.com --generate",
      "belfry credential set wns --hub news --tenant-id TENANT --client-id CLIENT",
    ])

  @Argument("PLATFORM", CredentialPlatform.list, .servedPlatform) var platform: PushPlatform
  let management = ManagementOptions(settings: [.trust, .serviceHosts])
  let options = CredentialOptions()
  @Flag("--probe", "try it at the push service first, and keep it only if that accepts it")
  var probes

  private struct Answer: Encodable {
    let hub: String
    let credential: String
    let applicationServerKey: String?
    let probe: String?
    let expiresAt: String?
  }

  func run(in context: CommandContext) async throws {
    try options.check(for: platform)
    let credential = try options.credential(platform, environment: context.environment)
    do {
      try PushGatewayDirectory.check(credential, at: Date())
    } catch {
      throw CredentialNames.options.fault(error, of: platform)
    }
    try await management.withHub(
      .changes, as: .init("setCredential", platform.rawValue), in: context
    ) { runtime in
      let hub = try await management.place.hubName(runtime, in: context)
      let pair = try await runtime.service.credentials(hub: hub)
        .first { $0.platform == .browser }?["VapidPublicKey"]
      if let pair, options.generates { throw Self.secondPair(pair, of: hub) }
      let probe = try await probe(credential, in: runtime)
      let file = try newKeyFile()
      do {
        try await runtime.service.setCredential(credential, hub: hub, checkedBy: runtime.gateways)
        try file?.write(try Self.pem(credential))
      } catch {
        file?.remove()
        throw error
      }
      try report(
        credential, hub: hub, probe: probe, end: runtime.gateways.end(of: credential), context)
      if let pair, let now = credential["VapidPublicKey"], pair != now {
        context.note(
          "the pair is another than before: pages that subscribed with \(pair) must do so again")
      }
    }
  }

  /// A second key pair would invalidate the subscriptions, which are bound to the first.
  private static func secondPair(_ publicKey: String, of hub: String) -> CommandFailure {
    CommandFailure(
      "hub \(hub) has a VAPID pair already (public key \(publicKey)); a new one would end every "
        + "subscription that pages made with it. If that is meant, run `belfry credential delete "
        + "web --hub \(hub)` first")
  }

  private func probe(
    _ credential: PushCredential, in runtime: HubRuntime
  ) async throws -> CredentialProbe? {
    guard probes else { return nil }
    let probe = try await runtime.gateways.probe(credential)
    switch probe.verdict {
    case .accepted, .untried: return probe
    case .refused: throw CommandFailure("\(probe.text) It is not kept.")
    case .unreachable, .undecided:
      throw CommandFailure(
        "\(probe.text) It is not kept; without --probe it would be.", exitCode: .unreachable)
    }
  }

  private func newKeyFile() throws -> NewKeyFile? {
    guard options.generates, let path = options.privateKey else { return nil }
    return try NewKeyFile(path)
  }

  private static func pem(_ credential: PushCredential) throws -> String {
    let scalar = Base64.decodeAnyAlphabet((credential["VapidPrivateKey"] ?? "").utf8) ?? []
    return try P256PrivateKey(scalar: scalar).pem()
  }

  private func report(
    _ credential: PushCredential, hub: String, probe: CredentialProbe?, end: Date?,
    _ context: CommandContext
  ) throws {
    let publicKey = credential["VapidPublicKey"]
    if management.json {
      return try context.printJSON(
        Answer(
          hub: hub, credential: credential.platform.rawValue, applicationServerKey: publicKey,
          probe: probe?.verdict.rawValue, expiresAt: end?.formatted(.iso8601)))
    }
    if let probe { context.print(probe.text) }
    context.print("hub \(hub) has its \(credential.platform.word) credential")
    if let end {
      let isNear = end < Date().addingTimeInterval(CredentialEnd.notice)
      context.print("it expires on \(end.formatted(.iso8601))" + (isNear ? ": renew it soon" : ""))
    }
    if options.generates, let publicKey {
      context.print("pages subscribe with this applicationServerKey:")
      context.print(publicKey)
    }
  }
}

struct CredentialListCommand: Subcommand {
  static let about = CommandHelp(
    "credential list", "list a hub's credentials, without their secrets",
    examples: ["belfry credential list --hub news"])

  let management = ManagementOptions()

  private struct Shown: Encodable {
    let platform: String
    let kind: String
    /// The key id of an APNs token.
    let keyId: String?
    let endpoint: String?
    let app: String?
    let modifiedAt: String
    let expiresAt: String?
    /// The number of handles that the push service reported dead in the last seven days.
    let handlesRemoved: Int
    /// The alarms of the running server: `dead-handles`, `refused`.
    let alarms: [String]
  }

  func run(in context: CommandContext) async throws {
    try await management.withHub(in: context) { runtime in
      let hub = try await management.place.hubName(runtime, in: context)
      let removed = try await runtime.service.removedDevices(
        hub: try await runtime.hub(named: hub), RemovalWave())
      let alarms = await Self.alarms(runtime)
      let shown = try await runtime.service.credentials(hub: hub).map { credential in
        Shown(
          platform: credential.platform.rawValue,
          kind: credential.kind, keyId: credential["KeyId"],
          endpoint: credential.endpoint, app: credential.app,
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
            one.platform, one.kind, one.keyId.map { "key \($0)" } ?? "", one.app ?? "",
            one.endpoint ?? "", one.modifiedAt,
            one.expiresAt.map { "expires \($0)" } ?? "",
            one.handlesRemoved > 0 ? "\(one.handlesRemoved) handles removed in 7 days" : "",
          ].filter { !$0.isEmpty }.joined(separator: "  "))
        for (_, code, text) in Self.alarmMetrics where one.alarms.contains(code) {
          context.print("  ALARM: \(one.platform) \(text)")
        }
      }
      context.print(shown.count.counted("credential"))
    }
  }

  private static let alarmMetrics: [(metric: String, code: String, text: String)] = [
    (
      "belfry_dead_handle_alarm", "dead-handles",
      "calls so many handles dead that none is removed; check app and environment of the "
        + "credential (docs/operate/troubleshooting.md)"
    ),
    ("belfry_credential_refused", "refused", "refuses the credential"),
  ]

  /// The samples of the server's metrics; empty if no server is running. Only the server knows its
  /// alarms.
  private static func alarms(_ runtime: HubRuntime) async -> Set<String> {
    guard let endpoint = runtime.data.servedEndpoint,
      let url = URL(string: endpoint.url + "/metrics"),
      let root = try? await runtime.service.rootPolicy()
    else { return [] }
    let token = root.connectionString(endpoint: endpoint).token(for: endpoint.url, lifetime: 60)
    let reply = try? await ClientTransport.shared.send(
      TransportRequest(
        method: "GET", url: url, headers: [WireName.authorization: token.text], body: nil))
    guard let reply, reply.status == 200 else { return [] }
    return Set(
      String(decoding: reply.body, as: UTF8.self).split(separator: "\n").map(String.init))
  }
}

struct CredentialProbeCommand: Subcommand {
  static let about = CommandHelp(
    "credential probe", "test the credential of a hub at its push service",
    discussion: """
      No device is affected: \(Self.probed(by: .push)) are sent a push for a device that does not
      exist, \(Self.probed(by: .validation)) one that it only validates, and
      \(Self.probed(by: .token)) are asked for an access token. Only a subscription names the push
      service of a browser, so for \(Self.probed(by: .none)) the key pair is checked here.

      Exits with 0 if the service accepts the credential or there is no service to ask, 1 if it
      refuses it, 69 if it cannot be reached or gives no answer about it.
      """,
    examples: ["belfry credential probe apns --hub news"])

  private static func probed(by probe: PhoneTraits.Probe) -> String {
    let words = PushPlatform.running.filter { $0.traits.phone?.probe == probe }.map(\.word)
    return words.dropLast().joined(separator: ", ") + (words.count > 1 ? " and " : "")
      + (words.last ?? "")
  }

  @Argument("PLATFORM", CredentialPlatform.list, .anyPlatform) var platform: PushPlatform
  let management = ManagementOptions(settings: [.trust, .serviceHosts])

  private struct Answer: Encodable {
    let hub: String
    let platform: String
    let verdict: String
    let reason: String?
    let text: String
  }

  func run(in context: CommandContext) async throws {
    try await management.withHub(in: context) { runtime in
      let hub = try await management.place.hubName(runtime, in: context)
      let present = try await runtime.service.credentials(hub: hub)
      guard let credential = present.first(where: { $0.platform == platform }) else {
        let word = platform.word
        throw CommandFailure(
          "hub \(hub) has no credential for \(word); set it with `belfry credential set \(word)`")
      }
      let probe = try await runtime.gateways.probe(credential)
      if management.json {
        try context.printJSON(
          Answer(
            hub: hub, platform: platform.rawValue, verdict: probe.verdict.rawValue,
            reason: probe.reason, text: probe.text))
      }
      switch probe.verdict {
      case .accepted, .untried: if !management.json { context.print(probe.text) }
      case .refused: throw CommandFailure(probe.text)
      case .unreachable, .undecided: throw CommandFailure(probe.text, exitCode: .unreachable)
      }
    }
  }
}

struct CredentialDeleteCommand: Subcommand {
  static let about = CommandHelp(
    "credential delete", "take a hub's credential of a push service away",
    examples: ["belfry credential delete apns --hub news"])

  @Argument(
    "PLATFORM", CredentialPlatform.list + "; mpns or gcm, where hub management has set one",
    .anyPlatform) var platform: PushPlatform
  let management = ManagementOptions()

  func run(in context: CommandContext) async throws {
    try await management.withHub(
      .changes, as: .init("deleteCredential", platform.rawValue), in: context
    ) { runtime in
      let hub = try await management.place.hubName(runtime, in: context)
      try await runtime.service.removeCredential(platform, hub: hub)
      if management.json {
        return try context.printJSON(["hub": hub, "deleted": platform.rawValue])
      }
      context.print("hub \(hub) has no \(platform.word) credential any more")
    }
  }
}
