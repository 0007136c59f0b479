import HTTP2
import Testing
import Wire

@testable import PushEmulator

/// docs/protocol/emulator.md, section 9, check 1: every row of section 4.2 is reached by one
/// request. Requests differ from a good one in one thing only; those that need a special credential
/// or device make it.
@Suite struct RequestCheckTests {
  struct Row: Sendable, CustomTestStringConvertible {
    let name: String
    let status: Int
    let reason: String?
    var method = "POST"
    var path: String?
    /// In place of a header of the good request; `nil` removes it.
    var headers: [String: String?] = [:]
    /// Beside them.
    var more: [(String, String)] = []
    var body = #"{"aps":{"alert":"hi"}}"#

    var testDescription: String { name }
  }

  static let rows: [Row] = [
    Row(name: "1: GET", status: 405, reason: "MethodNotAllowed", method: "GET"),
    Row(name: "1: PUT", status: 405, reason: "MethodNotAllowed", method: "PUT"),
    Row(name: "2: another path", status: 404, reason: "BadPath", path: "/4/device/00"),
    Row(name: "2: the root", status: 404, reason: "BadPath", path: "/"),
    Row(name: "2: a segment too many", status: 404, reason: "BadPath", path: "/3/device/00/11"),
    Row(name: "2: no slash", status: 400, reason: "MissingDeviceToken", path: "/3/device"),
    Row(name: "2: no token", status: 400, reason: "MissingDeviceToken", path: "/3/device/"),
    Row(
      name: "3: a header twice", status: 400, reason: "DuplicateHeaders",
      more: [("apns-topic", "com.example.app")]),
    Row(
      name: "3: an unknown apns header twice", status: 400, reason: "DuplicateHeaders",
      more: [("apns-new", "1"), ("apns-new", "1")]),
    Row(
      name: "4: no authorization", status: 403, reason: "MissingProviderToken",
      headers: ["authorization": nil as String?]),
    Row(
      name: "4: another scheme", status: 403, reason: "MissingProviderToken",
      headers: ["authorization": "basic YTpi"]),
    Row(
      name: "5: no token at all", status: 403, reason: "InvalidProviderToken",
      headers: ["authorization": "bearer nonsense"]),
    Row(
      name: "10: apns-id is no UUID", status: 400, reason: "BadMessageId",
      headers: ["apns-id": "8f14e45fceea467fa0e61f2f3a4b5c6d"]),
    Row(
      name: "11: no topic", status: 400, reason: "MissingTopic",
      headers: ["apns-topic": nil as String?]),
    Row(
      name: "12: a blank in the topic", status: 400, reason: "BadTopic",
      headers: ["apns-topic": "com.example app"]),
    Row(
      name: "12: a topic too long", status: 400, reason: "BadTopic",
      headers: ["apns-topic": String(repeating: "a", count: 256)]),
    Row(
      name: "12: no suffix for voip", status: 400, reason: "BadTopic",
      headers: ["apns-push-type": "voip"]),
    Row(
      name: "12: a suffix without its type", status: 400, reason: "BadTopic",
      headers: ["apns-topic": "com.example.app.voip"]),
    Row(
      name: "13: another app", status: 400, reason: "TopicDisallowed",
      headers: ["apns-topic": "com.example.other"]),
    Row(
      name: "14: an unknown push type", status: 400, reason: "InvalidPushType",
      headers: ["apns-push-type": "banner"]),
    Row(
      name: "15: expiration beyond 2^63-1", status: 400, reason: "BadExpirationDate",
      headers: ["apns-expiration": "9223372036854775808"]),
    Row(
      name: "15: expiration is empty", status: 400, reason: "BadExpirationDate",
      headers: ["apns-expiration": ""]),
    Row(
      name: "16: priority 9", status: 400, reason: "BadPriority", headers: ["apns-priority": "9"]),
    Row(
      name: "16: background at once", status: 400, reason: "BadPriority",
      headers: ["apns-push-type": "background", "apns-priority": "10"]),
    Row(
      name: "17: a collapse id too long", status: 400, reason: "BadCollapseId",
      headers: ["apns-collapse-id": String(repeating: "c", count: 65)]),
    Row(
      name: "18: no hex", status: 400, reason: "BadDeviceToken", path: "/3/device/xyz"),
    Row(
      name: "18: unknown", status: 400, reason: "BadDeviceToken",
      path: "/3/device/" + String(repeating: "ab", count: 32)),
    Row(name: "21: no body", status: 400, reason: "PayloadEmpty", body: ""),
    Row(
      name: "22: 4097 bytes", status: 413, reason: "PayloadTooLarge",
      body: "{}" + String(repeating: " ", count: 4095)),
    Row(
      name: "22: beyond the listener's limit", status: 413, reason: "PayloadTooLarge",
      body: "{}" + String(repeating: " ", count: 70_000)),
    Row(
      name: "before all: a header block beyond the listener's limit", status: 413,
      reason: "PayloadTooLarge", headers: ["x-long": String(repeating: "x", count: 20_000)]),
    Row(name: "24: no JSON is taken and thrown away", status: 200, reason: nil, body: "hello"),
    Row(
      name: "push type absent", status: 200, reason: nil,
      headers: ["apns-push-type": nil as String?]),
    Row(
      name: "a UUID in upper case", status: 200, reason: nil,
      headers: ["apns-id": "8F14E45F-CEEA-467F-A0E6-1F2F3A4B5C6D"]),
    Row(
      name: "the largest expiration", status: 200, reason: nil,
      headers: ["apns-expiration": "9223372036854775807"]),
    Row(
      name: "a collapse id of 64 bytes", status: 200, reason: nil,
      headers: ["apns-collapse-id": String(repeating: "c", count: 64)]),
    Row(
      name: "4096 bytes", status: 200, reason: nil,
      body: "{}" + String(repeating: " ", count: 4094)),
  ]

