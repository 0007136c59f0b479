import Foundation
import HubCore
import HubTesting
import NotificationHubs
import Testing

@Suite("Sends to registrations that clients have written", .timeLimit(.minutes(5)))
struct RegistrationSendTests {
  private func service(_ world: DispatchWorld) async throws -> HubService {
    HubService(
      store: world.store,
      directory: HubDirectory(store: world.store, clock: world.clock.hubClock),
      dispatcher: try await world.started(), clock: world.clock.hubClock, random: .system)
  }

  private func send(
    _ service: HubService, _ hub: Hub, _ format: String, tags: String, _ body: String
  ) async throws {
    _ = try await service.send(
      hub: hub,
      headers: [
        (name: "ServiceBusNotification-Format", value: format),
        (name: "ServiceBusNotification-Tags", value: tags),
      ], body: Array(body.utf8))
  }

  @Test("a native send reaches the native registrations of its platform that have the tag")
  func native() async throws {
    let world = try await DispatchWorld()
    let service = try await service(world)
    for (token, tag, platform) in [
      ("0A", "red", PushPlatform.apns), ("0B", "blue", .apns), ("0C", "red", .gcm),
    ] {
      _ = try await service.registrations.create(
        hub: world.hub,
        Registration(platform: platform, channel: .handle(token), tags: [Tag(rawValue: tag)]))
    }
    _ = try await service.registrations.create(
      hub: world.hub,
      Registration(
        platform: .apns, channel: .handle("0D"),
        kind: .template(PushTemplate(body: "{}"), name: nil),
        tags: ["red"]))
    try await send(service, world.hub, "apple", tags: "RED", #"{"aps":{"alert":"x"}}"#)
    let gateway = try #require(world.gateways[.apns])
    await gateway.arrived(batches: 1)
    #expect(gateway.pushes.map(\.handle) == ["0A"])
  }

  // Priority and Expiry of an Apple template, the headers beside them; what is sent then.
  static let templates: [(String?, String?, [String: String], String?, Int64?)] = [
    ("5", "2030-01-05T10:00:00Z", [:], "5", 1_893_837_600),
    ("#(p)", "$(when)", [:], "7", 1_893_837_600),
    ("$(none)", "$(p)", [:], nil, nil), (nil, "0", [:], nil, 0),
    ("5", nil, ["apns-priority": "10"], "10", nil),
    (nil, "0", ["apns-expiration": "99"], nil, 0),
  ]

  @Test("Priority and Expiry of an Apple template go out with it", arguments: templates)
  func template(
    priority: String?, expiry: String?, headers: [String: String], sent: String?, until: Int64?
  ) async throws {
    let world = try await DispatchWorld()
    let service = try await service(world)
    var template = PushTemplate(
      body: #"{"aps":{"alert":"$(message)"}}"#, headers: headers, expiry: expiry)
    template.applePriority = priority
    let registration = Registration(
      platform: .apns, channel: .handle("0A"), kind: .template(template, name: "main"))
    _ = try await service.registrations.create(
      hub: world.hub, body: Array(registration.requestXML.utf8))
    try await service.sendAll(
      world.hub, #"{"message":"hi","p":"7","when":"2030-01-05T10:00:00Z"}"#)
    let gateway = try #require(world.gateways[.apns])
    await gateway.arrived(batches: 1)
    let push = try #require(gateway.pushes.first)
    #expect(push.body == #"{"aps":{"alert":"hi"}}"#)
    #expect((push.headers["apns-priority"] ?? push.headers["x-apns-priority"]) == sent)
    #expect(push.expiry == until)
  }
}

extension HubService {
  fileprivate func sendAll(_ hub: Hub, _ body: String) async throws {
    _ = try await send(
      hub: hub, headers: [(name: "ServiceBusNotification-Format", value: "template")],
      body: Array(body.utf8))
  }
}
