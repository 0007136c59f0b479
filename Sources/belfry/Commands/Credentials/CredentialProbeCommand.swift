import HubCore
import NotificationHubs
import PushGateways

/// `belfry credential probe`
struct CredentialProbeCommand: Subcommand {
  static let help = CommandHelp(
    "credential probe", "try the credential that a hub has at its push service",
    arguments: [("PLATFORM", CredentialPlatform.list)], argumentWords: CredentialPlatform.words,
    options: ManagementOptions.options + [
      ManagementOptions.hub, Setting.trust.option, Setting.serviceHosts.option,
    ],
    discussion: """
      No device notices: APNs, Baidu and Xiaomi are sent a push for a device that does not exist, FCM
      one that it is told only to check, and WNS and ADM are asked for an access token. The push
      service of a browser is known by a subscription alone, so for browser the pair is checked here.

      Ends with 0 when the service accepts the credential or nobody can be asked, 1 when it refuses
      it, 69 when it cannot be reached or says nothing about it.
      """,
    examples: ["belfry credential probe apns --hub news"])

  let platform: PushPlatform
  let words: Words
  let management: ManagementOptions

  init(_ words: Words) throws {
    platform = try CredentialPlatform.of(words, includesEnded: true)
    self.words = words
    management = ManagementOptions(words: words)
  }

  private struct Answer: Encodable {
    let hub: String
    let platform: String
    let verdict: String
    let reason: String?
    let text: String
  }

  func run(in context: CommandContext) async throws {
    try await management.withHub(in: context) { runtime in
      let hub = try await management.hubName(runtime, in: context)
      let present = try await runtime.service.credentials(hub: hub)
      guard let credential = present.first(where: { $0.platform == platform }) else {
        let word = CredentialPlatform.word(platform)
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
