import HTTP2
import Testing
import Wire

@testable import PushEmulator

/// docs/protocol/emulator.md, section 2.6 and section 9, checks 6 and 7.
@Suite(.timeLimit(.minutes(5))) struct FaultTests {
  private struct Scene: Sendable {
    let harness: Harness
    let app: EmulatorServer.App
    let device: EmulatorServer.VirtualDevice
    let jwt: String

    func push(
      _ client: Client, _ headers: [(String, String)] = [], token: String? = nil
    ) async throws -> Client.Reply {
      try await client.push(to: token ?? device.token, app, jwt: jwt, headers)
    }

    func delivered() async throws -> Int {
      try await harness.notifications(device.deviceID).count
    }

    func journal() async throws -> [JSONValue] {
      try await harness.control("GET", "/v1/requests")["requests"]?.items ?? []
    }
  }

  private func scene(_ body: (Scene) async throws -> Void) async throws {
    try await Harness.run { harness in
      let app = try harness.server.app()
      let device = try await harness.device(app)
      try await body(
        Scene(harness: harness, app: app, device: device, jwt: Harness.token(app)))
    }
  }

  @Test("a reply is given before or after the message is processed")
  func replies() async throws {
    try await scene { scene in
      let client = try scene.harness.connect()
      try await scene.harness.fault(["type": "reply", "status": 503], when: ["limit": 1])
      let before = try await scene.push(client)
      #expect(before.status == 503)
      #expect(before.reason == "ServiceUnavailable")
      #expect(try await scene.delivered() == 0)
      try await scene.harness.fault(
        [
          "type": "reply", "status": 429, "reason": "Slow", "headers": ["Retry-After": "7"],
          "body": "{\"reason\":\"Other\"}",
        ], when: ["limit": 1], stage: "after")
      let after = try await scene.push(client)
      #expect(after.status == 429)
      #expect(after.reason == "Other")
      #expect(try await scene.delivered() == 1)
      let last = try #require(try await scene.journal().last)
      #expect(last["status"] == 429)
      #expect(last["faultId"]?.text == "fault-2")
      #expect(last["storeAction"]?.text == "delivered")
      #expect(try await scene.push(client).status == 200)
    }
  }

  @Test("410 by a fault carries a timestamp")
  func goneByFault() async throws {
    try await scene { scene in
      try await scene.harness.fault(["type": "reply", "status": 410])
      let reply = try await scene.push(scene.harness.connect())
      #expect(reply.reason == "Unregistered")
      #expect(reply.timestamp == Harness.noon)
    }
  }

  @Test("every, first, limit and the clock decide when a rule fires")
  func conditions() async throws {
    try await scene { scene in
      let client = try scene.harness.connect()
      func statuses(_ count: Int, _ when: JSONValue) async throws -> [Int] {
        try await scene.harness.control("DELETE", "/v1/faults")
        try await scene.harness.fault(["type": "reply", "status": 500], when: when)
        var found: [Int] = []
        for _ in 0..<count { found.append(try await scene.push(client).status) }
        return found
      }
      #expect(try await statuses(6, ["every": 3]) == [200, 200, 500, 200, 200, 500])
      #expect(try await statuses(3, ["first": 2]) == [500, 500, 200])
      #expect(try await statuses(3, ["limit": 1]) == [500, 200, 200])
      #expect(try await statuses(2, ["probability": 0]) == [200, 200])
      #expect(try await statuses(1, ["from": JSONValue(Harness.noon + 1)]) == [200])
      #expect(try await statuses(1, ["until": JSONValue(Harness.noon)]) == [200])
      #expect(try await statuses(1, ["until": JSONValue(Harness.noon + 1)]) == [500])
    }
  }

  @Test("a rule fits by app, handle, connection and path")
  func matches() async throws {
    try await scene { scene in
      let other = try await scene.harness.device(scene.app)
      let client = try scene.harness.connect()
      func status(_ match: JSONValue, _ token: String) async throws -> Int {
        try await scene.harness.control("DELETE", "/v1/faults")
        try await scene.harness.fault(["type": "reply", "status": 500], match: match)
        return try await scene.push(client, token: token).status
      }
      let token = scene.device.token
      #expect(try await status(["handle": .string(token.uppercased())], token) == 500)
      #expect(try await status(["handle": .string(token)], other.token) == 200)
      #expect(try await status(["appId": "app-1"], token) == 500)
      #expect(try await status(["connection": 1], token) == 500)
      #expect(try await status(["connection": 2], token) == 200)
      #expect(
        try await status(["pathPrefix": .string("/3/device/" + token.prefix(5))], token) == 500)
    }
  }

  @Test("latency rules add up, and the first other rule wins")
  func latency() async throws {
    try await scene { scene in
      try await scene.harness.fault(["type": "latency", "ms": 40])
      try await scene.harness.fault(["type": "reply", "status": 500])
      try await scene.harness.fault(["type": "reply", "status": 503])
      try await scene.harness.fault(["type": "latency", "uniform": [40, 41]])
      let client = try scene.harness.connect()
      try await client.connection.ready()
      let start = ContinuousClock.now
      #expect(try await scene.push(client).status == 500)
      #expect(ContinuousClock.now - start >= .milliseconds(80))
    }
  }

  @Test("the error rate and the throttle answer in the service's form")
  func ratesAndThrottles() async throws {
    try await scene { scene in
      let client = try scene.harness.connect()
      try await scene.harness.fault(["type": "error-rate", "rates": ["503": 1]])
      #expect(try await scene.push(client).reason == "ServiceUnavailable")
      try await scene.harness.control("DELETE", "/v1/faults/fault-1")
      try await scene.harness.fault(
        ["type": "throttle", "rate": 1, "burst": 2, "scope": "handle", "retryAfter": 3])
      let other = try await scene.harness.device(scene.app)
      #expect(try await scene.push(client).status == 200)
      #expect(try await scene.push(client).status == 200)
      #expect(try await scene.push(client).reason == "TooManyRequests")
      #expect(try await scene.push(client, token: other.token).status == 200)
      try await scene.harness.advance(seconds: 1)
      #expect(try await scene.push(client).status == 200)
    }
  }

  @Test("GOAWAY names the request's own stream or the one before; those above were not processed")
  func goAway() async throws {
    try await scene { scene in
      try await scene.harness.fault(
        [
          "type": "goaway", "lastStreamId": "previous", "reason": "Shutdown", "graceMs": 60_000,
          "afterRequests": 1,
        ], when: ["limit": 1])
      let client = try scene.harness.connect()
      #expect(try await scene.push(client).status == 200)
      let refused = try await scene.push(client)
      #expect(refused.failure == .refused)
      #expect(refused.goAway?.lastStreamID == 1)
      #expect(
        refused.goAway.map { String(decoding: $0.debugData, as: UTF8.self) }
          == #"{"reason":"Shutdown"}"#)
      #expect(try await scene.delivered() == 1)
      #expect(try await scene.push(scene.harness.connect()).status == 200)
      #expect(try await scene.delivered() == 2)

      try await scene.harness.fault(
        ["type": "goaway", "lastStreamId": "seen", "graceMs": 60_000], when: ["limit": 1])
      let seen = try await scene.push(scene.harness.connect())
      #expect(seen.status == 200)
      #expect(try await scene.delivered() == 3)
    }
  }

  @Test("with GOAWAY in the middle of a burst, resending what was refused delivers each once")
  func goAwayInABurst() async throws {
    try await scene { scene in
      let devices = try scene.harness.server.makeDevices(app: scene.app, count: 200)
      let headers = [
        ("authorization", "bearer " + scene.jwt), ("apns-topic", scene.app.bundleID),
      ]
      let client = try scene.harness.connect()
      #expect(try await scene.push(client).status == 200)
      try await scene.harness.fault(
        ["type": "goaway", "lastStreamId": "previous", "afterRequests": 50], when: ["limit": 1])
      let paths = devices.map { "/3/device/" + $0.token }
      let first = await client.push(paths: paths, headers)
      let refused = zip(paths, first).filter { $1.failure == .refused }.map(\.0)
      #expect(!refused.isEmpty)
      #expect(first.allSatisfy { $0.status == 200 || $0.failure == .refused })
      let again = try await scene.harness.connect().push(paths: refused, headers)
      #expect(again.allSatisfy { $0.status == 200 })
      for device in devices {
        #expect(try await scene.harness.notifications(device.deviceID).count == 1)
      }
    }
  }

  @Test("a stream is reset with the code asked for")
  func resetStream() async throws {
    try await scene { scene in
      try await scene.harness.fault(
        ["type": "rst-stream", "code": "REFUSED_STREAM"], when: ["limit": 1])
      let client = try scene.harness.connect()
      #expect(try await scene.push(client).failure == .refused)
      try await scene.harness.fault(
        ["type": "rst-stream", "code": "INTERNAL_ERROR"], when: ["limit": 1])
      #expect(try await scene.push(client).failure == .reset(code: 2))
      #expect(try await scene.delivered() == 0)
      #expect(try await scene.journal().allSatisfy { $0.member("status") == .null })
      #expect(try await scene.push(client).status == 200)
    }
  }

  @Test("lowered SETTINGS refuse the streams above, which are not processed")
  func settings() async throws {
    try await scene { scene in
      let devices = try scene.harness.server.makeDevices(app: scene.app, count: 900)
      let client = try scene.harness.connect()
      #expect(try await scene.push(client).status == 200)
      #expect(try await scene.push(client).status == 200)
      try await scene.harness.fault(
        ["type": "settings", "maxConcurrentStreams": 3], when: ["limit": 1])
      let replies = await client.push(
        paths: devices.map { "/3/device/" + $0.token },
        [("authorization", "bearer " + scene.jwt), ("apns-topic", scene.app.bundleID)])
      let answered = replies.filter { $0.status == 200 }.count
      let refused = replies.filter { $0.failure == .refused }.count
      #expect(answered + refused == 900)
      #expect(try await scene.journal().count == answered + 2)
      #expect(client.connection.status.peerStreamLimit == 3)
    }
  }

  @Test("a reset after processing: the device has the message though the hub saw a failure")
  func resetAfterProcessing() async throws {
    try await scene { scene in
      try await scene.harness.fault(
        ["type": "reset", "at": "reply"], when: ["limit": 1], stage: "after")
      let id = [("apns-id", "8f14e45f-ceea-467f-a0e6-1f2f3a4b5c6d")]
      let first = try await scene.push(scene.harness.connect(), id)
      #expect(first.failure == .connectionLost)
      #expect(try await scene.delivered() == 1)
      // APNs does not look for repeats: the same id is a second delivery.
      #expect(try await scene.push(scene.harness.connect(), id).status == 200)
      #expect(try await scene.delivered() == 2)
      let collapse = id + [("apns-collapse-id", "once")]
      let client = try scene.harness.connect()
      #expect(try await scene.push(client, collapse).status == 200)
      #expect(try await scene.push(client, collapse).status == 200)
      let shown = try await scene.harness.notifications(scene.device.deviceID)
      #expect(shown.last?["replaces"]?.text == id[0].1)
    }
  }

  @Test(
    "a connection ends or falls silent at the moment asked for",
    arguments: [
      ("reset", "headers"), ("reset", "body"), ("close", "body"), ("close", "reply"),
      ("close", "headers"),
    ])
  func endedConnections(action: String, moment: String) async throws {
    try await scene { scene in
      try await scene.harness.fault(
        ["type": .string(action), "at": .string(moment)], when: ["limit": 1])
      let reply = try await scene.push(scene.harness.connect())
      #expect(reply.status == 0)
      #expect(reply.failure != nil)
      #expect(try await scene.delivered() == 0)
      #expect(try await scene.push(scene.harness.connect()).status == 200)
    }
  }

  @Test(
    "connections fail before or in the handshake",
    arguments: [
      ["type": "reset", "at": "accept"], ["type": "close", "at": "accept"],
      ["type": "tls-alert", "alert": "certificate_expired"],
    ] as [JSONValue])
  func failedHandshakes(action: JSONValue) async throws {
    try await scene { scene in
      try await scene.harness.fault(action, when: ["limit": 1])
      let failed = try await scene.push(scene.harness.connect())
      #expect(failed.failure == .connectFailed || failed.failure == .tlsRejectedCertificate)
      #expect(try await scene.push(scene.harness.connect()).status == 200)
    }
  }

  @Test("refuse closes the listeners until its time has come")
  func refusedConnections() async throws {
    try await scene { scene in
      try await scene.harness.fault(
        ["type": "refuse"], when: ["until": JSONValue(Harness.noon + 60_000)])
      #expect(try await scene.push(scene.harness.connect()).failure == .connectFailed)
      try await scene.harness.advance(seconds: 60)
      #expect(try await scene.push(scene.harness.connect()).status == 200)
    }
  }

  @Test("a stalled connection stays open and answers nothing")
  func stall() async throws {
    try await scene { scene in
      try await scene.harness.fault(["type": "stall", "at": "body"], when: ["limit": 1])
      let client = try scene.harness.connect()
      async let pending = scene.push(client)
      try await eventually { try await scene.journal().count == 1 }
      #expect(client.connection.status.state == .ready)
      #expect(client.connection.status.inFlight == 1)
      #expect(try await scene.push(scene.harness.connect()).status == 200)
      client.connection.close()
      #expect(try await pending.failure == .cancelled)
    }
  }

  @Test("an answer is cut, or is no JSON")
  func spoiltBodies() async throws {
    try await scene { scene in
      let client = try scene.harness.connect()
      let bad = String(repeating: "ab", count: 32)
      try await scene.harness.fault(["type": "truncate", "bytes": 5], when: ["limit": 1])
      #expect(try await scene.push(client, token: bad).failure == .reset(code: 2))
      try await scene.harness.fault(["type": "garbage"], when: ["limit": 1])
      let garbage = try await scene.push(client, token: bad)
      #expect(garbage.status == 400)
      #expect(garbage.contentType == "text/html")
      #expect(garbage.reason == nil)
      #expect(!garbage.body.isEmpty)
      #expect(try await scene.push(client, token: bad).reason == "BadDeviceToken")
    }
  }

  @Test("rules are listed with their counters and can be removed")
  func listing() async throws {
    try await scene { scene in
      try await scene.harness.fault(["type": "reply", "status": 500], when: ["every": 2])
      let client = try scene.harness.connect()
      for _ in 0..<3 { _ = try await scene.push(client) }
      let rule = try #require(
        try await scene.harness.control("GET", "/v1/faults")["faults"]?.items.first)
      #expect(rule["faultId"]?.text == "fault-1")
      #expect(rule["action"]?["status"] == 500)
      #expect(rule["matched"] == 3)
      #expect(rule["fired"] == 1)
      try await scene.harness.control("DELETE", "/v1/faults/fault-1")
      #expect(try await scene.harness.control("GET", "/v1/faults")["faults"]?.items.isEmpty == true)
      #expect(try await scene.harness.server.control("GET", "/v1/faults/fault-1").status == 404)
    }
  }
}
