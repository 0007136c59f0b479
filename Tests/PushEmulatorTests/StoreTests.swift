import Testing
import Wire

@testable import PushEmulator

/// docs/protocol/emulator.md, section 3, the column of APNs, and section 9, checks 8 and 11.
@Suite struct StoreTests {
  /// An emulator with one app, one device and a connection to it.
  private struct Scene: Sendable {
    let harness: Harness
    let app: EmulatorServer.App
    let device: EmulatorServer.VirtualDevice
    let client: Client
    let jwt: String

    func push(
      _ text: String, _ headers: [(String, String)] = []
    ) async throws -> Client.Reply {
      let reply = try await client.push(
        to: device.token, app, jwt: jwt, headers, body: #"{"aps":{"alert":"\#(text)"}}"#)
      #expect(reply.status == 200)
      return reply
    }

    func patch(_ change: JSONValue) async throws {
      try await harness.control("PATCH", "/v1/devices/\(device.deviceID)", change)
    }

    /// The alerts of the delivered notifications, oldest first.
    func alerts() async throws -> [String] {
      try await harness.notifications(device.deviceID).map {
        $0["payload"]?["aps"]?["alert"]?.text ?? "?"
      }
    }

    func eventNames() async throws -> [String] {
      try await harness.events(device.deviceID).map(\.name)
    }

    func storeAction() async throws -> String? {
      try await harness.control("GET", "/v1/requests")["requests"]?.items.last?["storeAction"]?.text
    }
  }

  private func scene(
    _ device: JSONValue = .object([]), _ options: EmulatorOptions = .changed(),
    _ body: (Scene) async throws -> Void
  ) async throws {
    try await Harness.run(options) { harness in
      let app = try harness.server.app()
      let made = try await harness.device(app, device.members ?? [])
      try await body(
        Scene(
          harness: harness, app: app, device: made, client: harness.connect(),
          jwt: Harness.token(app)))
    }
  }

  @Test("an offline device gets only the last of three messages when it comes online")
  func lastOfThree() async throws {
    try await scene(["online": false]) { scene in
      let first = try await scene.push("one")
      #expect(try await scene.storeAction() == "stored")
      let second = try await scene.push("two")
      #expect(try await scene.storeAction() == "replaced")
      _ = try await scene.push("three")
      #expect(try await scene.alerts().isEmpty)
      let stored = try await scene.harness.control(
        "GET", "/v1/devices/\(scene.device.deviceID)/stored")["stored"]?.items
      #expect(stored?.count == 1)
      #expect(stored?.first?["expiresAt"]?.whole == Harness.noon + 30 * 86_400_000)
      try await scene.patch(["online": true])
      #expect(try await scene.alerts() == ["three"])
      let events = try await scene.harness.events(scene.device.deviceID)
      #expect(events.map(\.name) == ["replaced", "replaced", "state", "notification"])
      #expect(events[0].data["id"]?.text == first.id)
      #expect(events[0].data["by"]?.text == second.id)
      #expect(events[3].data["from"]?.text == "store")
    }
  }

  @Test("expiration 0, or one that has passed, is tried once and never stored")
  func neverStored() async throws {
    try await scene(["online": false]) { scene in
      for expiration in ["0", "1"] {
        _ = try await scene.push("now or never", [("apns-expiration", expiration)])
        #expect(try await scene.storeAction() == "discarded")
      }
      try await scene.patch(["online": true])
      #expect(try await scene.alerts().isEmpty)
      let events = try await scene.harness.events(scene.device.deviceID)
      #expect(events.map(\.name) == ["discarded", "discarded", "state"])
      #expect(events[0].data["why"]?.text == "offline-no-store")
      _ = try await scene.push("online", [("apns-expiration", "1")])
      #expect(try await scene.alerts() == ["online"])
    }
  }

