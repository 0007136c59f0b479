import Cryptography
import Foundation
import HubCore
import NotificationHubs
import PushGateways
import Wire

struct CredentialSetCommand: ResultCommand {
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

  func result(in context: CommandContext) async throws -> CommandResult {
    try options.check(for: platform)
    let credential = try options.credential(platform, environment: context.environment)
    do {
      try PushGatewayDirectory.check(credential, at: Date())
    } catch {
      throw CredentialNames.options.fault(error, of: platform)
    }
    return try await management.withStore(
      .changes, as: (.setCredential, platform.rawValue), in: context
    ) { runtime in
      let hub = try await management.location.hubName(runtime, in: context)
      let pair = try await runtime.service.credentials.list(hub: hub)
        .first { $0.platform == .browser }?["VapidPublicKey"]
      if let pair, options.generates { throw Self.secondPair(pair, of: hub) }
      let probe = try await probe(credential, in: runtime)
      let file = try newKeyFile()
      do {
        try await runtime.service.credentials.set(credential, hub: hub, checkedBy: runtime.gateways)
        try file?.write(try Self.pem(credential))
      } catch {
        file?.remove()
        throw error
      }
      if let pair, let now = credential["VapidPublicKey"], pair != now {
        context.note(
          "the pair is another than before: pages that subscribed with \(pair) must do so again")
      }
      return report(
        credential, hub: hub, probe: probe, end: runtime.gateways.end(of: credential))
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
    _ credential: PushCredential, hub: String, probe: CredentialProbe?, end: Date?
  ) -> CommandResult {
    let publicKey = credential["VapidPublicKey"]
    var lines = probe.map { [$0.text] } ?? []
    lines.append("hub \(hub) has its \(credential.platform.word) credential")
    if let end {
      let isNear = end < Date().addingTimeInterval(CredentialEnd.notice)
      lines.append("it expires on \(end.formatted(.iso8601))" + (isNear ? ": renew it soon" : ""))
    }
    if options.generates, let publicKey {
      lines += ["pages subscribe with this applicationServerKey:", publicKey]
    }
    return CommandResult(
      Answer(
        hub: hub, credential: credential.platform.rawValue, applicationServerKey: publicKey,
        probe: probe?.verdict.rawValue, expiresAt: end?.formatted(.iso8601)), lines)
  }
}

struct CredentialListCommand: ResultCommand {
  static let about = CommandHelp(
    "credential list", "list a hub's credentials, without their secrets",
    examples: ["belfry credential list --hub news"])

  let client = ClientOptions(belfryOnly: "Manage", directoryAccess: .inProcess)

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
    /// The alarms of the running server, which a key of the namespace may read: `dead-handles`,
    /// `refused`.
    let alarms: [String]

    var lines: [String] {
      let row = [
        platform, kind, keyId.map { "key \($0)" } ?? "", app ?? "", endpoint ?? "", modifiedAt,
        expiresAt.map { "expires \($0)" } ?? "",
        handlesRemoved > 0 ? "\(handlesRemoved) handles removed in 7 days" : "",
      ].filter { !$0.isEmpty }.joined(separator: "  ")
      return [row]
        + alarmMetrics.filter { alarms.contains($0.code) }.map { "  ALARM: \(platform) \($0.text)" }
    }
  }

  func result(in context: CommandContext) async throws -> CommandResult {
    try await client.withHub(in: context) { access in
      let details = try await access.description(of: access.hub).credentials
      let removed = try await access.client.removedDevices().items
      let alarms = await Self.alarms(access)
      let shown = try await access.client.credentials().map { credential in
        let platform = credential.platform
        return Shown(
          platform: platform.rawValue, kind: credential.kind,
          keyId: details[platform]?.properties["KeyId"],
          endpoint: credential.endpoint, app: credential.app,
          modifiedAt: credential.modifiedAt.formatted(.iso8601),
          expiresAt: credential.expiresAt?.formatted(.iso8601),
          handlesRemoved: removed.filter { $0.platform == platform }
            .reduce(0) { $0 + $1.registrations },
          alarms: alarmMetrics.map(\.code).filter { code in
            alarms.contains { $0.code == code && $0.platform == platform.rawValue }
          })
      }
      return CommandResult(
        ["credentials": shown], shown.flatMap(\.lines) + [shown.count.counted("credential")])
    }
  }

