import Foundation
import HubCore
import HubTesting
import NotificationHubs
import PushEmulator
import Testing
import Wire

@testable import PushGateways

/// Broadcast channels over TLS with the emulator.
@Suite(.timeLimit(.minutes(5))) struct BroadcastTests {
  private static let update = Array(#"{"aps":{"event":"update","content-state":{}}}"#.utf8)

  private func gateway(
    _ stage: StandInStage, _ changes: [String: String?] = [:]
  ) throws -> APNsBroadcastGateway {
    try APNsGateways(
      supplies: GatewaySupplies(stage.configuration, clock: stage.clock.hubClock, random: .system)
    )
    .broadcasts(with: try stage.credential(.apns, changes))
  }

  private func refusal(
    _ work: () async throws(BroadcastRefusal) -> Void
  ) async -> BroadcastRefusal? {
    do throws(BroadcastRefusal) {
      try await work()
      return nil
    } catch {
      return error
    }
  }

  private func requests(_ stage: StandInStage) async throws -> Int {
    guard case .array(let list)? = try await stage.ask("GET", "/v1/requests")["requests"] else {
      return 0
    }
    return list.count
  }

  @Test func `a channel is made, read, listed, sent to and deleted`() async throws {
    try await StandInStage.run { stage in
      let gateway = try gateway(stage)
      let channel = try await gateway.createChannel(.latestMessage)
      let other = try await gateway.createChannel(.noMessage)
      #expect(try await gateway.channel(channel.id) == channel)
      #expect(try await gateway.channel(other.id) == other)
      #expect(try await gateway.channels() == [channel.id, other.id])

      let app = try stage.emulator.app().appID
      let device = try #require(try await stage.devices(app: app, count: 1).first)
      try await stage.ask(
        "POST", "/v1/devices/\(device.id)/subscribe", #"{"channelId":"\#(channel.id)"}"#)
      let receipt = try await gateway.send(
        BroadcastMessage(
          payload: Self.update, expiration: StandInStage.start + 60, priority: 5),
        to: channel.id)
      let shown = try #require(try await stage.notifications(device.id).first)
      #expect(shown["id"]?.scalarText == receipt.requestID)
      #expect(shown["headers"]?["apns-channel-id"]?.scalarText == channel.id)
      #expect(shown["headers"]?["apns-priority"]?.scalarText == "5")
      #expect(
        shown["headers"]?["apns-expiration"]?.scalarText == String(StandInStage.start + 60))
      #expect(receipt.uniqueID == nil)

      try await gateway.deleteChannel(channel.id)
      #expect(try await gateway.channels() == [other.id])
      await gateway.close()
    }
  }

  @Test func `the sandbox's key to its delivery log is handed on`() async throws {
    try await StandInStage.run { stage in
      let gateway = try gateway(
        stage,
        [
          "Endpoint": stage.addresses.apnsSandbox,
          "BroadcastEndpoint": stage.addresses.apnsChannelsSandbox,
        ])
      let channel = try await gateway.createChannel(.noMessage)
      let receipt = try await gateway.send(
        BroadcastMessage(payload: Self.update, expiration: 0, priority: 10), to: channel.id)
      #expect(receipt.uniqueID.flatMap { UUID(uuidString: $0) } != nil)
    }
  }

  @Test func `what APNs refuses keeps its word, and says whose fault it is`() async throws {
    try await StandInStage.run { stage in
      let gateway = try gateway(stage)
      let unknown = "c29tZUNoYW5uZWw="
      #expect(
        await refusal { () throws(BroadcastRefusal) in _ = try await gateway.channel(unknown) }
          == BroadcastRefusal(.unknownChannel, reason: "ChannelNotRegistered"))
      #expect(
        await refusal { () throws(BroadcastRefusal) in try await gateway.deleteChannel("x") }
          == BroadcastRefusal(.badRequest, reason: "BadChannelId"))
      let channel = try await gateway.createChannel(.noMessage)
      #expect(
        await refusal { () throws(BroadcastRefusal) in
          _ = try await gateway.send(
            BroadcastMessage(payload: Self.update, expiration: .max, priority: 10),
            to: channel.id)
        } == BroadcastRefusal(.badRequest, reason: "BadExpirationDate"))
      #expect(
        await refusal { () throws(BroadcastRefusal) in
          _ = try await gateway.send(
            BroadcastMessage(
              payload: Array(repeating: 0x20, count: 5121), expiration: 0, priority: 10),
            to: channel.id)
        } == BroadcastRefusal(.tooLarge, reason: "PayloadTooLarge"))
      let app = try stage.emulator.app().appID
      try await stage.ask("PATCH", "/v1/apps/\(app)", #"{"broadcasts":false}"#)
      #expect(
        await refusal { () throws(BroadcastRefusal) in _ = try await gateway.channels() }
          == BroadcastRefusal(.notAllowed, reason: "FeatureNotEnabled"))
    }
  }

  @Test(arguments: [
    ("CannotCreateChannelConfig", 400, BroadcastRefusal.Kind.limitReached),
    ("TopicMismatch", 400, .notAllowed), ("TopicDisallowed", 400, .notAllowed),
    ("BadCertificate", 403, .notAllowed), ("BadRequest", 400, .badRequest),
    ("MissingChannelId", 400, .badRequest), ("MissingPushType", 400, .badRequest),
    ("InvalidPushType", 400, .badRequest), ("BadPath", 404, .badRequest),
    ("SomethingNew", 400, .badRequest), ("SomethingNew", 502, .unavailable),
    ("InternalServerError", 500, .unavailable), ("TooManyRequests", 429, .throttled),
  ])
  func `an answer means one thing`(reason: String, status: UInt16, kind: BroadcastRefusal.Kind) {
    let verdict = APNsReply.verdict(
      status: status, body: Array(#"{"reason":"\#(reason)"}"#.utf8)[...])
    #expect(verdict.broadcastRefusal == BroadcastRefusal(kind, reason: reason))
  }

  @Test func `a key that APNs does not know is tried twice and no more`() async throws {
    try await StandInStage.run { stage in
      _ = try stage.emulator.app()
      let gateway = try gateway(stage, ["KeyId": "ABCDEFGHIJ"])
      #expect(
        await refusal { () throws(BroadcastRefusal) in _ = try await gateway.channels() }
          == BroadcastRefusal(.notAllowed, reason: "InvalidProviderToken"))
      #expect(try await requests(stage) == 2)
    }
  }

  @Test func `a token that has grown too old is replaced`() async throws {
    try await StandInStage.run { stage in
      let gateway = try gateway(stage)
      _ = try await gateway.channels()
      // The hub's clock runs slow: the token is not due here, and too old there.
      stage.clock.advance(by: .seconds(40 * 60))
      try await stage.ask("POST", "/v1/clock", #"{"advance":3601000}"#)
      _ = try await gateway.channels()
    }
  }

  @Test func `what APNs puts off is tried again when it says`() async throws {
    try await StandInStage.run { stage in
      let gateway = try gateway(stage)
      _ = try await gateway.channels()
      try await stage.fault(
        "apns", #"{"type":"reply","status":503,"headers":{"retry-after":"3"}}"#,
        when: #"{"limit":1}"#)
      async let answer = gateway.channels()
      await stage.clock.sleepers(1)
      #expect(stage.clock.nextDeadline?.timeIntervalSince(stage.clock.now) == 3)
      stage.clock.advance(by: .seconds(3))
      #expect(try await answer == [])
    }
  }

  @Test func `a caller is not kept waiting longer than a few seconds, nor for ever`() async throws {
    try await StandInStage.run { stage in
      let gateway = try gateway(stage)
      _ = try await gateway.channels()
      try await stage.fault(
        "apns", #"{"type":"reply","status":429,"headers":{"retry-after":"60"}}"#,
        when: #"{"limit":1}"#)
      #expect(
        await refusal { () throws(BroadcastRefusal) in _ = try await gateway.channels() }
          == BroadcastRefusal(.throttled, reason: "TooManyRequests", retryAfter: 60))
      try await stage.fault("apns", #"{"type":"reply","status":500}"#)
      async let last = refusal { () throws(BroadcastRefusal) in _ = try await gateway.channels() }
      for _ in 1...2 {
        await stage.clock.sleepers(1)
        stage.clock.advance(by: .seconds(5))
      }
      #expect(await last == BroadcastRefusal(.unavailable, reason: "InternalServerError"))
      #expect(try await requests(stage) == 5)
    }
  }

  @Test func `what was not processed goes over another connection`() async throws {
    try await StandInStage.run { stage in
      let gateway = try gateway(stage)
      _ = try await gateway.channels()
      try await stage.fault(
        "apns", #"{"type":"goaway","reason":"Shutdown","lastStreamId":"zero"}"#,
        when: #"{"limit":1}"#)
      _ = try await gateway.createChannel(.noMessage)
      #expect(try await gateway.channels().count == 1)
    }
  }

  @Test func `a channel whose reply is lost is not made twice`() async throws {
    try await StandInStage.run { stage in
      let gateway = try gateway(stage)
      _ = try await gateway.channels()
      try await stage.ask(
        "POST", "/v1/faults",
        #"{"pns":"apns","stage":"after","when":{"limit":1},"action":{"type":"reset","at":"reply"}}"#
      )
      let lost = await refusal { () throws(BroadcastRefusal) in
        _ = try await gateway.createChannel(.noMessage)
      }
      #expect(lost?.kind == .unavailable)
      #expect(try await gateway.channels().count == 1)
    }
  }

  @Test(arguments: [
    #"{"type":"garbage"}"#, #"{"type":"truncate","bytes":4}"#,
    #"{"type":"reply","status":200,"body":"{}"}"#,
    #"{"type":"reply","status":200,"body":"[]"}"#,
  ])
  func `an answer that cannot be read is no channel`(action: String) async throws {
    try await StandInStage.run { stage in
      let gateway = try gateway(stage)
      let channel = try await gateway.createChannel(.noMessage)
      try await stage.fault("apns", action)
      let read = await refusal { () throws(BroadcastRefusal) in
        _ = try await gateway.channel(channel.id)
      }
      #expect(read?.kind == .unavailable)
      let list = await refusal { () throws(BroadcastRefusal) in _ = try await gateway.channels() }
      #expect(list?.kind == .unavailable)
    }
  }

  @Test func `channels are managed at Apple's own address, or where the property says`() throws {
    func management(_ endpoint: String, _ property: String? = nil) throws -> String? {
      try APNsCredential(
        APNsFixture.tokenCredential(["Endpoint": endpoint, "BroadcastEndpoint": property]),
        at: .now
      ).broadcastEndpoint?.authority
    }
    #expect(
      try management("https://api.push.apple.com") == "api-manage-broadcast.push.apple.com:2196")
    #expect(
      try management("https://api.development.push.apple.com:443/3/device")
        == "api-manage-broadcast.sandbox.push.apple.com:2195")
    #expect(try management("https://localhost:9443") == nil)
    #expect(try management("https://localhost:9443", "https://localhost:9446") == "localhost:9446")
    #expect(throws: CredentialError.self) {
      try management("https://api.push.apple.com", "http://localhost")
    }
    let gateways = APNsGateways(
      supplies: GatewaySupplies(
        PushGatewaysConfiguration.forStandIns, clock: .system, random: .system))
    #expect(throws: CredentialError.self) {
      try gateways.broadcasts(
        with: APNsFixture.tokenCredential(["Endpoint": "https://localhost:9443"]))
    }
  }

  @Test func `a hub has one gateway as long as its credential stays`() async throws {
    let directory = PushGatewayDirectory(clock: .system, random: .system)
    let credential = APNsFixture.tokenCredential()
    func gateway(_ credential: PushCredential, _ hub: Hub.ID) async throws -> ObjectIdentifier {
      let found = try await directory.broadcasts(with: credential, hub: hub)
      return ObjectIdentifier(try #require(found as? APNsBroadcastGateway))
    }
    let first = try await gateway(credential, 1)
    #expect(try await gateway(credential, 1) == first)
    var changed = credential
    changed.properties["AppName"] = "com.example.other"
    #expect(try await gateway(changed, 1) != first)
    await directory.close()
  }

  @Test(arguments: APNsFixture.all.archives.filter { $0.expect.development })
  func `a certificate manages channels without a token`(
    archive: APNsFixture.Archive
  ) async throws {
    var options = EmulatorOptions.onFreePorts
    options.clientAuthoritiesPEM = APNsFixture.all.archiveAuthorityPEM
    let emulator = EmulatorServer(options)
    let addresses = try await emulator.start()
    _ = try emulator.app(bundleID: archive.expect.uid)
    var configuration = PushGatewaysConfiguration.forStandIns
    configuration.extraAnchorsPEM = Array(addresses.authorityPEM.utf8)
    let gateway = try APNsGateways(
      supplies: GatewaySupplies(configuration, clock: .system, random: .system)
    )
    .broadcasts(
      with: APNsFixture.certificateCredential(
        archive,
        [
          "Endpoint": addresses.apnsSandbox, "BroadcastEndpoint": addresses.apnsChannelsSandbox,
        ]))
    let made: BroadcastChannel?
    do { made = try await gateway.createChannel(.latestMessage) } catch { made = nil }
    let listed = try? await gateway.channels()
    await gateway.close()
    await emulator.stop()
    #expect(listed == [try #require(made).id])
  }
}
