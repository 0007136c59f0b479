import Foundation
import HubCore
import HubTesting
import NotificationHubs
import PushEmulator
import StoreContract
import Testing

@testable import PushGateways

/// The delivery engine, the real gateway and the emulator over TLS; pages of a hundred.
struct Engine: Sendable {
  let emulator: EmulatorServer
  let app: EmulatorServer.App
  let addresses: EmulatorAddresses
  let store: any HubStore
  let gateways: PushGatewayDirectory
  let dispatcher: Dispatcher

  static let page = 100

  static func run(
    _ configuration: PushGatewaysConfiguration = PushGatewaysConfiguration.forStandIns,
    _ body: (Engine) async throws -> Void
  ) async throws {
    var options = EmulatorOptions.onFreePorts
    options.apns.maxStreams = page
    let emulator = EmulatorServer(options)
    let engine = try await Engine(emulator, configuration)
    do {
      try await engine.dispatcher.start()
      try await body(engine)
    } catch {
      await engine.stop()
      throw error
    }
    await engine.stop()
  }

  private init(
    _ emulator: EmulatorServer, _ given: PushGatewaysConfiguration
  ) async throws {
    self.emulator = emulator
    store = try await temporaryStore()
    addresses = try await emulator.start()
    app = try emulator.app()
    var configuration = given
    configuration.extraAnchorsPEM = Array(addresses.authorityPEM.utf8)
    gateways = PushGatewayDirectory(configuration, clock: .system, random: .system)
    var limits = DispatchLimits()
    limits.pageSize = Self.page
    limits.laneTargets = 4 * Self.page
    limits.laneBacklog = 2 * Self.page
    limits.targets = 64 * Self.page
    dispatcher = Dispatcher(
      store: store, gateways: gateways, clock: .system, random: .system, limits: limits)
  }

  private func stop() async {
    await dispatcher.stop(within: .seconds(1))
    await gateways.close()
    await emulator.stop()
  }

  /// A hub with its own devices.
  /// - Parameters:
  ///   - sandboxDevices: Come after the others.
  ///   - unknownDevices: Whose tokens APNs has never given to anybody.
  func hub(
    _ name: String, devices: Int, sandboxDevices: Int = 0, unknownDevices: Int = 0,
    otherEndpoint: String? = nil
  ) async throws -> Hub {
    let credential = PushCredential(
      platform: .apns,
      properties: [
        "Token": app.p8, "KeyId": app.keyID, "AppId": app.teamID, "AppName": app.bundleID,
        "Endpoint": addresses.apnsProduction,
        "OtherEndpoint": otherEndpoint ?? addresses.apnsSandbox,
      ], modifiedAt: Date())
    let hub = try await store.createHub(
      named: name, registrationTTL: nil, policies: [], at: Date())
    try await store.putCredential(credential, hub: hub.id)
    let known =
      try emulator.makeDevices(app: app, count: devices)
      + emulator.makeDevices(app: app, count: sandboxDevices, environment: .sandbox)
    let tokens =
      known.map(\.token)
      + (0..<unknownDevices).map { String(repeating: "0", count: 62) + "\(10 + $0)" }
    for (number, token) in tokens.enumerated() {
      let installation = Installation(
        installationID: "\(name)-\(number)", platform: .apns, pushChannel: .handle(token))
      let draft = RegistrationDraft(
        kind: .native, platform: .apns, channel: .handle(token),
        tags: number == 0 ? ["first"] : [])
      try await store.putInstallation(
        installation, registrations: [draft], request: nil, hub: hub.id, at: Date())
    }
    return hub
  }

