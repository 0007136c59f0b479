import Foundation
import HubCore
import HubTesting
import NotificationHubs
import PushEmulator
import Testing
import Wire

@testable import PushGateways

/// A hub that runs: store, delivery and the gateways, with one device of one platform at the
/// stand-ins.
private struct RunningHub {
  let stage: StandInStage
  let store: any HubStore
  let dispatcher: Dispatcher
  let service: HubService
  let gateways: PushGatewayDirectory
  let hub: Hub

  static func run(
    _ platform: PushPlatform, _ body: (RunningHub) async throws -> Void
  ) async throws {
    try await StandInStage.run { stage in
      let running = try await RunningHub(stage)
      do {
        try await running.dispatcher.start()
        try await running.addDevice(platform)
        try await body(running)
      } catch {
        await running.stop()
        throw error
      }
      await running.stop()
    }
  }

  private init(_ stage: StandInStage) async throws {
    self.stage = stage
    store = try await temporaryStore()
    gateways = PushGatewayDirectory(
      stage.configuration, clock: stage.clock.hubClock, random: .system)
    dispatcher = Dispatcher(store: store, gateways: gateways, clock: .system, random: .system)
    service = HubService(
      store: store, directory: HubDirectory(store: store, clock: .system), dispatcher: dispatcher,
      clock: .system, random: .system, gateways: gateways)
    hub = try await store.createHub(
      named: "news", registrationTTL: nil, policies: [], at: Date())
  }

  private func stop() async {
    await dispatcher.stop(within: .seconds(1))
    await gateways.close()
  }

  private func addDevice(_ platform: PushPlatform) async throws {
    let handle = try await stage.devices(app: try appID(platform), count: 1)[0].handle
    let channel = Self.channel(platform, handle)
    try await store.putInstallation(
      Installation(installationID: "i", platform: platform, pushChannel: channel),
      registrations: [
        RegistrationDraft(kind: .native, platform: platform, channel: channel, tags: [])
      ], request: nil, hub: hub.id, at: Date())
  }

  private func appID(_ platform: PushPlatform) throws -> String {
    switch platform {
    case .apns: try stage.emulator.app().appID
    case .fcmv1: try stage.emulator.firebaseProject().appID
    case .browser: try stage.emulator.webApplication().appID
    case .wns: try stage.emulator.windowsApp().appID
    case .adm: try stage.emulator.amazonApp().appID
    case .baidu: try stage.emulator.baiduKeys().appID
    default: try stage.emulator.xiaomiSecret().appID
    }
  }

  private static func channel(_ platform: PushPlatform, _ handle: JSONValue) -> PushChannel {
    func text(_ name: String) -> String { handle[name]?.scalarText ?? "" }
    return switch platform {
    case .apns, .fcmv1: .handle(text("token"))
    case .browser:
      .subscription(
        endpoint: text("endpoint"), p256dh: handle["keys"]?["p256dh"]?.scalarText ?? text("p256dh"),
        auth: handle["keys"]?["auth"]?.scalarText ?? text("auth"))
    case .wns: .wns(channelURI: text("channelUri"))
    case .adm: .adm(registrationID: text("registrationId"))
    case .baidu: .baidu(userID: text("userId"), channelID: text("channelId"))
    default: .xiaomi(registrationID: text("regId"))
    }
  }

  private static func payload(_ platform: PushPlatform) -> String {
    switch platform {
    case .apns: #"{"aps":{"alert":"hi"}}"#
    case .fcmv1: #"{"message":{"data":{"a":"1"}}}"#
    case .wns:
      #"<toast><visual><binding template="ToastText01"><text id="1">hi</text></binding></visual></toast>"#
    case .adm: #"{"data":{"a":"1"}}"#
    case .baidu: #"{"title":"t","description":"d"}"#
    case .xiaomi: #"{"pass_through":1,"payload":"hi"}"#
    default: #"{"title":"hi"}"#
    }
  }

  /// - Returns: What became of the device's push.
  func send(_ platform: PushPlatform) async throws -> NotificationOutcome? {
    let record = NotificationRecord(
      id: NotificationID(at: Date(), random: .system), hub: hub.id,
      request: NotificationRequest(
        format: .native(platform), body: Array(Self.payload(platform).utf8), expression: nil),
      state: .enqueued, enqueuedAt: Date())
    try await store.accept(record)
    await dispatcher.submit(record)
    let found = try await dispatcher.record(
      of: record.id, hub: hub.id, finishedWithin: .seconds(20))
    return found?.counts.first { $0.value > 0 }?.key.outcome
  }
}

@Suite("A credential that is replaced while the hub runs", .timeLimit(.minutes(5)))
struct CredentialReplacementTests {
  private static let wrong: [(PushPlatform, [String: String])] = [
    (.apns, ["KeyId": "ZZZZZZZZZZ"]),
    (.fcmv1, ["PrivateKey": PushFixture.all.keys.rsa.private_pkcs8_pem]),
    (
      .browser,
      [
        "VapidPublicKey": PushFixture.all.keys.p256.public_uncompressed_b64u,
        "VapidPrivateKey": PushFixture.all.keys.p256.d_b64u,
      ]
    ),
    (.wns, ["SecretKey": "other"]), (.adm, ["ClientSecret": "other"]),
    (.baidu, ["BaiduSecretKey": "other"]), (.xiaomi, ["AppSecret": "other"]),
  ]

  @Test("counts for the next send, in both directions", arguments: wrong)
  func inThisProcess(platform: PushPlatform, changes: [String: String]) async throws {
    try await RunningHub.run(platform) { hub in
      func set(_ changes: [String: String?]) async throws {
        try await hub.service.credentials.set(
          try hub.stage.credential(platform, changes, modifiedAt: Date()), hub: "news",
          checkedBy: hub.gateways)
      }
      try await set([:])
      #expect(try await hub.send(platform) == .success)
      try await set(changes)
      // A push service of a browser takes a stranger's pair for a fault of the credential once it
      // has taken a push of it, and for one of the subscription before: either way nothing arrives.
      #expect(try await hub.send(platform) != .success)
      guard platform != .browser else { return }
      try await set([:])
      #expect(try await hub.send(platform) == .success)
    }
  }

  @Test("is noticed when another process has replaced it", arguments: [PushPlatform.apns, .wns])
  func inAnotherProcess(platform: PushPlatform) async throws {
    let changes = try #require(Self.wrong.first { $0.0 == platform }).1
    try await RunningHub.run(platform) { hub in
      for (changes, isGood) in [([:], true), (changes, false), ([:], true)] {
        try await hub.store.putCredential(
          try hub.stage.credential(platform, changes, modifiedAt: Date()), hub: hub.hub.id)
        #expect((try await hub.send(platform) == .success) == isGood)
      }
    }
  }
}