  @Test("the clock moving past an expiration drops the stored message and says so")
  func expiry() async throws {
    try await scene(["online": false]) { scene in
      let expiration = Harness.noon / 1000 + 60
      let reply = try await scene.push("a minute", [("apns-expiration", String(expiration))])
      try await scene.harness.advance(seconds: 59)
      #expect(try await scene.eventNames().isEmpty)
      try await scene.harness.advance(seconds: 1)
      let events = try await scene.harness.events(scene.device.deviceID)
      #expect(events.map(\.name) == ["expired"])
      #expect(events[0].data["id"]?.text == reply.id)
      try await scene.patch(["online": true])
      #expect(try await scene.alerts().isEmpty)
    }
  }

  @Test("with room for more, a collapse id replaces in place and then the oldest falls out")
  func largerStore() async throws {
    try await scene(["online": false], .changed { $0.apns.storedPerApp = 2 }) { scene in
      _ = try await scene.push("a1", [("apns-collapse-id", "a")])
      _ = try await scene.push("b", [])
      _ = try await scene.push("a2", [("apns-collapse-id", "a")])
      #expect(try await scene.eventNames() == ["replaced"])
      try await scene.patch(["online": true])
      #expect(try await scene.alerts() == ["a2", "b"])
      try await scene.patch(["online": false])
      for text in ["one", "two", "three"] { _ = try await scene.push(text) }
      try await scene.patch(["online": true])
      #expect(try await scene.alerts() == ["a2", "b", "two", "three"])
      let discarded = try await scene.harness.events(scene.device.deviceID)
        .filter { $0.name == "discarded" }
      #expect(discarded.map { $0.data["why"]?.text } == ["store-full"])
    }
  }

  @Test("on the device, a newer message with the same collapse id takes the older one's place")
  func collapseOnDevice() async throws {
    try await scene { scene in
      let first = try await scene.push("1", [("apns-collapse-id", "score")])
      _ = try await scene.push("other")
      _ = try await scene.push("2", [("apns-collapse-id", "score")])
      let shown = try await scene.harness.notifications(scene.device.deviceID)
      #expect(shown.map { $0["replaces"]?.text } == [nil, nil, first.id])
    }
  }

  @Test("a device that saves power gets priority 5 with the next 10")
  func powerSavingUntilTheNextUrgent() async throws {
    try await scene { scene in
      try await scene.patch(["powerSaving": true])
      _ = try await scene.push("later", [("apns-priority", "5")])
      #expect(try await scene.storeAction() == "held")
      _ = try await scene.push("much later", [("apns-priority", "1")])
      #expect(try await scene.alerts().isEmpty)
      _ = try await scene.push("now", [("apns-priority", "10")])
      #expect(try await scene.alerts() == ["later", "much later", "now"])
    }
  }

  @Test("held messages come when power saving ends, or after 15 minutes")
  func powerSavingEnds() async throws {
    try await scene { scene in
      try await scene.patch(["powerSaving": true])
      _ = try await scene.push("first", [("apns-priority", "5")])
      try await scene.patch(["powerSaving": false])
      #expect(try await scene.alerts() == ["first"])
      try await scene.patch(["powerSaving": true])
      _ = try await scene.push("second", [("apns-priority", "5")])
      try await scene.harness.advance(seconds: 15 * 60 - 1)
      #expect(try await scene.alerts() == ["first"])
      try await scene.harness.advance(seconds: 1)
      #expect(try await scene.alerts() == ["first", "second"])
    }
  }

  @Test("a user who turned notifications off gets none, and the hub a 200")
  func disabled() async throws {
    try await scene { scene in
      try await scene.patch(["disabled": true])
      _ = try await scene.push("unwanted")
      let events = try await scene.harness.events(scene.device.deviceID)
      #expect(events.map(\.name) == ["discarded"])
      #expect(events[0].data["why"]?.text == "disabled")
      try await scene.patch(["disabled": false])
      #expect(try await scene.alerts().isEmpty)
    }
  }

