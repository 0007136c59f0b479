import Cryptography
import Testing
import Wire

@testable import PushEmulator

/// docs/protocol/emulator.md, section 3, the column of Web Push; section 9, check 10; receipts and
/// withdrawal.
@Suite(.timeLimit(.minutes(5))) struct WebPushStoreTests {
  @Test("the body of RFC 8291 is delivered as its plaintext")
  func rfc8291() async throws {
    for item in ServiceVectors.all.at("rfc8291", "cases").items {
      guard let plaintext = item["plaintext_utf8"]?.text, let body = item["body_b64u"]?.text else {
        continue
      }
      let handle: JSONValue = [
        "privateKey": item["ua_private_b64u"] ?? .null, "auth": item["auth_secret_b64u"] ?? .null,
      ]
      try await WebPushScene.run(["handle": handle]) { scene in
        #expect(scene.keys.p256dh == item["ua_public_b64u"]?.text)
        let reply = try await scene.push(body: Base64URL.decode(body))
        #expect(reply.status == 201)
        #expect(try await scene.texts() == [plaintext])
        #expect(try await scene.harness.delivered(scene.device).first?["decrypted"] == true)
      }
    }
  }

  @Test("what cannot be decrypted is the sender's secret: 201, and the device says why")
  func undecryptable() async throws {
    let negative = ServiceVectors.all.at("rfc8291", "negative").items
    #expect(negative.count == 8)
    // Those whose header is wrong are turned away before.
    let turnedAway = ["as_public_not_on_curve", "rs_below_18", "idlen_zero", "truncated_header"]
    for item in negative {
      let handle: JSONValue = [
        "privateKey": item["ua_private_b64u"] ?? .null, "auth": item["auth_secret_b64u"] ?? .null,
      ]
      let name = item["name"]?.text ?? ""
      try await WebPushScene.run(["handle": handle]) { scene in
        let body = try #require(Base64URL.decode(item["body_b64u"]?.text ?? ""))
        let reply = try await scene.push(body: body)
        if turnedAway.contains(name) {
          #expect(reply.status == 400, "\(name)")
          return
        }
        #expect(reply.status == 201, "\(name)")
        let shown = try #require(try await scene.harness.delivered(scene.device).first)
        #expect(shown["decrypted"] == false, "\(name)")
        #expect(shown["reason"]?.text?.isEmpty == false, "\(name)")
        #expect(shown["payloadBase64"]?.text == Base64.encode(body), "\(name)")
      }
    }
  }

  @Test("without the private key payloads stay as they came")
  func encrypted() async throws {
    let keys = try SubscriptionKeys()
    let handle: JSONValue = ["p256dh": .string(keys.p256dh), "auth": .string(keys.auth)]
    try await WebPushScene.run(["handle": handle]) { scene in
      let body = try scene.sealed("secret")
      _ = try await scene.push(body: body)
      let shown = try #require(try await scene.harness.delivered(scene.device).first)
      #expect(shown.member("decrypted") == .null)
      #expect(shown["payloadBase64"]?.text == Base64.encode(body))
    }
  }

  @Test("a topic replaces what waits, and nothing that was shown")
  func topics() async throws {
    try await WebPushScene.run(["online": false]) { scene in
      for (text, topic) in [("a1", "a"), ("b1", "b"), ("a2", "a")] {
        _ = try await scene.push(text, ["topic": topic])
      }
      #expect(try await scene.harness.eventNames(scene.device) == ["replaced"])
      try await scene.harness.patch(scene.device, ["online": true])
      #expect(try await scene.texts() == ["a2", "b1"])
      _ = try await scene.push("a3", ["topic": "a"])
      #expect(try await scene.harness.delivered(scene.device).last?.member("replaces") == .null)
    }
  }

  @Test("a hundred messages wait; the oldest makes room")
  func limit() async throws {
    try await WebPushScene.run(["online": false]) { scene in
      for number in 1...101 { _ = try await scene.push("\(number)") }
      let events = try await scene.harness.events(scene.device["deviceId"]?.text ?? "")
      #expect(events.map { $0.data["why"]?.text } == ["store-full"])
      try await scene.harness.patch(scene.device, ["online": true])
      #expect(try await scene.texts() == (2...101).map(String.init))
    }
  }

  @Test("a TTL of 0 is now or never, and a message past its time is gone")
  func timeToLive() async throws {
    try await WebPushScene.run(["online": false]) { scene in
      #expect(try await scene.push("never", ["ttl": "0"]).status == 201)
      _ = try await scene.push("a minute")
      try await scene.harness.advance(seconds: 60)
      #expect(try await scene.harness.eventNames(scene.device) == ["discarded", "expired"])
      try await scene.harness.patch(scene.device, ["online": true])
      _ = try await scene.push("now", ["ttl": "0"])
      #expect(try await scene.texts() == ["now"])
    }
  }

  @Test("a browser that wants urgent messages only gets the others when it wants them")
  func urgency() async throws {
    try await WebPushScene.run(["minUrgency": "high"]) { scene in
      for urgency in ["very-low", "low", "normal", "high"] {
        _ = try await scene.push(urgency, ["urgency": urgency])
      }
      #expect(try await scene.texts() == ["high"])
      try await scene.harness.patch(scene.device, ["minUrgency": "low"])
      #expect(try await scene.texts() == ["high", "low", "normal"])
      try await scene.harness.advance(seconds: 60)
      #expect(try await scene.harness.eventNames(scene.device).last == "expired")
    }
  }

  @Test("the sender can take a waiting message back, once")
  func withdrawal() async throws {
    try await WebPushScene.run(["online": false]) { scene in
      let reply = try await scene.push("unwanted")
      _ = try await scene.push("wanted")
      let location = try #require(reply.headers["location"])
      #expect(await scene.client.send("GET", location).status == 405)
      #expect(await scene.client.send("DELETE", location).status == 204)
      #expect(await scene.client.send("DELETE", location).status == 404)
      for path in ["/m/none", "/m/-1-x", "/m/zzzzzzzzzzzzzzzzzzzz-x"] {
        #expect(await scene.client.send("DELETE", path).status == 404)
      }
      try await scene.harness.patch(scene.device, ["online": true])
      #expect(try await scene.texts() == ["wanted"])
    }
  }

  @Test("a receipt is promised to who asks, where there are any")
  func receipts() async throws {
    try await WebPushScene.run(app: ["receipts": true]) { scene in
      let reply = try await scene.push("x", ["prefer": "wait=5, respond-async"])
      #expect(reply.status == 202)
      #expect(reply.headers["link"]?.contains("urn:ietf:params:push:receipt") == true)
      #expect(try await scene.push().status == 201)
    }
    try await WebPushScene.run { scene in
      let seen = try await scene.push("x", ["prefer": "respond-async"])
      #expect(seen.status == 201)
    }
  }

  @Test("a user who turned notifications off has no subscription any more")
  func disabled() async throws {
    try await WebPushScene.run { scene in
      try await scene.harness.patch(scene.device, ["disabled": true])
      #expect(try await scene.push().status == 410)
    }
  }
}