  @Test("a request that breaks one rule gets that rule's answer")
  func oneRuleBroken() async throws {
    try await Harness.run { harness in
      let app = try harness.server.app()
      let device = try harness.server.makeDevices(app: app)[0]
      let jwt = try Harness.token(app)
      for row in Self.rows {
        var headers = [
          "authorization": "bearer " + jwt, "apns-topic": app.bundleID, "apns-push-type": "alert",
        ]
        for (name, value) in row.headers { headers[name] = value }
        let client = try harness.connect()
        let reply = await client.push(
          row.path ?? "/3/device/" + device.token,
          headers.map { ($0.key, $0.value) } + row.more, body: Array(row.body.utf8),
          method: row.method)
        #expect(reply.failure == nil, "\(row.name)")
        #expect(reply.status == row.status, "\(row.name)")
        #expect(reply.reason == row.reason, "\(row.name)")
        client.connection.close()
      }
    }
  }

  @Test("check 5: a token of another team than the connection's is refused")
  func teamOfTheConnection() async throws {
    try await Harness.run { harness in
      let app = try harness.server.app(bundleID: "com.example.one")
      let other = try harness.server.app(bundleID: "com.example.two")
      let device = try harness.server.makeDevices(app: app)[0]
      let otherDevice = try harness.server.makeDevices(app: other)[0]
      let client = try harness.connect()
      #expect(try await client.push(to: device.token, app).status == 200)
      let reply = try await client.push(to: otherDevice.token, other)
      #expect(reply.status == 403)
      #expect(reply.reason == "InvalidProviderToken")
      #expect(try await harness.connect().push(to: otherDevice.token, other).status == 200)
    }
  }

  @Test("checks 5 and 6: a revoked key, and one for the other environment")
  func revokedAndMisplacedKeys() async throws {
    try await Harness.run { harness in
      let app = try harness.server.app()
      let device = try harness.server.makeDevices(app: app)[0]
      let jwt = try Harness.token(app)
      let client = try harness.connect()
      #expect(try await client.push(to: device.token, app, jwt: jwt).status == 200)
      func patch(_ change: JSONValue.Member) async throws {
        let key = JSONValue.object([.init("kid", .string(app.keyID)), change])
        try await harness.control("PATCH", "/v1/apps/\(app.appID)", ["keys": [key]])
      }
      try await patch(.init("environment", "sandbox"))
      var reply = try await client.push(to: device.token, app, jwt: jwt)
      #expect(reply.status == 403)
      #expect(reply.reason == "BadEnvironmentKeyIdInToken")
      try await patch(.init("environment", "both"))
      #expect(try await client.push(to: device.token, app, jwt: jwt).status == 200)
      try await patch(.init("revoked", true))
      reply = try await client.push(to: device.token, app, jwt: jwt)
      #expect(reply.status == 403)
      #expect(reply.reason == "InvalidProviderToken")
    }
  }