  @Test("after a silent uninstall messages vanish, then the token is dead")
  func silentUninstall() async throws {
    try await scene { scene in
      try await scene.harness.control(
        "POST", "/v1/devices/\(scene.device.deviceID)/unregister",
        ["at": 77, "silentFor": 600])
      _ = try await scene.push("into the void")
      let last = try #require(try await scene.harness.events(scene.device.deviceID).last)
      #expect(last.name == "discarded")
      #expect(last.data["why"]?.text == "unregistered-silent")
      try await scene.harness.advance(seconds: 600)
      let reply = try await scene.client.push(to: scene.device.token, scene.app, jwt: scene.jwt)
      #expect(reply.status == 410)
      #expect(reply.reason == "Unregistered")
      #expect(reply.timestamp == 77)
    }
  }

  @Test("a rotated token is dead and the new one lives")
  func rotation() async throws {
    try await scene { scene in
      let changed = try await scene.harness.control(
        "POST", "/v1/devices/\(scene.device.deviceID)/rotate")
      let token = try #require(changed["handle"]?["token"]?.text)
      #expect(token != scene.device.token)
      #expect(changed["handles"]?.items.count == 2)
      let old = try await scene.client.push(to: scene.device.token, scene.app, jwt: scene.jwt)
      #expect(old.status == 410)
      #expect(old.reason == "Unregistered")
      #expect(old.timestamp == Harness.noon)
      let new = try await scene.client.push(to: token, scene.app, jwt: scene.jwt)
      #expect(new.status == 200)
      #expect(try await scene.eventNames() == ["state", "notification"])
    }
  }

  @Test("a payload that is no JSON object is taken and thrown away")
  func badPayload() async throws {
    try await scene { scene in
      let reply = try await scene.client.push(
        to: scene.device.token, scene.app, jwt: scene.jwt, body: "[1,2]")
      #expect(reply.status == 200)
      let events = try await scene.harness.events(scene.device.deviceID)
      #expect(events.map { $0.data["why"]?.text } == ["bad-payload"])
    }
  }

  @Test("a notification carries what the push said")
  func notificationContent() async throws {
    try await scene { scene in
      let expiration = String(Harness.noon / 1000 + 600)
      let reply = try await scene.client.push(
        to: scene.device.token, scene.app, jwt: scene.jwt,
        [
          ("apns-priority", "5"), ("apns-expiration", expiration), ("apns-collapse-id", "c"),
          ("apns-id", "8f14e45f-ceea-467f-a0e6-1f2f3a4b5c6d"),
        ],
        body: "{\"aps\":{\n\"alert\":\"hé\"}}")
      #expect(reply.id == "8f14e45f-ceea-467f-a0e6-1f2f3a4b5c6d")
      let shown = try #require(
        try await scene.harness.notifications(scene.device.deviceID).first)
      #expect(shown["id"]?.text == reply.id)
      #expect(shown["seq"] == 1)
      #expect(shown["pns"]?.text == "apns")
      #expect(shown["deviceId"]?.text == scene.device.deviceID)
      #expect(shown["receivedAt"] == JSONValue(Harness.noon))
      #expect(shown["deliveredAt"] == JSONValue(Harness.noon))
      #expect(shown["from"]?.text == "live")
      #expect(shown.member("replaces") == .null)
      #expect(shown["headers"]?["apns-topic"]?.text == scene.app.bundleID)
      #expect(shown["headers"]?["apns-push-type"]?.text == "alert")
      #expect(shown["headers"]?["apns-priority"]?.text == "5")
      #expect(shown["headers"]?["apns-expiration"]?.text == expiration)
      #expect(shown["headers"]?["apns-collapse-id"]?.text == "c")
      #expect(shown["payload"]?["aps"]?["alert"]?.text == "hé")
      #expect(shown["payloadBase64"]?.text == "eyJhcHMiOnsKImFsZXJ0IjoiaMOpIn19")
      let request = try #require(
        try await scene.harness.control("GET", "/v1/requests")["requests"]?.items.first)
      #expect(request["seq"] == shown["requestSeq"])
    }
  }
}
