import Foundation
import HubCore
import HubTesting
import NotificationHubs
import PushEmulator
import Testing

@testable import PushGateways

/// What the SDK's payloads become on virtual devices, by way of the gateways and the stand-ins.
@Suite("Gateways over HTTP/1.1 and the emulator", .timeLimit(.minutes(5)))
struct StandInTests {
  private static let start: Int64 = 1_700_000_000

  private struct Service: CustomTestStringConvertible, Sendable {
    let platform: PushPlatform
    /// Of the control API.
    let app: String
    let listener: EmulatorListener
    let credential: @Sendable (_ origin: String) -> [String: String]
    /// Of a device, from its `handle`.
    let channel: @Sendable ([String: String]) -> PushChannel
    let payload: @Sendable () throws -> any PushPayload
    /// What the device shows of it.
    let shown: String
    var testDescription: String { platform.rawValue }
  }

  private static let services: [Service] = [
    Service(
      platform: .wns,
      app: #"{"pns":"wns","packageSid":"ms-app://s-1-15-2-1-2-3","secret":"a+b/c"}"#,
      listener: .wns,
      credential: {
        [
          "PackageSid": "ms-app://S-1-15-2-1-2-3", "SecretKey": "a+b/c",
          "WindowsLiveEndpoint": $0 + "/accesstoken.srf",
        ]
      }, channel: { .wns(channelURI: $0["channelUri"] ?? "") },
      payload: {
        try WNSPayload(toast: .init(lines: ["Tea & <milk>"]), delivery: .init(tag: "tea"))
      }, shown: "Tea &amp; &lt;milk&gt;"),
    Service(
      platform: .adm, app: #"{"pns":"adm","clientId":"c","clientSecret":"s"}"#, listener: .adm,
      credential: {
        [
          "ClientId": "c", "ClientSecret": "s", "AuthTokenUrl": $0 + "/auth/O2/token",
          "SendUrlTemplate": $0 + "/messaging/registrations/{0}/messages",
        ]
      }, channel: { .adm(registrationID: $0["registrationId"] ?? "") },
      payload: { try ADMMessage(data: ["k": "v"], expiresAfter: .seconds(60), priority: .high) },
      shown: #""k":"v""#),
    Service(
      platform: .baidu, app: #"{"pns":"baidu","apiKey":"k","secretKey":"s"}"#, listener: .baidu,
      credential: {
        [
          "BaiduApiKey": "k", "BaiduSecretKey": "s",
          "BaiduEndPoint": $0 + "/rest/2.0/channel/channel",
        ]
      }, channel: { .baidu(userID: $0["userId"] ?? "", channelID: $0["channelId"] ?? "") },
      payload: { try BaiduMessage(.init(title: "Tea ~*", description: "ready")) },
      shown: "Tea ~*"),
    Service(
      platform: .xiaomi, app: #"{"pns":"xiaomi","appSecret":"s==","packageName":"com.example"}"#,
      listener: .xiaomi, credential: { ["AppSecret": "s==", "Endpoint": $0] },
      channel: { .xiaomi(registrationID: $0["regId"] ?? "") },
      payload: {
        try XiaomiMessage(
          .init(title: "Tea", description: "ready", id: 7), payload: "a=1&b=+",
          delivery: .init(ttl: .seconds(60), jobKey: "j", packageName: "com.example"))
      }, shown: "a=1&b=+"),
  ]

  private struct Stage {
    let emulator: EmulatorServer
    let service: Service
    let appID: String
    let gateway: any PushGateway

    func ask(_ method: String, _ target: String, _ body: String = "") async throws -> Data {
      let reply = try await emulator.control(method, target, body: body)
      try #require((200..<300).contains(reply.status), "\(method) \(target): \(reply.status)")
      return Data(reply.body)
    }

    func device() async throws -> (id: String, channel: PushChannel) {
      struct List: Decodable {
        struct Item: Decodable {
          let deviceId: String
          let handle: [String: Value]
        }
        let devices: [Item]
      }
      let data = try await ask("POST", "/v1/devices", #"{"appId":"\#(appID)"}"#)
      let made = try #require(try JSONDecoder().decode(List.self, from: data).devices.first)
      return (made.deviceId, service.channel(made.handle.mapValues(\.text)))
    }

    func batch(to channel: PushChannel) throws -> PushBatch {
      let payload = try service.payload()
      var headers: [String: String] = [:]
      for (name, value) in payload.headers { headers[name.lowercased()] = value }
      var batch = PushBatch(bodies: [PushBody(bytes: Array(payload.body), headers: headers)])
      batch.add(channel.handle, id: 1, confirmedAt: StandInTests.start * 1000)
      return batch
    }

    func send(to channel: PushChannel) async throws -> PushResult {
      try #require(await gateway.deliver(try batch(to: channel)).first)
    }

    /// Payloads on the device, as text.
    func shown(_ id: String) async throws -> [String] {
      struct List: Decodable {
        struct Item: Decodable { let payloadBase64: Data }
        let notifications: [Item]
      }
      let data = try await ask("GET", "/v1/devices/\(id)/notifications")
      return try JSONDecoder().decode(List.self, from: data).notifications.map {
        String(decoding: $0.payloadBase64, as: UTF8.self)
      }
    }
  }

  /// A text, or a number that stands beside texts.
  private struct Value: Decodable {
    let text: String
    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      text = (try? container.decode(String.self)) ?? ""
    }
  }

  private func withStage(_ service: Service, _ body: (Stage) async throws -> Void) async throws {
    var options = EmulatorOptions.onFreePorts
    options.manualClock = Self.start * 1000
    let emulator = EmulatorServer(options)
    let addresses = try await emulator.start()
    var configuration = PushGatewaysConfiguration.forStandIns
    configuration.extraAnchorsPEM = Array(addresses.authorityPEM.utf8)
    configuration.allowedHosts = ["localhost", "127.0.0.1"]
    configuration.connections = 7
    let clock = ManualClock(now: Date(timeIntervalSince1970: TimeInterval(Self.start)))
    let directory = PushGatewayDirectory(configuration, clock: clock.hubClock, random: .system)
    do {
      let app = try await emulator.control("POST", "/v1/apps", body: service.app)
      struct Made: Decodable { let appId: String }
      let appID = try JSONDecoder().decode(Made.self, from: Data(app.body)).appId
      let credential = PushCredential(
        platform: service.platform, properties: service.credential(addresses[service.listener]),
        modifiedAt: Date(timeIntervalSince1970: 0))
      let gateway = try #require(try await directory.gateway(for: credential, hub: 1))
      try await body(
        Stage(emulator: emulator, service: service, appID: appID, gateway: gateway))
    } catch {
      await directory.close()
      await emulator.stop()
      throw error
    }
    await directory.close()
    await emulator.stop()
  }

  @Test("a payload of the SDK reaches the device of its platform", arguments: services)
  private func delivery(service: Service) async throws {
    try await withStage(service) { stage in
      let device = try await stage.device()
      let result = try await stage.send(to: device.channel)
      #expect(result.outcome == .success, "\(result.reason ?? "")")
      let shown = try await stage.shown(device.id)
      #expect(shown.count == 1)
      #expect(shown.first?.contains(service.shown) == true)
    }
  }

  @Test("what waits for an answer is counted, with the connections", arguments: services)
  private func load(service: Service) async throws {
    try await withStage(service) { stage in
      let device = try await stage.device()
      #expect(try await stage.send(to: device.channel).outcome == .success)
      _ = try await stage.ask(
        "POST", "/v1/faults",
        #"{"pns":"\#(service.platform.rawValue)","action":{"type":"stall","at":"reply"}}"#)
      let load = try await stage.gateway.loadUnderWay(try stage.batch(to: device.channel))
      #expect(load == GatewayLoad(connections: 1, streams: 1, limit: 7))
    }
  }

  @Test("a device that is gone loses its handle", arguments: services)
  private func gone(service: Service) async throws {
    try await withStage(service) { stage in
      let device = try await stage.device()
      _ = try await stage.ask(
        "POST", "/v1/devices/\(device.id)/unregister", #"{"mode":"unregistered"}"#)
      let result = try await stage.send(to: device.channel)
      #expect([.badChannel, .expiredChannel].contains(result.outcome))
      #expect(result.handle == .remove)
    }
  }

  @Test("a credential that the service refuses pauses", arguments: services)
  private func refused(service: Service) async throws {
    try await withStage(service) { stage in
      let device = try await stage.device()
      let change =
        switch service.platform {
        case .wns: #"{"secret":"other"}"#
        case .adm: #"{"clientSecret":"other"}"#
        case .baidu: #"{"secretKey":"other"}"#
        default: #"{"appSecret":"other"}"#
        }
      _ = try await stage.ask("PATCH", "/v1/apps/\(stage.appID)", change)
      let result = try await stage.send(to: device.channel)
      #expect(result.outcome == .invalidCredentials)
      #expect(result.retry == .pauseCredential)
      #expect(result.handle == .keep)
    }
  }

  @Test("ADM's new id of a device takes the place of the old")
  private func replaced() async throws {
    let service = try #require(Self.services.first { $0.platform == .adm })
    try await withStage(service) { stage in
      let device = try await stage.device()
      _ = try await stage.ask("POST", "/v1/devices/\(device.id)/rotate")
      let result = try await stage.send(to: device.channel)
      #expect(result.outcome == .success)
      #expect(result.handle == .replace)
      #expect(result.newHandle?.hasPrefix("amzn1.adm-registration") == true)
    }
  }
}
