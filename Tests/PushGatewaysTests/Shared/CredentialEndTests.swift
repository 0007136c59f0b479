import Foundation
import HubCore
import HubTesting
import NotificationHubs
import Synchronization
import Testing
import Wire

@testable import PushGateways

@Suite("The end of credentials")
struct CredentialEndTests {
  private static let day: TimeInterval = 86_400
  private let clock = ManualClock()
  private let store: any HubStore
  private let gateways: PushGatewayDirectory
  private let watch: CredentialWatch

  init() async throws {
    store = try await temporaryStore()
    gateways = PushGatewayDirectory(clock: clock.hubClock, random: .system)
    watch = CredentialWatch(store: store, gateways: gateways, clock: clock.hubClock)
  }

  private func archive(days: Double) throws -> String {
    try CertificateArchive.make(lifetime: days * Self.day, now: clock.now, password: "pw")
  }

  private func put(
    _ platform: PushPlatform, _ properties: [String: String], hub: Hub
  ) async throws {
    try await store.putCredential(
      PushCredential(platform: platform, properties: properties, modifiedAt: clock.now),
      hub: hub.id)
  }

  private func hub(_ name: String) async throws -> Hub {
    try await store.createHub(named: name, registrationTTL: nil, policies: [], at: clock.now)
  }

  @Test("certificates end, of services that have ended too; keys and secrets do not")
  func kinds() async throws {
    let archive = try archive(days: 90)
    let hub = try await hub("news")
    try await put(.apns, ["ApnsCertificate": archive, "CertificateKey": "pw"], hub: hub)
    try await put(
      .wns,
      [
        "PackageSid": "ms-app://s-1-15-2-1", "SecretKey": "s", "wnsCertificate": archive,
        "CertificateKey": "pw",
      ], hub: hub)
    try await put(.mpns, ["MpnsCertificate": archive, "CertificateKey": "pw"], hub: hub)
    try await put(.fcmv1, PushFixture.fcm().properties, hub: hub)
    try await put(.browser, PushFixture.webPush().properties, hub: hub)
    try await put(.adm, ["ClientId": "c", "ClientSecret": "s"], hub: hub)
    let other = try await self.hub("other")
    try await put(.apns, APNsFixture.tokenCredential().properties, hub: other)
    // What does not open tells no end, and disturbs nobody.
    try await put(.mpns, ["MpnsCertificate": archive, "CertificateKey": "no"], hub: other)
    let ends = await watch.ends()
    #expect(ends.map(\.platform) == [.apns, .mpns, .wns])
    #expect(ends.allSatisfy { $0.hubName == "news" })
    #expect(ends.allSatisfy { abs($0.at.timeIntervalSince(clock.now) - 90 * Self.day) < 2 })
    #expect(await watch.near().isEmpty)
  }

  @Test("an end is told at the start and each day from 30 days before, until it is replaced")
  func daily() async throws {
    let lines = Mutex<[String]>([])
    let log = HubLog(
      format: .json, now: { [clock] in clock.now },
      write: { line in lines.withLock { $0.append(line) } })
    func take() throws -> [JSONValue] {
      try lines.withLock { lines in
        defer { lines = [] }
        return try lines.map { try JSONValue.parse(Array($0.utf8)) }
      }
    }
    let hub = try await hub("news")
    try await put(
      .apns, ["ApnsCertificate": try archive(days: 31.5), "CertificateKey": "pw"], hub: hub)
    let running = Task { await watch.run(log: log) }
    func pass(days: Int) async {
      for _ in 0..<days {
        await clock.sleepers(1)
        clock.advance(by: .seconds(Self.day))
      }
      await clock.sleepers(1)
    }
    await clock.sleepers(1)
    #expect(try take().isEmpty)
    await pass(days: 2)
    let first = try #require(try take().first)
    #expect(first["event"]?.scalarText == "credential.expires")
    #expect(first["level"]?.scalarText == "warning")
    #expect(first["hub"]?.scalarText == "news" && first["platform"]?.scalarText == "apns")
    #expect(first["days"]?.scalarText == "29")
    await pass(days: 1)
    #expect(try take().map { $0["days"]?.scalarText } == ["28"])
    await pass(days: 29)
    let last = try #require(try take().last)
    #expect(last["event"]?.scalarText == "credential.expired")
    #expect(last["level"]?.scalarText == "error" && last["days"]?.scalarText == "-1")
    try await put(
      .apns, ["ApnsCertificate": try archive(days: 365), "CertificateKey": "pw"], hub: hub)
    await pass(days: 1)
    #expect(try take().isEmpty)
    running.cancel()
    await running.value
  }

  @Test("health warns of it and stays ready")
  func health() async throws {
    let hub = try await hub("news")
    try await put(
      .apns, ["ApnsCertificate": try archive(days: 10), "CertificateKey": "pw"], hub: hub)
    let dispatcher = Dispatcher(
      store: store, gateways: gateways, clock: clock.hubClock, random: .system)
    try await dispatcher.start()
    let health = HubHealth(
      store: store, dispatcher: dispatcher, gateways: gateways, clock: clock.hubClock,
      machine: clock.hubClock)
    let soon = await health.report()
    #expect(soon.isReady && soon.warnings.map(\.code) == ["credential-expires"])
    #expect(soon.warnings.first?.text.contains("apns") == true)
    #expect(soon.warnings.first?.text.contains("news") == false)
    clock.advance(by: .seconds(11 * Self.day))
    let over = await health.report()
    #expect(over.isReady && over.warnings.map(\.code) == ["credential-expired"])
    await dispatcher.stop(within: .zero)
  }
}
