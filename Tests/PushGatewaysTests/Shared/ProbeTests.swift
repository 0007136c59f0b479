import Foundation
import HubCore
import HubTesting
import NotificationHubs
import PushEmulator
import Testing

@testable import PushGateways

@Suite("Trying a credential at its push service", .timeLimit(.minutes(5)))
struct ProbeTests {
  private static let asked: [PushPlatform] = [.apns, .fcmv1, .wns, .adm, .baidu, .xiaomi]

  private func probe(
    _ stage: StandInStage, _ platform: PushPlatform, _ changes: [String: String?] = [:]
  ) async throws -> CredentialProbe {
    let directory = PushGatewayDirectory(
      stage.configuration, clock: stage.clock.hubClock, random: .system)
    let probe = try await directory.probe(try stage.credential(platform, changes))
    await directory.close()
    return probe
  }

  @Test(
    "a service that knows the credential accepts it, and no device hears of it", arguments: asked)
  func accepted(platform: PushPlatform) async throws {
    try await StandInStage.run { stage in
      let probe = try await probe(stage, platform)
      #expect(probe.verdict == .accepted, "\(probe.text)")
      #expect(probe.text.contains("accepts the credential"))
    }
  }

  @Test(
    "tokens go by the clock that the gateways are given, not by the machine's",
    arguments: [PushPlatform.apns, .fcmv1])
  func clock(platform: PushPlatform) async throws {
    try await StandInStage.run { stage in
      // Two hours behind the service: it takes no token of that age.
      let machine = ManualClock(now: stage.clock.now - 7_200)
      func probe(_ clock: HubClock) async throws -> CredentialProbe {
        let directory = PushGatewayDirectory(stage.configuration, clock: clock, random: .system)
        let probe = try await directory.probe(try stage.credential(platform))
        await directory.close()
        return probe
      }
      #expect(try await probe(machine.hubClock).verdict != .accepted)
      let store = try await probe(stage.clock.hubClock)
      #expect(store.verdict == .accepted, "\(store.text)")
    }
  }

  @Test(
    "a service that does not know it refuses it, and the answer says what to do",
    arguments: [
      (PushPlatform.apns, ["KeyId": "ZZZZZZZZZZ"], "InvalidProviderToken"),
      (.fcmv1, ["PrivateKey": PushFixture.all.keys.rsa.private_pkcs8_pem], "invalid_grant"),
      (.fcmv1, ["ProjectId": "somebody-elses"], "project"),
      (.wns, ["SecretKey": "other"], "Partner Center"),
      (.adm, ["ClientSecret": "other"], "security profile"),
      (.baidu, ["BaiduSecretKey": "other"], "30603"),
      (.xiaomi, ["AppSecret": "other"], "AppSecret"),
    ])
  func refused(platform: PushPlatform, changes: [String: String], word: String) async throws {
    try await StandInStage.run { stage in
      let probe = try await probe(stage, platform, changes)
      #expect(probe.verdict == .refused, "\(probe.text)")
      #expect(probe.text.contains(word), "\(probe.text)")
      #expect(changes.values.allSatisfy { !probe.text.contains($0) || $0 == "other" })
    }
  }

  @Test(
    "a service that is not there is told apart from one that refuses",
    arguments: [
      (PushPlatform.apns, ["Endpoint": "https://localhost:1"]),
      (.fcmv1, ["TokenUri": "https://localhost:1/token"]),
      (.fcmv1, ["Endpoint": "https://localhost:1"]),
      (.wns, ["WindowsLiveEndpoint": "https://localhost:1/accesstoken.srf"]),
      (.adm, ["AuthTokenUrl": "https://localhost:1/auth/O2/token"]),
      (.baidu, ["BaiduEndPoint": "https://localhost:1/rest/2.0/channel/channel"]),
      (.xiaomi, ["Endpoint": "https://localhost:1"]),
    ])
  func unreachable(platform: PushPlatform, changes: [String: String]) async throws {
    try await StandInStage.run { stage in
      let probe = try await probe(stage, platform, changes)
      #expect(probe.verdict == .unreachable, "\(probe.text)")
      #expect(probe.text.contains("cannot be reached"))
    }
  }

  @Test("a fault of the service's own decides nothing", arguments: asked)
  func undecided(platform: PushPlatform) async throws {
    try await StandInStage.run { stage in
      let service = [.fcmv1: "fcm", .wns: "wns-token"][platform] ?? platform.rawValue
      try await stage.fault(service, #"{"type":"reply","status":500,"body":""}"#)
      let probe = try await probe(stage, platform)
      #expect(probe.verdict == .undecided, "\(probe.text)")
    }
  }

  @Test("an app of Microsoft Entra is tried at its own token service", arguments: ["key", "other"])
  func entra(secret: String) async throws {
    try await StandInStage.run { stage in
      try await stage.ask(
        "POST", "/v1/apps",
        #"{"pns":"wns","entra":{"tenant":"contoso","clientId":"app","secret":"key"}}"#)
      let probe = try await probe(
        stage, .wns,
        [
          "PackageSid": nil, "SecretKey": nil, "TenantId": "contoso", "ClientId": "app",
          "ClientSecret": secret,
          "WindowsLiveEndpoint": stage.addresses[.wns] + "/contoso/oauth2/v2.0/token",
        ])
      #expect(probe.verdict == (secret == "key" ? .accepted : .refused), "\(probe.text)")
      #expect(secret == "key" || probe.text.contains("entra.microsoft.com"))
    }
  }

  @Test("a VAPID pair is checked here, since only a subscription names its push service")
  func webPush() async throws {
    try await StandInStage.run { stage in
      let probe = try await probe(stage, .browser)
      #expect(probe.verdict == .untried && probe.text.contains("subscription"))
    }
  }

  @Test("nobody is asked about services that have ended", arguments: [PushPlatform.gcm, .mpns])
  func retired(platform: PushPlatform) async throws {
    let credential = PushCredential(platform: platform, properties: [:], modifiedAt: .distantPast)
    let probe = try await PushGatewayDirectory(clock: .system, random: .system).probe(credential)
    #expect(probe.verdict == .untried && probe.text.contains("ended"))
  }

  @Test("a certificate of Apple's is tried by the handshake", arguments: [true, false])
  func certificate(isTrusted: Bool) async throws {
    let archive = try #require(APNsFixture.all.archives.first)
    var options = EmulatorOptions.onFreePorts
    options.clientAuthoritiesPEM = isTrusted ? APNsFixture.all.archiveAuthorityPEM : ""
    options.manualClock = StandInStage.start * 1000
    let emulator = EmulatorServer(options)
    let addresses = try await emulator.start()
    _ = try emulator.app(bundleID: archive.expect.uid)
    var configuration = PushGatewaysConfiguration.forStandIns
    configuration.extraAnchorsPEM = Array(addresses.authorityPEM.utf8)
    let clock = ManualClock(now: Date(timeIntervalSince1970: TimeInterval(StandInStage.start)))
    let directory = PushGatewayDirectory(configuration, clock: clock.hubClock, random: .system)
    let probe = try await directory.probe(
      APNsFixture.certificateCredential(archive, ["Endpoint": addresses.apnsSandbox]))
    #expect(probe.verdict == (isTrusted ? .accepted : .refused), "\(probe.text)")
    await directory.close()
    await emulator.stop()
  }

  @Test("a credential that cannot work is reported without a request")
  func malformed() async throws {
    await #expect(throws: CredentialError.self) {
      try await PushGatewayDirectory(clock: .system, random: .system).probe(
        APNsFixture.tokenCredential(["KeyId": "x"]))
    }
  }
}
