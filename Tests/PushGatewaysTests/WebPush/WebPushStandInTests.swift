import Foundation
import HTTP2
import HubCore
import HubTesting
import NotificationHubs
import PushEmulator
import Synchronization
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
      changes: [String: String?] = [:], origin: String? = nil,
      configure: (inout PushGatewaysConfiguration) -> Void = { _ in },
      transport: PushTransport = .network
    ) async throws {
      var configuration = stage.configuration
      configure(&configuration)
      let app = try await stage.ask("POST", "/v1/apps", #"{"pns":"webpush"}"#)
      let id = try #require(app["appId"]?.scalarText)
      let keys = [
        "VapidPublicKey": app["vapidPublicKey"]?.scalarText,
        "VapidPrivateKey": app["vapidPrivateKey"]?.scalarText,
      ]
      gateway = try WebPushGateways(
        supplies: GatewaySupplies(
          configuration, transport: transport, clock: stage.clock.hubClock, random: .system)
      ).gateway(for: PushFixture.webPush(keys.merging(changes) { $1 }))
      devices = try await stage.devices(app: id, count: count).map { device in
        var parts = [endpoint, "p256dh", "auth"].map { device.handle[$0]?.scalarText ?? "" }
        if let origin, let path = URL(string: parts[0])?.path { parts[0] = origin + path }
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

  /// The network, but one in which each name leads to the stand-in, by way of this address.
  private func network(
    leadingTo port: UInt16, by address: [UInt8], asked: @escaping @Sendable (String) -> Void
  ) -> PushTransport {
    PushTransport(
      connect: { wanted in
        asked("\(wanted.host):\(wanted.port)")
        var actual = wanted
        (actual.host, actual.port, actual.serverName) = ("127.0.0.1", port, "localhost")
        actual.allowsAddress = { _ in wanted.allowsAddress?(address) ?? true }
        return HTTP2Connection(actual)
      }, session: PushTransport.network.session)
  }

  @Test("with webPushHosts public, a push server of one's own is reached, at a public address only")
  func ownServer() async throws {
    let origin = "https://push.example.org"
    try await StandInStage.run(audiences: [origin]) { stage in
      let own = try #require(
        stage.addresses.services.first { $0.key.serviceName == "webpush" && $0.key.isHTTP2 })
      let port = try #require(URL(string: own.value)?.port.flatMap(UInt16.init))
      let asked = Mutex<[String]>([])
      func app(_ reach: WebPushReach, at address: [UInt8]) async throws -> App {
        try await App(
          stage, devices: 1, origin: origin,
          configure: {
            $0.allowedHosts = []
            $0.webPush.reach = reach
          },
          transport: network(leadingTo: port, by: address) { name in
            asked.withLock { $0.append(name) }
          })
      }
      let refused = try await app(.vendors, at: [93, 184, 216, 34])
      let without = await refused.gateway.deliver(refused.batch())[0]
      #expect(without.handle == .keep && without.reason?.contains("webPushHosts") == true)
      #expect(asked.withLock { $0 } == [])

      let outside = try await app(.anyPublic, at: [93, 184, 216, 34])
      let reached = await outside.gateway.deliver(outside.batch())[0]
      #expect(reached.outcome == .success, "\(reached)")
      let got = try await stage.notifications(outside.devices[0].id)
      #expect(got.first?["decrypted"]?.scalarText == "true")
      #expect(asked.withLock { $0 } == ["push.example.org:443"])

      // A person's own server asks for no pause of everybody's pushes.
      try await stage.fault(
        "webpush", #"{"type":"reply","status":503,"headers":{"Retry-After":"86400"}}"#)
      let paused = await outside.gateway.deliver(outside.batch())[0]
      #expect(paused.outcome == .pnsUnavailable && paused.retryAfter == nil, "\(paused)")

      for address: [UInt8] in [
        [10, 0, 0, 5], [127, 0, 0, 1], [169, 254, 169, 254], [100, 64, 0, 1],
        [UInt8](repeating: 0, count: 15) + [1],
      ] {
        let inside = try await app(.anyPublic, at: address)
        let result = await inside.gateway.deliver(inside.batch())[0]
        #expect(result.outcome == .badChannel && result.handle == .keep, "\(address) \(result)")
        #expect(result.reason?.hasPrefix(PushResult.refusedHere) == true)
        #expect(try await stage.notifications(inside.devices[0].id).isEmpty)
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
