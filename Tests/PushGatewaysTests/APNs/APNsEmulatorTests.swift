import Cryptography
import Foundation
import HubCore
import HubTesting
import NotificationHubs
import PushEmulator
import Testing

@testable import PushGateways

/// A running emulator with an app, and gateways that trust it.
private struct Stage: Sendable {
  static let start: Int64 = 1_700_000_000

  let emulator: EmulatorServer
  let addresses: EmulatorAddresses
  let app: EmulatorServer.App
  let gateways: APNsGateways
  let clock = ManualClock(now: Date(timeIntervalSince1970: TimeInterval(start)))

  static func run(
    bundleID: String = "com.example.app", clientAuthorities: String = "",
    _ body: (Stage) async throws -> Void
  ) async throws {
    var options = EmulatorOptions.onFreePorts
    options.manualClock = start * 1000
    options.clientAuthoritiesPEM = clientAuthorities
    let emulator = EmulatorServer(options)
    let stage = try await Stage(emulator, bundleID: bundleID)
    do {
      try await body(stage)
    } catch {
      await emulator.stop()
      throw error
    }
    await emulator.stop()
  }

  private init(_ emulator: EmulatorServer, bundleID: String) async throws {
    self.emulator = emulator
    addresses = try await emulator.start()
    app = try emulator.app(bundleID: bundleID)
    var configuration = PushGatewaysConfiguration.forStandIns
    configuration.extraAnchorsPEM = Array(addresses.authorityPEM.utf8)
    gateways = APNsGateways(
      supplies: GatewaySupplies(configuration, clock: clock.hubClock, random: .system))
  }

  func gateway() throws -> APNsGateway {
    try gateways.gateway(
      for: APNsFixture.tokenCredential([
        "Token": app.p8, "KeyId": app.keyID, "AppId": app.teamID, "AppName": app.bundleID,
        "Endpoint": addresses.apnsProduction,
      ]))
  }

  func gateway(_ archive: APNsFixture.Archive, at endpoint: String) throws -> APNsGateway {
    try gateways.gateway(
      for: APNsFixture.certificateCredential(archive, ["Endpoint": endpoint]))
  }