  @Test("checks 7 and 13: a topic key does not mix with a team key, and knows its topics only")
  func keyScopes() async throws {
    let vectors = Vectors.shared
    let first = try #require(vectors.keys["p256_test"])
    let second = try #require(vectors.keys["p256_other"])
    try await Harness.run { harness in
      try await harness.control(
        "POST", "/v1/apps",
        [
          "pns": "apns", "bundleId": "com.example.app", "teamId": "TEAM000001",
          "keys": [
            ["kid": "TEAMKEY001", "publicKeyPem": .string(first.publicSPKI)],
            [
              "kid": "TOPICKEY01", "publicKeyPem": .string(second.publicSPKI), "scope": "topic",
              "topics": ["com.example.app"],
            ],
          ],
        ])
      try await harness.control(
        "POST", "/v1/apps",
        ["pns": "apns", "bundleId": "com.example.second", "teamId": "TEAM000001", "keys": []])
      func app(_ id: String, _ bundleID: String, _ kid: String, _ p8: String)
        -> EmulatorServer.App
      {
        .init(appID: id, bundleID: bundleID, teamID: "TEAM000001", keyID: kid, p8: p8)
      }
      let byTeam = app("app-1", "com.example.app", "TEAMKEY001", first.privatePKCS8)
      let byTopic = app("app-1", "com.example.app", "TOPICKEY01", second.privatePKCS8)
      let beyond = app("app-2", "com.example.second", "TOPICKEY01", second.privatePKCS8)
      let device = try harness.server.makeDevices(app: byTeam)[0]
      let client = try harness.connect()
      #expect(try await client.push(to: device.token, byTeam).status == 200)
      let mixed = try await client.push(to: device.token, byTopic)
      #expect(mixed.status == 403)
      #expect(mixed.reason == "UnrelatedKeyIdInToken")
      let topical = try harness.connect()
      let jwt = try Harness.token(byTopic)
      #expect(try await topical.push(to: device.token, byTopic, jwt: jwt).status == 200)
      let disallowed = try await topical.push(to: device.token, beyond, jwt: jwt)
      #expect(disallowed.status == 400)
      #expect(disallowed.reason == "TopicDisallowed")
    }
  }

  @Test("checks 19 and 20: dead tokens and tokens of another app or kind")
  func deadAndForeignTokens() async throws {
    try await Harness.run { harness in
      let app = try harness.server.app()
      let jwt = try Harness.token(app)
      let gone = try await harness.device(
        app, [.init("state", "unregistered"), .init("at", 1234)])
      let expired = try await harness.device(app, [.init("state", "expired")])
      let unknown = try await harness.device(app, [.init("state", "unknown")])
      let voip = try await harness.device(app, [.init("kind", "voip")])
      let shortLived = try await harness.device(app, [.init("ttl", 60)])
      let other = try harness.server.app(bundleID: "com.example.other")
      let foreign = try await harness.device(other)
      let client = try harness.connect()
      func push(_ token: String) async throws -> Client.Reply {
        try await client.push(to: token, app, jwt: jwt)
      }
      var reply = try await push(gone.token)
      #expect(reply.status == 410 && reply.reason == "Unregistered" && reply.timestamp == 1234)
      reply = try await push(expired.token)
      #expect(
        reply.status == 410 && reply.reason == "ExpiredToken" && reply.timestamp == Harness.noon)
      #expect(try await push(unknown.token).reason == "BadDeviceToken")
      #expect(try await push(voip.token).reason == "DeviceTokenNotForTopic")
      #expect(try await push(foreign.token).reason == "DeviceTokenNotForTopic")
      #expect(try await push(shortLived.token).status == 200)
      try await harness.advance(seconds: 60)
      reply = try await push(shortLived.token)
      #expect(reply.status == 410 && reply.reason == "ExpiredToken")
    }
  }

  @Test("checks 14, 23 and 24 as the options sharpen them")
  func options() async throws {
    try await Harness.run(
      .changed { options in
        options.apns.requirePushType = true
        options.apns.rejectBadJSON = true
        options.apns.perTokenRate = 1
      }
    ) { harness in
      let app = try harness.server.app()
      let device = try harness.server.makeDevices(app: app)[0]
      let jwt = try Harness.token(app)
      let client = try harness.connect()
      let bare = await client.push(
        "/3/device/" + device.token,
        [("authorization", "bearer " + jwt), ("apns-topic", app.bundleID)])
      #expect(bare.status == 400 && bare.reason == "InvalidPushType")
      let noJSON = try await client.push(to: device.token, app, jwt: jwt, body: "[]")
      #expect(noJSON.status == 400 && noJSON.reason == "PayloadEmpty")
      let second = try await client.push(to: device.token, app, jwt: jwt)
      #expect(second.status == 429 && second.reason == "TooManyRequests")
      try await harness.advance(seconds: 1)
      #expect(try await client.push(to: device.token, app, jwt: jwt).status == 200)
    }
  }

  @Test("the sandbox answers with a key to its delivery log, production does not")
  func uniqueIDs() async throws {
    try await Harness.run { harness in
      let app = try harness.server.app()
      let here = try harness.server.makeDevices(app: app)[0]
      let there = try harness.server.makeDevices(app: app, environment: .sandbox)[0]
      let production = try await harness.connect().push(to: here.token, app)
      #expect(production.status == 200 && production.uniqueID == nil)
      let sandbox = try await harness.connect(sandbox: true).push(to: there.token, app)
      #expect(sandbox.status == 200)
      #expect(sandbox.uniqueID.flatMap { APNsMessageID($0) } != nil)
      #expect(sandbox.body.isEmpty)
      let wrongPlace = try await harness.connect(sandbox: true).push(to: here.token, app)
      #expect(wrongPlace.reason == "BadDeviceToken")
    }
  }
}
