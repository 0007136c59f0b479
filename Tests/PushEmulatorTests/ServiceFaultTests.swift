import Testing
import Wire

@testable import PushEmulator

/// docs/protocol/emulator.md, section 2.6 at the services of two transports, and section 9,
/// checks 6 and 7 as far as they have them.
@Suite(.timeLimit(.minutes(5))) struct ServiceFaultTests {
  private func fault(
    _ scene: FCMScene, _ action: JSONValue, pns: String = "fcm", when: JSONValue = ["limit": 1],
    stage: String = "before", match: JSONValue = .object([])
  ) async throws {
    try await scene.harness.control(
      "POST", "/v1/faults",
      [
        "pns": .string(pns), "action": action, "when": when, "stage": .string(stage),
        "match": match,
      ])
  }

  /// Sends over a connection that nobody has used: on one that was used before, a client may try a
  /// request again when it breaks without an answer.
  private func onNewConnection(_ scene: FCMScene, _ body: JSONValue) async -> ServiceClient.Reply {
    let client = ServiceClient(scene.harness.addresses, .fcm, over: scene.client.transport)
    defer { client.close() }
    return await FCMScene(
      harness: scene.harness, app: scene.app, device: scene.device, client: client,
      accessToken: scene.accessToken
    ).send(body)
  }

  @Test("a reply has the service's own form", arguments: Transport.allCases)
  func replies(transport: Transport) async throws {
    try await FCMScene.run(over: transport) { scene in
      for (status, reason, code, word) in [
        (503, nil, "UNAVAILABLE", "UNAVAILABLE"), (500, nil, "INTERNAL", "INTERNAL"),
        (429, nil, "QUOTA_EXCEEDED", "RESOURCE_EXHAUSTED"),
        (403, nil, nil, "PERMISSION_DENIED"),
        (401, "THIRD_PARTY_AUTH_ERROR", "THIRD_PARTY_AUTH_ERROR", "UNAUTHENTICATED"),
      ] as [(Int, String?, String?, String)] {
        try await fault(
          scene,
          [
            "type": "reply", "status": JSONValue(status), "reason": JSONValue(reason),
            "headers": ["retry-after": "7"],
          ])
        let reply = await scene.send()
        #expect(reply.status == status)
        #expect(reply.fcmError == code)
        #expect(reply.errorStatus == word)
        #expect(reply.headers["retry-after"] == "7")
      }
      #expect(try await scene.texts().isEmpty)
      #expect(await scene.send().status == 200)
    }
  }

  @Test("the token endpoint has faults of its own")
  func tokenEndpoint() async throws {
    try await FCMScene.run { scene in
      try await fault(scene, ["type": "reply", "status": 503], pns: "fcm-token", when: .object([]))
      #expect(await scene.send().status == 200)
      let reply = try await FCMScene.askToken(scene.client, scene.app)
      #expect(reply.status == 503)
      #expect(reply.json["error"]?.text == "temporarily_unavailable")
    }
  }

  @Test("a rule holds for a handle, a path or an app only")
  func matching() async throws {
    try await FCMScene.run { scene in
      let reply: JSONValue = ["type": "reply", "status": 500]
      for match: JSONValue in [
        ["handle": .string(scene.token)], ["appId": scene.app["appId"] ?? .null],
        ["pathPrefix": "/v1/projects/demo"],
      ] {
        try await fault(scene, reply, when: .object([]), match: match)
        #expect(await scene.send().status == 500)
        try await scene.harness.control("DELETE", "/v1/faults")
      }
      for match: JSONValue in [["handle": "other"], ["pathPrefix": "/v2"]] {
        try await fault(scene, reply, match: match)
        #expect(await scene.send().status == 200)
      }
    }
  }

  @Test("a throttle turns the surplus away", arguments: Transport.allCases)
  func throttle(transport: Transport) async throws {
    try await FCMScene.run(over: transport) { scene in
      try await fault(
        scene,
        [
          "type": "throttle", "rate": 1, "burst": 2, "scope": "credential", "retryAfter": 3,
        ], when: .object([]))
      #expect(await scene.send().status == 200)
      #expect(await scene.send().status == 200)
      let reply = await scene.send()
      #expect(reply.fcmError == "QUOTA_EXCEEDED")
      #expect(reply.headers["retry-after"] == "3")
      try await scene.harness.advance(seconds: 1)
      #expect(await scene.send().status == 200)
    }
  }

  @Test(
    "after a broken connection the device has the message, or has it not, as the stage says",
    arguments: Transport.allCases, ["reset", "close", "rst-stream"])
  func broken(transport: Transport, type: String) async throws {
    try await FCMScene.run(over: transport) { scene in
      let action: JSONValue =
        type == "rst-stream" ? ["type": "rst-stream"] : ["type": .string(type)]
      try await fault(scene, action, stage: "after")
      #expect(await onNewConnection(scene, scene.data("after")).failure != nil)
      try await fault(scene, action, stage: "before")
      #expect(await onNewConnection(scene, scene.data("before")).failure != nil)
      #expect(try await scene.texts() == ["after"])
      let journal = try await scene.harness.lastRequest()
      #expect(journal["faultId"]?.text == "fault-2")
      #expect(journal.member("status") == .null)
    }
  }

  @Test("GOAWAY disowns what came after it", arguments: Transport.allCases)
  func goAway(transport: Transport) async throws {
    try await FCMScene.run(over: transport) { scene in
      try await fault(
        scene, ["type": "goaway", "lastStreamId": "previous", "graceMs": 0, "reason": "bye"])
      #expect(await onNewConnection(scene, scene.data("lost")).failure != nil)
      #expect(try await scene.texts().isEmpty)
    }
    try await FCMScene.run(over: transport) { scene in
      try await fault(scene, ["type": "goaway", "lastStreamId": "seen", "graceMs": 50])
      #expect(await scene.send(scene.data("kept")).status == 200)
      #expect(try await scene.texts() == ["kept"])
    }
  }

  @Test("a stalled request is answered by nobody", arguments: Transport.allCases)
  func stall(transport: Transport) async throws {
    try await FCMScene.run(over: transport) { scene in
      try await fault(scene, ["type": "stall"])
      let client = scene.harness.client(.fcm, over: transport)
      let stalled = FCMScene(
        harness: scene.harness, app: scene.app, device: scene.device, client: client,
        accessToken: scene.accessToken)
      async let pending = stalled.send()
      try await eventually {
        try await scene.harness.lastRequest()["faultId"]?.text == "fault-1"
      }
      #expect(await scene.send().status == 200)
      client.close()
      #expect(await pending.failure != nil)
    }
  }

  @Test("an answer is cut, or is no JSON", arguments: Transport.allCases)
  func spoiltBodies(transport: Transport) async throws {
    try await FCMScene.run(over: transport) { scene in
      try await fault(scene, ["type": "garbage"])
      let garbage = await scene.send()
      #expect(garbage.status == 200)
      #expect(garbage.headers["content-type"] == "text/html")
      #expect(garbage.json == .null)
      try await fault(scene, ["type": "truncate", "bytes": 5])
      #expect(await scene.send().failure != nil)
      #expect(try await scene.texts().count == 2)
    }
  }

  @Test("an answer can be late", arguments: Transport.allCases)
  func latency(transport: Transport) async throws {
    try await FCMScene.run(over: transport) { scene in
      try await fault(scene, ["type": "latency", "ms": 30])
      let clock = ContinuousClock()
      let before = clock.now
      #expect(await scene.send().status == 200)
      #expect(clock.now - before >= .milliseconds(30))
    }
  }

  @Test("a connection is turned down at its beginning", arguments: Transport.allCases)
  func accept(transport: Transport) async throws {
    try await FCMScene.run(over: transport) { scene in
      for type in ["reset", "close"] {
        try await fault(scene, ["type": .string(type), "at": "accept"], when: .object([]))
        let client = scene.harness.client(.fcm, over: transport)
        #expect(await client.send("GET", "/").failure != nil)
        client.close()
        try await scene.harness.control("DELETE", "/v1/faults")
      }
      let client = scene.harness.client(.fcm, over: transport)
      #expect(await client.send("GET", "/").status == 404)
      client.close()
    }
  }

  @Test("a closed address takes nobody until it opens again", arguments: Transport.allCases)
  func refuse(transport: Transport) async throws {
    try await FCMScene.run(over: transport) { scene in
      try await fault(
        scene, ["type": "refuse"], when: ["until": JSONValue(Harness.noon + 60_000)])
      try await eventually {
        let client = scene.harness.client(.fcm, over: transport)
        defer { client.close() }
        return await client.send("GET", "/").failure != nil
      }
      // Other services stay.
      let other = scene.harness.client(.webpush, over: transport)
      #expect(await other.send("POST", "/wp/none").status == 404)
      other.close()
      try await scene.harness.advance(seconds: 60)
      try await eventually {
        let client = scene.harness.client(.fcm, over: transport)
        defer { client.close() }
        return await client.send("GET", "/").status == 404
      }
    }
  }

  @Test("Web Push has its faults in the vendor's form", arguments: Transport.allCases)
  func webPush(transport: Transport) async throws {
    try await WebPushScene.run(app: ["flavor": "mozilla"], over: transport) { scene in
      for (status, errno) in [(429, 201), (503, 202), (410, 103), (500, 999), (413, 104)] {
        try await scene.harness.control(
          "POST", "/v1/faults",
          [
            "pns": "webpush", "when": ["limit": 1],
            "action": ["type": "reply", "status": JSONValue(status)],
          ])
        let reply = try await scene.push()
        #expect(reply.status == status)
        #expect(reply.json["errno"] == JSONValue(errno))
      }
      #expect(try await scene.texts().isEmpty)
    }
  }
}
