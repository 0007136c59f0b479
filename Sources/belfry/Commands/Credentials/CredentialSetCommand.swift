import Cryptography
import Foundation
import HubCore
import NotificationHubs
import PushGateways
import Wire

/// `belfry credential set`
struct CredentialSetCommand: Subcommand {
  static let help = CommandHelp(
    "credential set", "give a hub its credential of a push service",
    arguments: [("PLATFORM", CredentialPlatform.list)], argumentWords: CredentialPlatform.words,
    options: ManagementOptions.options + [ManagementOptions.hub] + CredentialOptions.options + [
      .flag("--probe", "try it at the push service first, and keep it only if that accepts it"),
      Setting.trust.option, Setting.serviceHosts.option,
    ],
    discussion: """
      The credential is checked before it is kept (does it parse, do its parts fit, has it expired),
      and sealed at rest; it is never shown again. A running hub uses it for the next send.

      --probe asks the push service without bothering a device, and ends with 1 when it refuses the
      credential and with 69 when it cannot be reached; the credential is kept in neither case.

      \(ManagementOptions.note)
      """,
    examples: [
      "belfry credential set apns --hub news --key AuthKey_ABC123DEFG.p8 --team-id DEF123GHIJ \\",
      "    --bundle-id com.example.news --probe",
      "belfry credential set apns --hub news --certificate push.p12 --endpoint sandbox",
      "belfry credential set fcm --hub news --service-account service-account.json",
      "belfry credential set browser --hub news --subject mailto:ops@example.com --generate",
      "belfry credential set wns --hub news --tenant-id TENANT --client-id CLIENT",
    ])

  let platform: PushPlatform
  let words: Words
  let management: ManagementOptions

  init(_ words: Words) throws {
    platform = try CredentialPlatform.of(words)
    try CredentialOptions.check(words, for: platform)
    self.words = words
    management = ManagementOptions(words: words)
  }

  private struct Answer: Encodable {
    let hub: String
    let credential: String
    let applicationServerKey: String?
    let probe: String?
    let expiresAt: String?
  }

  func run(in context: CommandContext) async throws {
    let credential = try CredentialOptions.credential(
      platform, words, environment: context.environment)
    do {
      try CredentialCheck.check(credential, at: Date())
    } catch {
      throw CredentialNames.options.fault(error, of: platform)
    }
    try await management.withHub(.changes, in: context) { runtime in
      let hub = try await management.hubName(runtime, in: context)
      let pair = try await runtime.service.credentials(hub: hub)
        .first { $0.platform == .browser }?["VapidPublicKey"]
      if let pair, words.flag("--generate") { throw Self.secondPair(pair, of: hub) }
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

  /// Subscriptions are made for one pair and end with it.
  private static func secondPair(_ publicKey: String, of hub: String) -> CommandFailure {
    CommandFailure(
      "hub \(hub) has a VAPID pair already (public key \(publicKey)); a new one would end every "
        + "subscription that pages made with it. If that is meant, run `belfry credential delete "
        + "browser --hub \(hub)` first")
  }

  private func probe(
    _ credential: PushCredential, in runtime: HubRuntime
  ) async throws -> CredentialProbe? {
    guard words.flag("--probe") else { return nil }
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
    guard words.flag("--generate"), let path = words.value("--private-key") else { return nil }
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
    context.print("hub \(hub) has its \(CredentialPlatform.word(credential.platform)) credential")
    if let end {
      let isNear = end < Date().addingTimeInterval(CredentialEnd.notice)
      context.print("it expires on \(end.formatted(.iso8601))" + (isNear ? ": renew it soon" : ""))
    }
    if words.flag("--generate"), let publicKey {
      context.print("pages subscribe with this applicationServerKey:")
      context.print(publicKey)
    }
  }
}
