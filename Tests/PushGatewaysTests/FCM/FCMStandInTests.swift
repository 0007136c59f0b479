import Foundation
import HubCore
import HubTesting
import NotificationHubs
import PushEmulator
import Testing
import Wire

@testable import PushGateways

@Suite("The FCM gateway and the stand-in", .timeLimit(.minutes(5)))
struct FCMStandInTests {
  /// An app of the stand-in and a gateway with its service account.
  private struct App {
    let id: String
    let gateway: FCMGateway
    let devices: [(id: String, token: String)]

    init(
      _ stage: StandInStage, devices count: Int, over listener: EmulatorListener = .fcm
    ) async throws {
      let app = try await stage.ask("POST", "/v1/apps", #"{"pns":"fcm","projectId":"demo"}"#)
      id = try #require(app["appId"]?.scalarText)
      let account = try #require(app["serviceAccount"])
      gateway = try FCMGateways(
        supplies: GatewaySupplies(stage.configuration, clock: stage.clock.hubClock, random: .system)
      ).gateway(
        for: PushFixture.fcm([
          "ProjectId": account["project_id"]?.scalarText,
          "ClientEmail": account["client_email"]?.scalarText,
          "PrivateKey": account["private_key"]?.scalarText,
          "PrivateKeyId": account["private_key_id"]?.scalarText,
          "Endpoint": stage.addresses[listener],
          "TokenUri": stage.addresses[.fcmHTTP1] + "/token",
        ]))
      devices = try await stage.devices(app: id, count: count).map {
        ($0.id, $0.handle["token"]?.scalarText ?? "")
      }
    }

    func batch(_ body: String = #"{"message":{"data":{"a":"1"}}}"#) -> PushBatch {
      var batch = PushBatch(bodies: [PushBody(bytes: Array(body.utf8))])
      for device in devices { batch.add(device.token) }
      return batch
    }
  }

  @Test(
    "every device gets the message, over either protocol",
    arguments: [EmulatorListener.fcm, .fcmHTTP1])
  func delivery(listener: EmulatorListener) async throws {
    try await StandInStage.run { stage in
      let app = try await App(stage, devices: 40, over: listener)
      let results = await app.gateway.deliver(app.batch())
      #expect(results.allSatisfy { $0.outcome == .success }, "\(results.compactMap(\.reason))")
      for device in app.devices {
        let got = try await stage.notifications(device.id)
        #expect(got.map { $0["payload"]?["data"]?["a"]?.scalarText } == ["1"])
      }
    }
  }

  @Test(
    "what waits for an answer is counted, over either protocol",
    arguments: [EmulatorListener.fcm, .fcmHTTP1])
  func load(listener: EmulatorListener) async throws {
    try await StandInStage.run { stage in
      let app = try await App(stage, devices: 3, over: listener)
      _ = await app.gateway.deliver(app.batch())
      try await stage.fault("fcm", #"{"type":"stall","at":"reply"}"#)
      let load = try await app.gateway.loadUnderWay(app.batch())
      #expect((1...3).contains(load.streams))
      #expect(load.connections == (listener == .fcm ? 1 : load.streams))
      #expect(load.limit ?? 0 >= 3)
    }
  }

  @Test("a device that has gone, tokens revoked midway and a refused stream find their end")
  func troubles() async throws {
    try await StandInStage.run { stage in
      let app = try await App(stage, devices: 30)
      let before = await app.gateway.deliver(app.batch())
      #expect(before.allSatisfy { $0.outcome == .success }, "\(before.compactMap(\.reason))")
      try await stage.ask(
        "POST", "/v1/devices/\(app.devices[3].id)/unregister", #"{"mode":"unregistered"}"#)
      try await stage.ask("PATCH", "/v1/apps/\(app.id)", #"{"revokeTokens":true}"#)
      try await stage.fault(
        "fcm", #"{"type":"rst-stream","code":"REFUSED_STREAM"}"#, when: #"{"every":7}"#)
      let results = await app.gateway.deliver(app.batch())
      for (index, result) in results.enumerated() where index != 3 {
        // A stream that is refused twice waits for its retry.
        #expect(result.outcome == .success || result.retry == .backoff)
      }
      #expect(results[3].outcome == .badChannel || results[3].retry == .backoff)
      #expect(results.filter { $0.outcome == .success }.count >= 20)
    }
  }

  @Test("the stand-in's own checks come out as the outcomes that they mean")
  func checks() async throws {
    try await StandInStage.run { stage in
      let app = try await App(stage, devices: 1)
      func outcome(_ body: String) async -> NotificationOutcome {
        await app.gateway.deliver(app.batch(body))[0].outcome
      }
      #expect(await outcome(#"{"message":{"data":{"a":1}}}"#) == .invalidNotificationFormat)
      #expect(await outcome(#"{"message":{"data":{"from":"x"}}}"#) == .invalidNotificationFormat)
      #expect(await outcome(#"{"message":{"foo":1}}"#) == .invalidNotificationFormat)
      #expect(await outcome(#"{"validate_only":true,"message":{}}"#) == .success)
      var batch = PushBatch(bodies: [FCMBench.body])
      batch.add("abc")
      batch.add(FCMBench.handle(1))
      let results = await app.gateway.deliver(batch)
      #expect(results.map(\.outcome) == [.badChannel, .badChannel])
      #expect(results.allSatisfy { $0.handle == .remove })
      try await stage.fault("fcm", #"{"type":"reply","status":503,"headers":{"Retry-After":"30"}}"#)
      let throttled = await app.gateway.deliver(app.batch())[0]
      #expect(throttled.outcome == .pnsUnavailable && throttled.retryAfter == 30)
    }
  }
}
