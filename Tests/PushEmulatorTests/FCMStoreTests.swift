import Testing
import Wire

@testable import PushEmulator

/// docs/protocol/emulator.md, section 3, the column of FCM, and section 9, checks 9 and 11.
@Suite(.timeLimit(.minutes(5))) struct FCMStoreTests {
  @Test("a hundred messages wait for an offline device; one more and all are gone")
  func overflow() async throws {
    try await FCMScene.run(["online": false]) { scene in
      for number in 1...100 { _ = await scene.send(scene.data("\(number)")) }
      #expect(try await scene.harness.eventNames(scene.device).isEmpty)
      #expect(await scene.send(scene.data("101")).status == 200)
      let names = try await scene.harness.eventNames(scene.device)
      #expect(names.filter { $0 == "discarded" }.count == 101)
      #expect(names.last == "deleted-messages")
      try await scene.harness.patch(scene.device, ["online": true])
      #expect(try await scene.texts().isEmpty)
    }
  }

  @Test("all that fit come in their order when the device comes online")
  func hundred() async throws {
    try await FCMScene.run(["online": false]) { scene in
      for number in 1...100 { _ = await scene.send(scene.data("\(number)")) }
      #expect(try await scene.harness.lastRequest()["storeAction"]?.text == "stored")
      try await scene.harness.patch(scene.device, ["online": true])
      #expect(try await scene.texts() == (1...100).map(String.init))
    }
  }

  @Test("the newest message of each of four collapse keys is kept")
  func collapseKeys() async throws {
    try await FCMScene.run(["online": false]) { scene in
      func send(_ text: String, _ key: String) async {
        _ = await scene.send(scene.data(text, ["android": ["collapse_key": .string(key)]]))
      }
      for key in ["a", "b", "c", "d"] { await send(key + "1", key) }
      await send("b2", "b")
      _ = await scene.send(scene.data("plain"))
      #expect(try await scene.harness.eventNames(scene.device) == ["replaced"])
      await send("e1", "e")
      let events = try await scene.harness.events(scene.device["deviceId"]?.text ?? "")
      #expect(events.last?.data["why"]?.text == "store-full")
      try await scene.harness.patch(scene.device, ["online": true])
      #expect(try await scene.texts() == ["b2", "c1", "d1", "plain", "e1"])
    }
  }

  @Test("on the device a newer message takes the place of one with the same key")
  func collapseOnDevice() async throws {
    try await FCMScene.run { scene in
      for text in ["1", "2"] {
        _ = await scene.send(scene.data(text, ["android": ["collapse_key": "k"]]))
      }
      let shown = try await scene.harness.delivered(scene.device)
      #expect(shown.map { $0["replaces"]?.text } == [nil, shown[0]["id"]?.text])
    }
  }

  @Test("a ttl of 0 is now or never, another ends by the clock, and 28 days is the rest")
  func timeToLive() async throws {
    try await FCMScene.run(["online": false]) { scene in
      _ = await scene.send(scene.data("never", ["android": ["ttl": "0s"]]))
      _ = await scene.send(scene.data("short", ["android": ["ttl": "60s"]]))
      _ = await scene.send(scene.data("long"))
      let discarded = try await scene.harness.events(scene.device["deviceId"]?.text ?? "")
      #expect(discarded.map { $0.data["why"]?.text } == ["offline-no-store"])
      try await scene.harness.advance(seconds: 60)
      #expect(try await scene.harness.eventNames(scene.device) == ["discarded", "expired"])
      try await scene.harness.advance(seconds: 28 * 86_400 - 61)
      #expect(try await scene.harness.eventNames(scene.device).count == 2)
      try await scene.harness.advance(seconds: 1)
      #expect(try await scene.harness.eventNames(scene.device).last == "expired")
    }
  }

  @Test(
    "normal messages wait until a device saves no more power; urgent ones do not take them along")
  func powerSaving() async throws {
    try await FCMScene.run(["online": true]) { scene in
      try await scene.harness.patch(scene.device, ["powerSaving": true])
      _ = await scene.send(scene.data("normal"))
      #expect(try await scene.harness.lastRequest()["storeAction"]?.text == "held")
      _ = await scene.send(scene.data("high", ["android": ["priority": "HIGH"]]))
      try await scene.harness.advance(seconds: 3600)
      #expect(try await scene.texts() == ["high"])
      try await scene.harness.patch(scene.device, ["powerSaving": false])
      #expect(try await scene.texts() == ["high", "normal"])
    }
  }

  @Test("a notification is urgent, data is not, unless it says so")
  func priorities() async throws {
    try await FCMScene.run { scene in
      _ = await scene.send(scene.message(["notification": ["title": "x"]]))
      _ = await scene.send(scene.message(["android": ["notification": ["title": "x"]]]))
      _ = await scene.send(scene.message())
      let priorities = try await scene.harness.delivered(scene.device)
        .map { $0.at("headers", "priority").text }
      #expect(priorities == ["HIGH", "HIGH", "NORMAL"])
    }
  }

  @Test("a user who turned notifications off gets none, and the hub a 200")
  func disabled() async throws {
    try await FCMScene.run { scene in
      try await scene.harness.patch(scene.device, ["disabled": true])
      #expect(await scene.send().status == 200)
      let events = try await scene.harness.events(scene.device["deviceId"]?.text ?? "")
      #expect(events.map { $0.data["why"]?.text } == ["disabled"])
    }
  }

  @Test("after a silent uninstall messages vanish, then the token is dead")
  func silentUninstall() async throws {
    try await FCMScene.run { scene in
      try await scene.harness.control(
        "POST", "/v1/devices/\(scene.device["deviceId"]?.text ?? "")/unregister",
        ["silentFor": 600])
      #expect(await scene.send().status == 200)
      try await scene.harness.advance(seconds: 600)
      #expect(await scene.send().fcmError == "UNREGISTERED")
      #expect(try await scene.texts().isEmpty)
    }
  }
}