  func send(
    to hub: Hub, tags: TagExpression? = nil, text: String
  ) async throws -> NotificationRecord {
    let record = NotificationRecord(
      id: NotificationID(at: Date(), random: .system), hub: hub.id,
      request: NotificationRequest(
        format: .native(.apns), body: Array(#"{"aps":{"alert":"\#(text)"}}"#.utf8),
        expression: tags), state: .enqueued, enqueuedAt: Date())
    try await store.accept(record)
    await dispatcher.submit(record)
    return record
  }

  func finished(_ record: NotificationRecord) async throws -> [NotificationOutcome: Int] {
    let found = try await dispatcher.record(
      of: record.id, hub: record.hub, finishedWithin: .seconds(50))
    try #require(found?.state.isFinal == true, "not finished")
    return found?.counts.reduce(into: [:]) { $0[$1.key.outcome, default: 0] += $1.value } ?? [:]
  }

  func fault(_ body: String) async throws {
    let reply = try await emulator.control("POST", "/v1/faults", body: body)
    try #require(reply.status == 201)
  }

  /// Pushes that the emulator has answered.
  func requests() async throws -> Int {
    struct Statistics: Decodable { let requests: Int }
    let reply = try await emulator.control("GET", "/v1/stats")
    return try JSONDecoder().decode(Statistics.self, from: Data(reply.body)).requests
  }

  func connections() async throws -> Int {
    struct List: Decodable {
      struct Entry: Decodable {}
      let connections: [Entry]
    }
    let reply = try await emulator.control("GET", "/v1/connections")
    return try JSONDecoder().decode(List.self, from: Data(reply.body)).connections.count
  }
}

@Suite("The engine, the gateway and the emulator", .timeLimit(.minutes(5)), .serialized)
struct EngineTests {
  @Test("a single push passes a broadcast under way", arguments: [true, false])
  func singlePush(isSameHub: Bool) async throws {
    try await Engine.run { engine in
      try await engine.fault(
        #"{"pns":"apns","stage":"before","action":{"type":"latency","ms":20}}"#)
      let large = try await engine.hub("large", devices: 60 * Engine.page)
      let other = try await engine.hub("other", devices: 1)
      let broadcast = try await engine.send(to: large, text: "all")
      while try await engine.requests() < 5 * Engine.page {
        try await Task.sleep(for: .milliseconds(2))
      }

      let before = try await engine.requests()
      let single = try await engine.send(
        to: isSameHub ? large : other, tags: isSameHub ? "first" : nil,
        text: "one")
      #expect(try await engine.finished(single) == [.success: 1])
      let after = try await engine.requests()
      // A busy machine sends on while the answer is read; without a turn of its own it came last.
      #expect(after - before < 30 * Engine.page, "\(after - before) of the broadcast went first")
      #expect(try await engine.finished(broadcast) == [.success: 60 * Engine.page])
    }
  }

  @Test("connections grow with the time on the way, up to what is allowed")
  func widening() async throws {
    var configuration = PushGatewaysConfiguration.forStandIns
    configuration.apns.maxConnections = 4
    try await Engine.run(configuration) { engine in
      // So long that it outweighs what a busy machine adds.
      try await engine.fault(
        #"{"pns":"apns","stage":"before","action":{"type":"latency","ms":500}}"#)
      let hub = try await engine.hub("hub", devices: 40 * Engine.page)
      let broadcast = try await engine.send(to: hub, text: "all")
      #expect(try await engine.finished(broadcast) == [.success: 40 * Engine.page])
      #expect(try await engine.connections() == 4)
    }
  }

  @Test("a push service that throttles is spared, and everything arrives")
  func throttling() async throws {
    try await Engine.run { engine in
      try await engine.fault(
        """
        {"pns":"apns","stage":"before","when":{"limit":3},
         "action":{"type":"reply","status":429,"body":"","headers":{"retry-after":"1"}}}
        """)
      let hub = try await engine.hub("hub", devices: 5 * Engine.page)
      let broadcast = try await engine.send(to: hub, text: "all")
      #expect(try await engine.finished(broadcast) == [.success: 5 * Engine.page])
    }
  }

  @Test(
    "whatever happens to a connection, every device gets its push",
    arguments: [
      (#"{"type":"reset","at":"headers"}"#, "before"), (#"{"type":"reset","at":"reply"}"#, "after"),
      (#"{"type":"close","at":"headers"}"#, "before"),
      (#"{"type":"stall","at":"reply"}"#, "before"),
      (#"{"type":"goaway","lastStreamId":"zero"}"#, "before"),
      (#"{"type":"rst-stream","code":"INTERNAL_ERROR"}"#, "after"),
    ])
  func faults(action: String, stage: String) async throws {
    var configuration = PushGatewaysConfiguration.forStandIns
    configuration.apns.replyTimeout = .seconds(2)
    configuration.apns.pingInterval = .seconds(1)
    configuration.apns.pingTimeout = .seconds(1)
    try await Engine.run(configuration) { engine in
      let hub = try await engine.hub("hub", devices: Engine.page)
      try await engine.fault(
        #"{"pns":"apns","stage":"\#(stage)","when":{"every":30,"limit":2},"action":\#(action)}"#)
      let sent = try await engine.send(to: hub, text: "all")
      #expect(try await engine.finished(sent) == [.success: Engine.page])
      #expect(
        try await engine.store.installations(hub: hub.id).count
          == Engine.page)
    }
  }
}