  func batch(_ devices: [EmulatorServer.VirtualDevice]) -> PushBatch {
    var batch = PushBatch(bodies: [PushBody(bytes: Array(#"{"aps":{"alert":"hi"}}"#.utf8))])
    for (index, device) in devices.enumerated() {
      batch.add(device.token.uppercased(), id: UInt64(index), confirmedAt: Self.start * 1000)
    }
    return batch
  }

  func ask(_ method: String, _ target: String, _ body: String = "") async throws -> Data {
    let reply = try await emulator.control(method, target, body: body)
    try #require((200..<300).contains(reply.status), "\(method) \(target): \(reply.status)")
    return Data(reply.body)
  }

  func fault(_ action: String, when: String = "{}", stage: String = "before") async throws {
    _ = try await ask(
      "POST", "/v1/faults",
      #"{"pns":"apns","stage":"\#(stage)","when":\#(when),"action":\#(action)}"#)
  }

  struct Delivered: Decodable, Sendable {
    private struct Payload: Decodable, Sendable {
      struct APS: Decodable, Sendable { let event: String? }
      let aps: APS?
    }
    /// What came as `apns-id`.
    let id: String
    let headers: [String: String]
    private let payload: Payload?
    /// Of a Live Activity.
    var event: String? { payload?.aps?.event }
  }

  func delivered(_ device: EmulatorServer.VirtualDevice) async throws -> [Delivered] {
    try await delivered(device.deviceID)
  }

  func delivered(_ deviceID: String) async throws -> [Delivered] {
    struct List: Decodable { let notifications: [Delivered] }
    let data = try await ask("GET", "/v1/devices/\(deviceID)/notifications")
    return try JSONDecoder().decode(List.self, from: data).notifications
  }

  /// Makes a device whose token is for one kind of push.
  func device(kind: String) async throws -> (id: String, token: String) {
    struct List: Decodable {
      struct Item: Decodable {
        struct Handle: Decodable { let token: String }
        let deviceId: String
        let handle: Handle
      }
      let devices: [Item]
    }
    let data = try await ask(
      "POST", "/v1/devices", #"{"appId":"\#(app.appID)","kind":"\#(kind)"}"#)
    let made = try #require(try JSONDecoder().decode(List.self, from: data).devices.first)
    return (made.deviceId, made.handle.token)
  }

  /// How many notifications each device has.
  func counts(_ devices: [EmulatorServer.VirtualDevice]) async throws -> Set<Int> {
    var counts: Set<Int> = []
    for device in devices { counts.insert(try await delivered(device).count) }
    return counts
  }
}

@Suite("The APNs gateway and the emulator", .timeLimit(.minutes(5)))
struct APNsEmulatorTests {
  @Test("every device gets its push once, under the hub's id")
  func delivery() async throws {
    try await Stage.run { stage in
      let devices = try stage.emulator.makeDevices(app: stage.app, count: 300)
      let results = await (try stage.gateway()).deliver(stage.batch(devices))
      #expect(results.allSatisfy { $0.outcome == .success })
      #expect(try await stage.counts(devices) == [1])
      let first = try #require(try await stage.delivered(devices[0]).first)
      #expect(first.headers["apns-topic"] == stage.app.bundleID)
    }
  }

  @Test("dead, unknown and foreign devices are told apart")
  func deadDevices() async throws {
    try await Stage.run { stage in
      let devices = try stage.emulator.makeDevices(app: stage.app, count: 4)
      let foreign = try stage.emulator.makeDevices(
        app: try stage.emulator.app(bundleID: "com.example.foreign"))
      for (device, at) in [(devices[1], Stage.start * 1000 + 1), (devices[2], 5)] {
        _ = try await stage.ask(
          "POST", "/v1/devices/\(device.deviceID)/unregister",
          #"{"mode":"unregistered","at":\#(at)}"#)
      }
      _ = try await stage.ask(
        "POST", "/v1/devices/\(devices[3].deviceID)/unregister", #"{"mode":"unknown"}"#)
      let results = await (try stage.gateway()).deliver(stage.batch(devices + foreign))
      #expect(
        results.map(\.outcome) == [
          .success, .expiredChannel, .expiredChannel, .badChannel, .wrongChannel,
        ])
      // The second died before it was last confirmed: it has come back since.
      #expect(results.map(\.handle) == [.keep, .remove, .keep, .remove, .remove])
    }
  }

  @Test(
    "a kind of push that devices are not there for costs no device its registration",
    arguments: ["voip", "liveactivity", "complication"])
  func wrongKind(type: String) async throws {
    try await Stage.run { stage in
      let devices = try stage.emulator.makeDevices(app: stage.app, count: 20)
      var batch = stage.batch(devices)
      batch.bodies[0].headers["apns-push-type"] = type
      let results = await (try stage.gateway()).deliver(batch)
      #expect(results.allSatisfy { $0.reason == "DeviceTokenNotForTopic" })
      #expect(results.allSatisfy { $0.outcome == .wrongChannel && $0.handle == .keep })
    }
  }

  static let payloads: [String: @Sendable () throws -> APNsPayload] = [
    "alert": { try .init(.init(alert: .init(title: "Tea"), badge: 1, isMutable: true)) },
    "background": { try .background(custom: ["since": 4711]) },
    "voip": { try .voip(custom: ["call": .string(String(repeating: "x", count: 5000))]) },
    "complication": { try .complication(custom: ["steps": 1]) },
    "fileprovider": { try .fileProvider(domain: "files") },
    "location": { try .location() },
    "pushtotalk": { try .pushToTalk(custom: ["speaker": "Ann"]) },
    "controls": { try .controls() },
    "widgets": { try .widgets() },
    "liveactivity": {
      try .liveActivity(
        .start(attributesType: "Ride", attributes: ["line": 7], updates: .token),
        contentState: ["stops": 3], alert: .init(title: "Bus", body: "comes"))
    },
  ]

  @Test(
    "each kind of push that the SDK makes reaches the tokens of its kind", arguments: payloads.keys)
  func kinds(type: String) async throws {
    let make = try #require(Self.payloads[type])
    let payload = try make()
    try await Stage.run { stage in
      let kind = type == "background" ? "alert" : type
      let (deviceID, token) = try await stage.device(kind: kind)
      var batch = PushBatch(
        bodies: [PushBody(bytes: Array(payload.body), headers: payload.headers)])
      batch.add(token, id: 1, confirmedAt: Stage.start * 1000)
      let results = await (try stage.gateway()).deliver(batch)
      #expect(results.map(\.outcome) == [.success])
      let seen = try #require(try await stage.delivered(deviceID).first).headers
      #expect(seen["apns-push-type"] == type)
      #expect(seen["apns-topic"] == stage.app.bundleID + payload.pushType.topicSuffix)
      #expect(seen["apns-priority"] == (type == "background" ? "5" : "10"))
      #expect(seen["apns-expiration"] == (type == "pushtotalk" ? "0" : nil))
    }
  }

  @Test("a Live Activity is started, changed and ended, each with its own token")
  func liveActivity() async throws {
    try await Stage.run { stage in
      let gateway = try stage.gateway()
      let (starter, startToken) = try await stage.device(kind: "liveactivity")
      let (activity, updateToken) = try await stage.device(kind: "liveactivity")
      let steps: [(String, APNsPayload)] = [
        (
          startToken,
          try .liveActivity(
            .start(attributesType: "Ride", attributes: [:]), contentState: ["stops": 3],
            alert: .init(body: "comes"))
        ),
        (
          updateToken,
          try .liveActivity(
            .update, contentState: ["stops": 2], delivery: .init(priority: .powerAware))
        ),
        (updateToken, try .liveActivity(.end(), contentState: ["stops": 0])),
      ]
      for (index, (token, payload)) in steps.enumerated() {
        var batch = PushBatch(
          bodies: [PushBody(bytes: Array(payload.body), headers: payload.headers)])
        batch.add(token, id: UInt64(index), confirmedAt: Stage.start * 1000)
        #expect(await gateway.deliver(batch).map(\.outcome) == [.success])
      }
      #expect(try await stage.delivered(starter).map(\.event) == ["start"])
      #expect(try await stage.delivered(activity).map(\.event) == ["update", "end"])
      #expect(
        try await stage.delivered(activity).map { $0.headers["apns-priority"] } == ["5", "10"])
    }
  }

  @Test(
    "the vectors' certificates push to the development listener",
    arguments: APNsFixture.all.archives)
  func certificates(archive: APNsFixture.Archive) async throws {
    try await Stage.run(
      bundleID: archive.expect.uid, clientAuthorities: APNsFixture.all.archiveAuthorityPEM
    ) { stage in
      let devices = try stage.emulator.makeDevices(
        app: stage.app, count: 20, environment: .sandbox)
      let gateway = try stage.gateway(archive, at: stage.addresses.apnsSandbox)
      let results = await gateway.deliver(stage.batch(devices))
      #expect(results.allSatisfy { $0.outcome == .success })
      #expect(try await stage.counts(devices) == [1])
    }
  }

  @Test("a certificate of the other environment, or of nobody known, pauses the credential")
  func wrongCertificate() async throws {
    let archive = try #require(APNsFixture.all.archives.first { !$0.expect.production })
    for authorities in [APNsFixture.all.archiveAuthorityPEM, ""] {
      try await Stage.run(bundleID: archive.expect.uid, clientAuthorities: authorities) { stage in
        let devices = try stage.emulator.makeDevices(app: stage.app, count: 20)
        let gateway = try stage.gateway(archive, at: stage.addresses.apnsProduction)
        let results = await gateway.deliver(stage.batch(devices))
        #expect(results.allSatisfy { $0.outcome == .invalidCredentials })
        #expect(results.allSatisfy { $0.retry == .pauseCredential })
        let reason = authorities.isEmpty ? "BadCertificate" : "BadCertificateEnvironment"
        #expect(results.allSatisfy { $0.reason == reason })
      }
    }
  }

  @Test("a token that has grown too old for APNs is replaced once")
  func expiredToken() async throws {
    try await Stage.run { stage in
      let devices = try stage.emulator.makeDevices(app: stage.app, count: 50)
      let gateway = try stage.gateway()
      #expect(await gateway.deliver(stage.batch(devices)).allSatisfy { $0.outcome == .success })
      // The hub's clock runs slow: the token is not due here, and too old there.
      stage.clock.advance(by: .seconds(40 * 60))
      _ = try await stage.ask("POST", "/v1/clock", #"{"advance":3601000}"#)
      #expect(await gateway.deliver(stage.batch(devices)).allSatisfy { $0.outcome == .success })
      #expect(try await stage.counts(devices) == [2])
    }
  }

  @Test("a key that APNs does not know fails everything and is not tried with every push")
  func unknownKey() async throws {
    try await Stage.run { stage in
      let devices = try stage.emulator.makeDevices(app: stage.app, count: 50)
      let gateway = try stage.gateways.gateway(
        for: APNsFixture.tokenCredential(["Endpoint": stage.addresses.apnsProduction]))
      let results = await gateway.deliver(stage.batch(devices))
      #expect(results.allSatisfy { $0.outcome == .invalidCredentials && $0.handle == .keep })
      #expect(results.allSatisfy { $0.retry == .pauseCredential })
    }
  }

  @Test(
    "what a GOAWAY leaves unprocessed arrives exactly once all the same",
    arguments: ["previous", "seen"])
  func goAway(last: String) async throws {
    try await Stage.run { stage in
      let devices = try stage.emulator.makeDevices(app: stage.app, count: 400)
      try await stage.fault(
        #"{"type":"goaway","reason":"Shutdown","lastStreamId":"\#(last)","graceMs":500,"afterRequests":100}"#,
        when: #"{"limit":1}"#)
      let results = await (try stage.gateway()).deliver(stage.batch(devices))
      #expect(results.allSatisfy { $0.outcome == .success })
      #expect(try await stage.counts(devices) == [1])
    }
  }

  @Test(
    "an answer that speaks of the connection alone is followed by one over another",
    arguments: [(400, "IdleTimeout"), (403, "UnrelatedKeyIdInToken"), (503, "Shutdown")])
  func newConnection(status: Int, reason: String) async throws {
    try await Stage.run { stage in
      let devices = try stage.emulator.makeDevices(app: stage.app, count: 20)
      let gateway = try stage.gateway()
      #expect(await gateway.deliver(stage.batch(devices)).allSatisfy { $0.outcome == .success })
      try await stage.fault(
        #"{"type":"reply","status":\#(status),"reason":"\#(reason)"}"#, when: #"{"limit":1}"#)
      #expect(await gateway.deliver(stage.batch(devices)).allSatisfy { $0.outcome == .success })
      #expect(try await stage.counts(devices) == [2])
    }
  }

  @Test("a stream limit that APNs lowers under way is kept")
  func loweredLimit() async throws {
    try await Stage.run { stage in
      let devices = try stage.emulator.makeDevices(app: stage.app, count: 300)
      let gateway = try stage.gateway()
      #expect(await gateway.deliver(stage.batch(devices)).allSatisfy { $0.outcome == .success })
      try await stage.fault(
        #"{"type":"settings","maxConcurrentStreams":5}"#, when: #"{"limit":1}"#)
      let results = await gateway.deliver(stage.batch(devices))
      #expect(results.allSatisfy { $0.outcome == .success || $0.retry == .backoff })
      // What was under way above it may have been refused, and sent over another connection.
      #expect([5, 1005].contains(gateway.pool?.capacity))
      #expect(await gateway.deliver(stage.batch(devices)).allSatisfy { $0.outcome == .success })
    }
  }

  @Test("refused streams are sent once more and arrive exactly once")
  func refusedStreams() async throws {
    try await Stage.run { stage in
      let devices = try stage.emulator.makeDevices(app: stage.app, count: 200)
      try await stage.fault(
        #"{"type":"rst-stream","code":"REFUSED_STREAM"}"#, when: #"{"every":20,"limit":9}"#)
      let results = await (try stage.gateway()).deliver(stage.batch(devices))
      #expect(results.allSatisfy { $0.outcome == .success })
      #expect(try await stage.counts(devices) == [1])
    }
  }

  @Test("a push whose answer got lost is repeated under the same id")
  func lostAnswer() async throws {
    try await Stage.run { stage in
      let devices = try stage.emulator.makeDevices(app: stage.app, count: 1)
      let gateway = try stage.gateway()
      #expect(await gateway.deliver(stage.batch(devices)).map(\.outcome) == [.success])
      try await stage.fault(
        #"{"type":"reset","at":"reply"}"#, when: #"{"limit":1}"#, stage: "after")
      let lost = await gateway.deliver(stage.batch(devices))
      #expect(lost.map(\.outcome) == [.pnsUnreachable])
      #expect(lost.map(\.retry) == [.backoff])
      #expect(await gateway.deliver(stage.batch(devices)).map(\.outcome) == [.success])
      let ids = try await stage.delivered(devices[0]).map(\.id)
      #expect(ids.count == 3)
      #expect(Set(ids) == ["deadbeef-cafe-f00d-0000-000000000000"])
    }
  }
}
