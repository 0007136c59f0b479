import Cryptography
import Foundation
import HTTP2
import Testing
import Wire

@testable import PushEmulator

/// Broadcast channels of APNs: their management, and what a broadcast does.
@Suite(.timeLimit(.minutes(5))) struct ChannelTests {
  private static let bundleID = "com.example.app"

  /// A hub that manages channels and broadcasts.
  struct Sender: Sendable {
    let harness: Harness
    let app: EmulatorServer.App
    let jwt: String
    let management: Client
    let pushes: Client

    init(_ harness: Harness, sandbox: Bool = false) throws {
      self.harness = harness
      app = try harness.server.app(bundleID: ChannelTests.bundleID)
      jwt = try Harness.token(app)
      management = try harness.connect(sandbox: sandbox, channels: true)
      pushes = try harness.connect(sandbox: sandbox)
    }

    var authorization: (String, String) { ("authorization", "bearer " + jwt) }

    func manage(
      _ method: String, _ path: String = "channels", channel: String? = nil, body: String = ""
    ) async -> Client.Reply {
      await management.push(
        "/1/apps/\(app.bundleID)/\(path)",
        [authorization] + (channel.map { [("apns-channel-id", $0)] } ?? []),
        body: Array(body.utf8), method: method)
    }

    func create(policy: Int = 1) async throws -> String {
      let reply = await manage("POST", body: ChannelTests.newChannel(policy))
      #expect(reply.status == 201)
      return try #require(reply.channelID)
    }

    func broadcast(
      _ channel: String, expiration: Int64 = 0, body: String = #"{"aps":{"event":"update"}}"#
    ) async -> Client.Reply {
      await pushes.push(
        "/4/broadcasts/apps/\(app.bundleID)",
        [
          authorization, ("apns-channel-id", channel), ("apns-push-type", "liveactivity"),
          ("apns-expiration", String(expiration)), ("apns-priority", "10"),
        ], body: Array(body.utf8))
    }

    /// A device that follows the channel.
    func subscriber(_ channel: String, _ more: [JSONValue.Member] = []) async throws -> String {
      let device = try await harness.device(app, more)
      try await harness.control(
        "POST", "/v1/devices/\(device.deviceID)/subscribe", ["channelId": .string(channel)])
      return device.deviceID
    }
  }

  static func newChannel(_ policy: Int) -> String {
    #"{"message-storage-policy":\#(policy),"push-type":"LiveActivity"}"#
  }

  @Test func `a channel is made, read, listed and deleted`() async throws {
    try await Harness.run { harness in
      let sender = try Sender(harness)
      let first = try await sender.create(policy: 0)
      let second = try await sender.create(policy: 1)
      #expect(first != second)
      #expect(APNsChannel.isWellFormed(ArraySlice(first.utf8)))

      let read = await sender.manage("GET", channel: second)
      #expect(read.status == 200)
      #expect(read.requestID.flatMap { APNsMessageID($0) } != nil)
      #expect(
        try JSONValue.read(read.body, uniqueNames: true)
          == ["message-storage-policy": 1, "push-type": "LiveActivity"])

      let list = await sender.manage("GET", "all-channels")
      #expect(list.status == 200)
      #expect(
        try JSONValue.read(list.body, uniqueNames: true) == [
          "channels": [.string(first), .string(second)]
        ])

      #expect(await sender.manage("DELETE", channel: first).status == 204)
      #expect(await sender.manage("DELETE", channel: first).reason == "ChannelNotRegistered")
      #expect(await sender.manage("GET", channel: first).reason == "ChannelNotRegistered")
      #expect(
        try JSONValue.read(await sender.manage("GET", "all-channels").body, uniqueNames: true)
          == ["channels": [.string(second)]])
    }
  }

  @Test func `a request id is echoed, and made where there is none`() async throws {
    try await Harness.run { harness in
      let sender = try Sender(harness)
      let id = "8f14e45f-ceea-467f-a0e6-1f2f3a4b5c6d"
      let reply = await sender.management.push(
        "/1/apps/\(Self.bundleID)/channels", [sender.authorization, ("apns-request-id", id)],
        body: Array(Self.newChannel(0).utf8))
      #expect(reply.status == 201)
      #expect(reply.requestID == id)
      #expect(reply.id == nil)
      let refused = await sender.manage("GET")
      #expect(refused.requestID.flatMap { APNsMessageID($0) } != nil)
      #expect(refused.contentType == "application/json")
    }
  }

  struct Row: Sendable, CustomTestStringConvertible {
    let name: String
    let status: Int
    let reason: String?
    var method = "POST"
    var path: String?
    /// In place of a header of the good request; `nil` removes it.
    var headers: [String: String?] = [:]
    var more: [(String, String)] = []
    var body: String?

    var testDescription: String { name }
  }

  static let managementRows: [Row] = [
    Row(name: "another path", status: 404, reason: "BadPath", path: "/1/apps/x/channel"),
    Row(
      name: "a segment too many", status: 404, reason: "BadPath",
      path: "/1/apps/com.example.app/channels/x"),
    Row(name: "a push to a device", status: 404, reason: "BadPath", path: "/3/device/00"),
    Row(
      name: "a broadcast", status: 404, reason: "BadPath",
      path: "/4/broadcasts/apps/com.example.app"),
    Row(name: "PUT", status: 405, reason: "MethodNotAllowed", method: "PUT"),
    Row(
      name: "POST to the list", status: 405, reason: "MethodNotAllowed",
      path: "/1/apps/com.example.app/all-channels"),
    Row(
      name: "a header twice", status: 400, reason: "DuplicateHeaders",
      more: [("apns-channel-id", "AAAA"), ("apns-channel-id", "AAAA")]),
    Row(
      name: "no authorization", status: 403, reason: "MissingProviderToken",
      headers: ["authorization": nil as String?]),
    Row(
      name: "no token at all", status: 403, reason: "InvalidProviderToken",
      headers: ["authorization": "bearer nonsense"]),
    Row(
      name: "the request id is no UUID", status: 400, reason: "BadMessageId",
      headers: ["apns-request-id": "1"]),
    Row(
      name: "a bundle id that is none", status: 400, reason: "BadTopic",
      path: "/1/apps/com.example%20app/channels"),
    Row(
      name: "another app", status: 400, reason: "TopicDisallowed",
      path: "/1/apps/com.example.other/channels"),
    Row(name: "no body", status: 400, reason: "PayloadEmpty", body: ""),
    Row(name: "no JSON", status: 400, reason: "BadRequest", body: "hello"),
    Row(
      name: "no push type", status: 400, reason: "MissingPushType",
      body: #"{"message-storage-policy":1}"#),
    Row(
      name: "another push type", status: 400, reason: "InvalidPushType",
      body: #"{"message-storage-policy":1,"push-type":"alert"}"#),
    Row(
      name: "no policy", status: 400, reason: "BadRequest", body: #"{"push-type":"LiveActivity"}"#),
    Row(
      name: "an unknown policy", status: 400, reason: "BadRequest",
      body: ChannelTests.newChannel(2)),
    Row(
      name: "a body too long", status: 413, reason: "PayloadTooLarge",
      body: ChannelTests.newChannel(1) + String(repeating: " ", count: 6000)),
    Row(name: "read without a channel", status: 400, reason: "MissingChannelId", method: "GET"),
    Row(
      name: "delete without a channel", status: 400, reason: "MissingChannelId",
      method: "DELETE"),
    Row(
      name: "a channel that is no base 64", status: 400, reason: "BadChannelId", method: "GET",
      headers: ["apns-channel-id": "not base 64!"]),
    Row(
      name: "a channel's id too long", status: 400, reason: "BadChannelId", method: "DELETE",
      headers: ["apns-channel-id": String(repeating: "A", count: 68)]),
    Row(
      name: "an unknown channel", status: 400, reason: "ChannelNotRegistered", method: "GET",
      headers: ["apns-channel-id": "c29tZUNoYW5uZWw="]),
    Row(name: "all is well", status: 201, reason: nil),
  ]

  @Test func `a management request that breaks one rule gets that rule's answer`() async throws {
    try await Harness.run { harness in
      let sender = try Sender(harness)
      for row in Self.managementRows {
        var headers: [String: String] = ["authorization": "bearer " + sender.jwt]
        for (name, value) in row.headers { headers[name] = value }
        let client = try harness.connect(channels: true)
        let reply = await client.push(
          row.path ?? "/1/apps/\(Self.bundleID)/channels",
          headers.map { ($0.key, $0.value) } + row.more,
          body: Array((row.body ?? (row.method == "POST" ? Self.newChannel(1) : "")).utf8),
          method: row.method)
        #expect(reply.failure == nil, "\(row.name)")
        #expect(reply.status == row.status, "\(row.name)")
        #expect(reply.reason == row.reason, "\(row.name)")
        client.connection.close()
      }
    }
  }

  static let broadcastRows: [Row] = [
    Row(name: "GET", status: 405, reason: "MethodNotAllowed", method: "GET"),
    Row(
      name: "another path", status: 404, reason: "BadPath",
      path: "/4/broadcasts/app/com.example.app"),
    Row(
      name: "channel management", status: 404, reason: "BadPath",
      path: "/1/apps/com.example.app/channels"),
    Row(
      name: "no authorization", status: 403, reason: "MissingProviderToken",
      headers: ["authorization": nil as String?]),
    Row(
      name: "another app", status: 400, reason: "TopicDisallowed",
      path: "/4/broadcasts/apps/com.example.other"),
    Row(
      name: "no channel", status: 400, reason: "MissingChannelId",
      headers: ["apns-channel-id": nil as String?]),
    Row(
      name: "a channel that is none", status: 400, reason: "BadChannelId",
      headers: ["apns-channel-id": "==="]),
    Row(
      name: "an unknown channel", status: 400, reason: "ChannelNotRegistered",
      headers: ["apns-channel-id": "c29tZUNoYW5uZWw="]),
    Row(
      name: "no push type", status: 400, reason: "MissingPushType",
      headers: ["apns-push-type": nil as String?]),
    Row(
      name: "another push type", status: 400, reason: "InvalidPushType",
      headers: ["apns-push-type": "alert"]),
    Row(
      name: "no expiration", status: 400, reason: "BadExpirationDate",
      headers: ["apns-expiration": nil as String?]),
    Row(
      name: "an expiration that is none", status: 400, reason: "BadExpirationDate",
      headers: ["apns-expiration": "soon"]),
    Row(name: "priority 9", status: 400, reason: "BadPriority", headers: ["apns-priority": "9"]),
    Row(name: "no body", status: 400, reason: "PayloadEmpty", body: ""),
    Row(
      name: "5121 bytes", status: 413, reason: "PayloadTooLarge",
      body: "{}" + String(repeating: " ", count: 5119)),
    Row(
      name: "5120 bytes", status: 200, reason: nil,
      body: "{}" + String(repeating: " ", count: 5118)),
    Row(
      name: "no priority", status: 200, reason: nil, headers: ["apns-priority": nil as String?]),
    Row(
      name: "a later expiration", status: 200, reason: nil,
      headers: ["apns-expiration": "1700003600"]),
  ]

  @Test func `a broadcast that breaks one rule gets that rule's answer`() async throws {
    try await Harness.run { harness in
      let sender = try Sender(harness)
      let channel = try await sender.create()
      for row in Self.broadcastRows {
        var headers: [String: String] = [
          "authorization": "bearer " + sender.jwt, "apns-channel-id": channel,
          "apns-push-type": "liveactivity", "apns-expiration": "0", "apns-priority": "5",
        ]
        for (name, value) in row.headers { headers[name] = value }
        let client = try harness.connect()
        let reply = await client.push(
          row.path ?? "/4/broadcasts/apps/\(Self.bundleID)",
          headers.map { ($0.key, $0.value) },
          body: Array((row.body ?? #"{"aps":{}}"#).utf8), method: row.method)
        #expect(reply.status == row.status, "\(row.name)")
        #expect(reply.reason == row.reason, "\(row.name)")
        client.connection.close()
      }
    }
  }

  @Test func `a broadcast reaches the subscribers of its channel and nobody else`() async throws {
    try await Harness.run { harness in
      let sender = try Sender(harness)
      let channel = try await sender.create()
      let other = try await sender.create()
      let subscriber = try await sender.subscriber(channel)
      let second = try await sender.subscriber(channel)
      let stranger = try await sender.subscriber(other)
      let reply = await sender.broadcast(channel)
      #expect(reply.status == 200)
      #expect(reply.uniqueID == nil)
      for device in [subscriber, second] {
        let shown = try await harness.notifications(device)
        #expect(shown.map { $0["payload"]?["aps"]?["event"]?.text } == ["update"])
        #expect(shown.first?["id"]?.text == reply.requestID)
        let headers = shown.first?["headers"]
        #expect(headers?["apns-channel-id"]?.text == channel)
        #expect(headers?["apns-topic"]?.text == Self.bundleID + ".push-type.liveactivity")
      }
      #expect(try await harness.notifications(stranger).isEmpty)

      let noted = try #require(
        try await harness.control("GET", "/v1/requests?status=200")["requests"]?.items.last)
      #expect(noted["recipients"]?.whole == 2)
      #expect(noted["storeAction"]?.text == "delivered")
      #expect(noted["headers"]?["apns-channel-id"]?.text == channel)

      try await harness.control(
        "POST", "/v1/devices/\(second)/unsubscribe", ["channelId": .string(channel)])
      #expect(await sender.broadcast(channel).status == 200)
      #expect(try await harness.notifications(subscriber).count == 2)
      #expect(try await harness.notifications(second).count == 1)
    }
  }

  @Test func `a channel that stores keeps the latest message for who is offline`() async throws {
    try await Harness.run { harness in
      let sender = try Sender(harness)
      let channel = try await sender.create(policy: 1)
      let away = try await sender.subscriber(channel, [.init("online", false)])
      let later = Harness.noon / 1000 + 3600
      for event in ["first", "second"] {
        let reply = await sender.broadcast(
          channel, expiration: later, body: #"{"aps":{"event":"\#(event)"}}"#)
        #expect(reply.status == 200)
      }
      // Once and not stored.
      #expect(await sender.broadcast(channel, expiration: 0).status == 200)
      try await harness.control("PATCH", "/v1/devices/\(away)", ["online": true])
      let shown = try await harness.notifications(away)
      #expect(shown.map { $0["payload"]?["aps"]?["event"]?.text } == ["second"])
    }
  }

  @Test func `a channel without a store refuses a broadcast that is to wait`() async throws {
    try await Harness.run { harness in
      let sender = try Sender(harness)
      let channel = try await sender.create(policy: 0)
      let refused = await sender.broadcast(channel, expiration: Harness.noon / 1000 + 60)
      #expect(refused.status == 400 && refused.reason == "BadExpirationDate")
      #expect(await sender.broadcast(channel).status == 200)
    }
  }

  @Test func `an app has so many channels and no more, in each environment`() async throws {
    try await Harness.run(.changed { $0.apns.maxChannels = 2 }) { harness in
      let sender = try Sender(harness)
      let channel = try await sender.create()
      _ = try await sender.create()
      let full = await sender.manage("POST", body: Self.newChannel(1))
      #expect(full.status == 400 && full.reason == "CannotCreateChannelConfig")
      let sandbox = try Sender(harness, sandbox: true)
      _ = try await sandbox.create()
      #expect(await sandbox.manage("GET", channel: channel).reason == "ChannelNotRegistered")
      let reply = await sandbox.broadcast(channel)
      #expect(reply.reason == "ChannelNotRegistered")
      #expect(await sender.manage("DELETE", channel: channel).status == 204)
      _ = try await sender.create()
    }
  }

  @Test func `an app without the capability has no channels`() async throws {
    try await Harness.run { harness in
      let sender = try Sender(harness)
      let channel = try await sender.create()
      try await harness.control(
        "PATCH", "/v1/apps/\(sender.app.appID)", ["broadcasts": false])
      #expect(await sender.manage("GET", "all-channels").reason == "FeatureNotEnabled")
      #expect(await sender.broadcast(channel).reason == "FeatureNotEnabled")
    }
  }

  @Test func `a certificate manages the channels of its own app only`() async throws {
    let authority = try CertificateAuthority(commonName: "test authority")
    var request = CertificateAuthority.LeafRequest(commonName: "push")
    request.userID = Self.bundleID
    request.apnsExtensions = [APNsExtension.production]
    let identity = try authority.issue(request)
    try await Harness.run(.changed { $0.clientAuthoritiesPEM = authority.certificate.pem }) {
      harness in
      let sender = try Sender(harness)
      let client = try harness.connect(channels: true, identity: identity)
      let made = await client.push(
        "/1/apps/\(Self.bundleID)/channels", [], body: Array(Self.newChannel(1).utf8))
      #expect(made.status == 201)
      let list = try JSONValue.read(
        await sender.manage("GET", "all-channels").body, uniqueNames: true)
      #expect(list["channels"]?.items.map(\.text) == [made.channelID])
      let other = await client.push(
        "/1/apps/com.example.other/all-channels", [], body: [], method: "GET")
      #expect(other.reason == "TopicMismatch")
    }
  }

  @Test func `the control API says who follows which channel`() async throws {
    try await Harness.run { harness in
      let sender = try Sender(harness)
      let channel = try await sender.create()
      let device = try await sender.subscriber(channel)
      let listed = try await harness.control("GET", "/v1/channels?appId=\(sender.app.appID)")
      let item = try #require(listed["channels"]?.items.first)
      #expect(item["channelId"]?.text == channel)
      #expect(item["subscribers"]?.items.map(\.text) == [device])
      #expect(item["environment"]?.text == "production")
      let details = try await harness.control("GET", "/v1/devices/\(device)")
      #expect(details["channels"]?.items.map(\.text) == [channel])
      await #expect(throws: Harness.Failure.self) {
        try await harness.control(
          "POST", "/v1/devices/\(device)/subscribe", ["channelId": "c29tZUNoYW5uZWw="])
      }
      try await harness.control("DELETE", "/v1/apps/\(sender.app.appID)")
      #expect(try await harness.control("GET", "/v1/channels")["channels"]?.items == [])
    }
  }

  @Test func `channels and subscriptions outlive the emulator`() throws {
    func apns(_ state: EmulatorState) throws -> APNsStandIn {
      try #require(state[.apns] as? APNsStandIn)
    }
    var state = EmulatorState()
    let (app, _) = try apns(state).addApp(.init(bundleID: Self.bundleID), in: &state)
    let devices = try state.addDevices(
      DeviceRequest(app: app), fixed: nil, like: .pattern(.sandbox))
    let place = APNsChannel.Place(app: app, environment: .sandbox)
    var made = APNsChannel(id: "AAAA", at: place, policy: .mostRecentMessageStored, createdAt: 5)
    made.subscribers = Set(devices)
    try apns(state).channels.add(made)
    try apns(state).accounts.setBroadcasts(false, of: app)
    var restored = EmulatorState()
    let decoder = JSONDecoder()
    decoder.userInfo[Snapshot.services] = restored.services
    let data = try JSONEncoder().encode(Snapshot(state))
    try decoder.decode(Snapshot.self, from: data).restore(into: &restored)
    let channel = try #require(apns(restored).channels.channel("AAAA", at: place))
    #expect(channel.policy == .mostRecentMessageStored)
    #expect(channel.createdAt == 5)
    #expect(channel.subscribers == Set(devices))
    #expect(try apns(restored).accounts.apps[app]?.hasBroadcasts == false)
  }

  @Test func `a fault strikes management requests by their path`() async throws {
    try await Harness.run { harness in
      let sender = try Sender(harness)
      let channel = try await sender.create()
      try await harness.fault(
        ["type": "reply", "status": 503], match: ["pathPrefix": "/1/apps/"])
      let reply = await sender.manage("GET", channel: channel)
      #expect(reply.status == 503 && reply.reason == "ServiceUnavailable")
      #expect(reply.requestID != nil)
      #expect(await sender.broadcast(channel).status == 200)
    }
  }
}