  /// The alarms of the server in its metrics; none if no server is running. Only the server knows
  /// them.
  private static func alarms(_ access: HubAccess) async -> [(code: String, platform: String)] {
    var connection = access.connection
    if let runtime = access.runtime {
      guard let endpoint = runtime.data.servedEndpoint,
        let root = try? await runtime.service.policies.root()
      else { return [] }
      connection = root.connectionString(endpoint: endpoint)
    }
    guard let url = URL(string: connection.endpoint.url + "/metrics") else { return [] }
    let token = connection.token(for: connection.endpoint.url, lifetime: 60)
    let transport = access.runtime == nil ? access.transport : ClientTransport.shared
    let reply = try? await transport.send(
      TransportRequest(
        method: "GET", url: url, headers: [WireName.authorization: token.text], body: nil))
    guard let reply, reply.status == 200 else { return [] }
    return String(decoding: reply.body, as: UTF8.self).split(separator: "\n").flatMap { line in
      alarmMetrics.compactMap { metric, code, _ in
        let start = "\(metric){hub=\"\(access.hub)\",platform=\""
        guard line.hasPrefix(start), line.hasSuffix("\"} 1") else { return nil }
        return (code, String(line.dropFirst(start.count).dropLast(4)))
      }
    }
  }
}

private let alarmMetrics: [(metric: String, code: String, text: String)] = [
  (
    "belfry_dead_handle_alarm", "dead-handles",
    "calls so many handles dead that none is removed; check app and environment of the "
      + "credential (docs/operate/troubleshooting.md)"
  ),
  ("belfry_credential_refused", "refused", "refuses the credential"),
]

struct CredentialProbeCommand: ResultCommand {
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
  let client = ClientOptions(
    belfryOnly: "Manage", directoryAccess: .inProcess, settings: [.trust, .serviceHosts])

  private struct Answer: Encodable {
    let hub: String
    let platform: String
    let verdict: String
    let reason: String?
    let text: String
  }

  func result(in context: CommandContext) async throws -> CommandResult {
    try await client.withHub(in: context) { access in
      guard try await access.client.credentials().contains(where: { $0.platform == platform })
      else {
        let word = platform.word
        throw CommandFailure(
          "hub \(access.hub) has no credential for \(word); set it with `belfry credential set "
            + "\(word)`")
      }
      let probe = try await access.client.probeCredential(of: platform)
      let answer = Answer(
        hub: access.hub, platform: platform.rawValue, verdict: probe.verdict.rawValue,
        reason: probe.reason, text: probe.text)
      let failure: CommandFailure? =
        switch probe.verdict {
        case .accepted, .untried: nil
        case .refused: CommandFailure(probe.text)
        case .unreachable, .undecided: CommandFailure(probe.text, exitCode: .unreachable)
        }
      return CommandResult(answer, failure == nil ? [probe.text] : [], failure: failure)
    }
  }
}

struct CredentialDeleteCommand: ResultCommand {
  static let about = CommandHelp(
    "credential delete", "take a hub's credential of a push service away",
    examples: ["belfry credential delete apns --hub news"])

  @Argument(
    "PLATFORM", CredentialPlatform.list + "; mpns or gcm, where hub management has set one",
    .anyPlatform) var platform: PushPlatform
  let management = ManagementOptions()

  func result(in context: CommandContext) async throws -> CommandResult {
    try await management.withStore(
      .changes, as: (.deleteCredential, platform.rawValue), in: context
    ) { runtime in
      let hub = try await management.location.hubName(runtime, in: context)
      try await runtime.service.credentials.remove(platform, hub: hub)
      return CommandResult(
        ["hub": hub, "deleted": platform.rawValue],
        ["hub \(hub) has no \(platform.word) credential any more"])
    }
  }
}
