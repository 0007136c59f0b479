import Foundation
import HubCore
import HubTesting
import NotificationHubs
import PushEmulator
import Testing
import Wire

@testable import PushGateways

@Suite("The Web Push gateway and the stand-in", .timeLimit(.minutes(5)))
struct WebPushStandInTests {
  private struct App {
    let gateway: WebPushGateway
    let devices: [(id: String, handle: String)]

    init(
      _ stage: StandInStage, devices count: Int, endpoint: String = "endpoint",
      changes: [String: String?] = [:]
    ) async throws {
      let app = try await stage.ask("POST", "/v1/apps", #"{"pns":"webpush"}"#)
      let id = try #require(app["appId"]?.scalarText)
      let keys = [
        "VapidPublicKey": app["vapidPublicKey"]?.scalarText,
        "VapidPrivateKey": app["vapidPrivateKey"]?.scalarText,
      ]
      gateway = try WebPushGateways(
        supplies: GatewaySupplies(stage.configuration, clock: stage.clock.hubClock, random: .system)
      ).gateway(for: PushFixture.webPush(keys.merging(changes) { $1 }))
      devices = try await stage.devices(app: id, count: count).map { device in
        let parts = [endpoint, "p256dh", "auth"].map { device.handle[$0]?.scalarText ?? "" }
        return (device.id, parts.joined(separator: "\n"))
      }
    }

    func batch(_ body: PushBody = WebPushBench.body) -> PushBatch {
      WebPushBench.batch(handles: devices.map(\.handle), body: body)
    }
  }

  @Test(
    "every browser decrypts what the hub sent, over either protocol",
    arguments: ["endpoint", "endpointHTTP1"])
  func delivery(endpoint: String) async throws {
    try await StandInStage.run { stage in
      let app = try await App(stage, devices: 30, endpoint: endpoint)
      let body = PushBody(
        bytes: Array(#"{"n":1}"#.utf8), headers: ["urgency": "high", "topic": "t"])
      let results = await app.gateway.deliver(app.batch(body))
      #expect(results.allSatisfy { $0.outcome == .success })
      for device in app.devices {
        let got = try await stage.notifications(device.id)
        #expect(got.count == 1)
        #expect(got.first?["decrypted"]?.scalarText == "true")
        #expect(got.first?["payload"]?["n"]?.scalarText == "1")
      }
    }
  }

  @Test("what waits for an answer is counted")
  func load() async throws {
    try await StandInStage.run { stage in
      let app = try await App(stage, devices: 3)
      #expect(await app.gateway.load() == GatewayLoad())
      _ = await app.gateway.deliver(app.batch())
      try await stage.fault("webpush", #"{"type":"stall","at":"reply"}"#)
      let load = try await app.gateway.loadUnderWay(app.batch())
      #expect(load.connections == 1 && (1...3).contains(load.streams))
    }
  }

  @Test("a subscription that has ended is removed, a foreign key is the credential's fault")
  func refusals() async throws {
    try await StandInStage.run { stage in
      let app = try await App(stage, devices: 2)
      try await stage.ask(
        "POST", "/v1/devices/\(app.devices[0].id)/unregister", #"{"mode":"unregistered"}"#)
      let results = await app.gateway.deliver(app.batch())
      #expect(results.map(\.outcome) == [.expiredChannel, .success])
      #expect(results[0].handle == .remove)

      let pair = PushFixture.all.keys.p256
      let stranger = try await App(
        stage, devices: 1,
        changes: [
          "VapidPublicKey": pair.public_uncompressed_b64u, "VapidPrivateKey": pair.d_b64u,
        ])
      let refused = await stranger.gateway.deliver(stranger.batch())[0]
      #expect(refused.outcome == .invalidCredentials && refused.handle == .keep)
    }
  }

  @Test("Retry-After and the service's faults are handed on")
  func faults() async throws {
    try await StandInStage.run { stage in
      let app = try await App(stage, devices: 1)
      try await stage.fault(
        "webpush", #"{"type":"reply","status":429,"headers":{"Retry-After":"7"}}"#)
      let result = await app.gateway.deliver(app.batch())[0]
      #expect(result.outcome == .throttled && result.retryAfter == 7 && result.retry == .backoff)
    }
  }
}
