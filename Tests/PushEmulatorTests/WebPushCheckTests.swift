import Cryptography
import Testing
import Wire

@testable import PushEmulator

/// docs/protocol/emulator.md, section 7: every row of the table is reachable by one request.
@Suite struct WebPushCheckTests {
  @Test("a request that breaks a rule gets its row's status", arguments: Transport.allCases)
  func rows(transport: Transport) async throws {
    try await WebPushScene.run(over: transport) { scene in
      let other = try P256PrivateKey()
      let otherK = Base64URL.encode(try other.publicKey().point)
      let vapidBody = try scene.sealed("x")
      // A body whose sender key is the VAPID key.
      var sameKey = vapidBody
      let point = try #require(try scene.key?.publicKey().point)
      sameKey.replaceSubrange(21..<86, with: point)
      var offCurve = vapidBody
      offCurve[85] ^= 1
      var shortRecord = vapidBody
      shortRecord.replaceSubrange(16..<20, with: [0, 0, 0, 17])
      var wrongID = vapidBody
      wrongID[20] = 64
      func claims(_ changes: JSONValue) throws -> [String: String?] {
        ["authorization": try scene.authorization(changes)]
      }
      let rows: [(name: String, status: Int, reply: ServiceClient.Reply)] = [
        ("method", 405, try await scene.push(method: "PUT")),
        ("unknown id", 404, try await scene.push(path: "/wp/none")),
        ("another path", 404, try await scene.push(path: "/push")),
        ("no authorization", 401, try await scene.push("x", ["authorization": nil])),
        ("another scheme", 401, try await scene.push("x", ["authorization": "Bearer x"])),
        ("no k", 403, try await scene.push("x", ["authorization": "vapid t=a.b.c"])),
        ("no t", 403, try await scene.push("x", ["authorization": "vapid k=\(otherK)"])),
        (
          "k is no point", 403,
          try await scene.push(
            "x", ["authorization": try scene.authorization(k: Base64URL.encode([4, 5, 6]))])
        ),
        (
          "another key's signature", 403,
          try await scene.push("x", ["authorization": try scene.authorization(k: otherK)])
        ),
        (
          "another key", 403,
          try await scene.push("x", ["authorization": try scene.authorization(key: other)])
        ),
        ("aud", 403, try await scene.push("x", try claims(["aud": "https://example.com"]))),
        ("no aud", 403, try await scene.push("x", try claims(["aud": .null]))),
        (
          "expired", 403,
          try await scene.push("x", try claims(["exp": JSONValue(WebPushScene.now)]))
        ),
        (
          "too long a life", 403,
          try await scene.push("x", try claims(["exp": JSONValue(WebPushScene.now + 86_401)]))
        ),
        ("no exp", 403, try await scene.push("x", try claims(["exp": .null]))),
        ("sub is no contact", 403, try await scene.push("x", try claims(["sub": "ops@a.b"]))),
        ("no TTL", 400, try await scene.push("x", ["ttl": nil])),
        ("TTL negative", 400, try await scene.push("x", ["ttl": "-1"])),
        ("urgency", 400, try await scene.push("x", ["urgency": "urgent"])),
        ("two urgencies", 400, try await scene.push("x", ["urgency": "low, high"])),
        ("empty topic", 400, try await scene.push("x", ["topic": ""])),
        (
          "topic too long", 400,
          try await scene.push("x", ["topic": String(repeating: "A", count: 33)])
        ),
        ("topic", 400, try await scene.push("x", ["topic": "a.b"])),
        ("body", 413, try await scene.push(body: [UInt8](repeating: 4, count: 4097))),
        (
          "body over the listener's limit", 413,
          try await scene.push(body: [UInt8](repeating: 4, count: 66_000))
        ),
        ("no encoding", 400, try await scene.push("x", ["content-encoding": nil])),
        ("old encoding", 400, try await scene.push("x", ["content-encoding": "aesgcm"])),
        ("short header", 400, try await scene.push(body: [UInt8](repeating: 4, count: 85))),
        ("short record", 400, try await scene.push(body: shortRecord)),
        ("key id", 400, try await scene.push(body: wrongID)),
        ("point off the curve", 400, try await scene.push(body: offCurve)),
        ("VAPID key in the body", 400, try await scene.push(body: sameKey)),
      ]
      for row in rows {
        #expect(
          row.reply.status == row.status || (row.status == 413 && row.reply.failure != nil),
          "\(row.name)")
        if row.status == 401 { #expect(row.reply.headers["www-authenticate"] == "vapid") }
      }
      for state in ["unregistered", "expired"] {
        let gone = try await scene.harness.device(of: scene.app, ["state": .string(state)])
        let id = gone.at("handle", "endpoint").text?.lastSegment ?? ""
        #expect(try await scene.push(path: "/wp/" + id).status == 410)
      }
      #expect(try await scene.texts().isEmpty)
    }
  }

  @Test("a right message is taken and shown decrypted", arguments: Transport.allCases)
  func success(transport: Transport) async throws {
    try await WebPushScene.run(over: transport) { scene in
      let reply = try await scene.push(
        #"{"title":"Hi"}"#, ["urgency": "high", "topic": "news-1", "ttl": "99999999"])
      #expect(reply.status == 201)
      #expect(reply.headers["ttl"] == "2419200")
      let location = try #require(reply.headers["location"])
      let shown = try #require(try await scene.harness.delivered(scene.device).first)
      #expect("/m/" + (shown["id"]?.text ?? "") == location)
      #expect(shown.at("payload", "title").text == "Hi")
      #expect(shown["decrypted"] == true)
      #expect(shown.at("headers", "topic").text == "news-1")
      #expect(shown.at("headers", "urgency").text == "high")
      let journal = try await scene.harness.lastRequest()
      #expect(journal["pns"]?.text == "webpush")
      #expect(journal.at("auth", "claims", "sub").text == "mailto:ops@example.com")
    }
  }

  @Test("a message without a body is a push without data")
  func noPayload() async throws {
    try await WebPushScene.run { scene in
      #expect(try await scene.push("", ["content-encoding": nil], body: []).status == 201)
      let shown = try #require(try await scene.harness.delivered(scene.device).first)
      #expect(shown["payloadBase64"]?.text == "")
      #expect(shown.member("decrypted") == .null)
    }
  }

  @Test("a subscription without a key takes messages from anybody, if what they show is right")
  func unrestricted() async throws {
    try await WebPushScene.run(app: ["vapidPublicKey": .null]) { scene in
      #expect(try await scene.push().status == 201)
      #expect(
        try await scene.push("x", ["authorization": "vapid t=a.b.c, k=x"]).status == 403)
      let own = try scene.authorization(key: P256PrivateKey())
      #expect(try await scene.push("x", ["authorization": own]).status == 201)
      #expect(try await scene.texts().count == 2)
    }
  }

  @Test("a strict vendor wants a contact without blanks")
  func vendorStrict() async throws {
    try await WebPushScene.run(app: ["vendorStrict": true]) { scene in
      func status(_ sub: JSONValue) async throws -> Int {
        let field = try scene.authorization(["sub": sub])
        return try await scene.push("x", ["authorization": field]).status
      }
      let statuses = [
        try await status(.null), try await status("mailto: <a@b.c>"),
        try await status("mailto:a@localhost"), try await status("https://example.com/contact"),
      ]
      #expect(statuses == [403, 403, 403, 201])
    }
  }

  @Test("too many messages to one subscription are turned away for a while")
  func rate() async throws {
    try await WebPushScene.run(
      .object([]), over: .http2, .changed { $0.webPush.perSubscriptionRate = 2 }
    ) { scene in
      #expect(try await scene.push().status == 201)
      #expect(try await scene.push().status == 201)
      let reply = try await scene.push()
      #expect(reply.status == 429)
      #expect(reply.headers["retry-after"] == "10")
    }
  }

  @Test("a vendor's answers have its own form", arguments: WebPushFlavor.allCases)
  func flavors(flavor: WebPushFlavor) async throws {
    try await WebPushScene.run(app: ["flavor": .string(flavor.rawValue)]) { scene in
      let other = try scene.authorization(key: P256PrivateKey())
      let mismatch = try await scene.push("x", ["authorization": other])
      let missing = try await scene.push("x", ["authorization": nil])
      let topic = try await scene.push("x", ["topic": "."])
      try await scene.harness.control(
        "POST", "/v1/devices/\(scene.device["deviceId"]?.text ?? "")/unregister")
      let gone = try await scene.push()
      #expect(gone.status == 410)
      switch flavor {
      case .rfc:
        #expect(mismatch.status == 403)
        #expect(gone.headers["content-type"]?.hasPrefix("text/plain") == true)
      case .mozilla:
        #expect(mismatch.json["errno"] == 109)
        #expect(missing.json["code"] == 401)
        #expect(topic.json["errno"] == 113)
        #expect(gone.json["errno"] == 103)
        #expect(gone.json["error"]?.text == "Gone")
      case .google:
        #expect(mismatch.status == 403)
        #expect(String(decoding: mismatch.body, as: UTF8.self).contains("does not correspond"))
      case .apple:
        #expect(mismatch.status == 400)
        #expect(mismatch.json["reason"]?.text == "VapidPkHashMismatch")
        #expect(missing.status == 400)
        #expect(missing.json["reason"]?.text == "BadAuthorizationHeader")
        #expect(topic.json["reason"]?.text == "BadWebPushTopic")
        #expect(gone.json["reason"]?.text == "Unregistered")
      }
    }
  }

  // MARK: Vectors

  @Test("a VAPID header of the vectors gets its listed answer")
  func vapidVectors() async throws {
    let vectors = ServiceVectors.all.at("vapid")
    let cases = vectors["cases"]?.items ?? []
    #expect(cases.count == 13)
    let key = vectors.at("subscription_application_server_key_b64u")
    let options = EmulatorOptions.changed {
      $0.webPush.audiences = [vectors["endpoint_origin"]?.text ?? ""]
    }
    for (place, item) in cases.enumerated() {
      // The first has a key and an origin of its own.
      let header = VAPIDHeader(item["authorization"]?.text ?? "")
      let app: JSONValue = ["vapidPublicKey": place == 0 ? JSONValue(header?.key) : key]
      try await WebPushScene.run(app: app, .object([]), over: .http2, options) { scene in
        try await scene.harness.clock([
          "mode": "manual", "now": JSONValue((item["now"]?.whole ?? 0) * 1000),
        ])
        let reply = try await scene.push("x", ["authorization": item["authorization"]?.text])
        let got = reply.status == 201 ? "accept" : String(reply.status)
        #expect(got == item["expect"]?.text, "\(item["name"]?.text ?? "")")
      }
    }
  }

  @Test("a request of the vectors gets its listed answer", arguments: Transport.allCases)
  func requestVectors(transport: Transport) async throws {
    let all = ServiceVectors.all
    let cases = all.at("webpush_request_cases", "cases").items
    #expect(cases.count == 19)
    let valid = try #require(
      all.at("vapid", "cases").items.first { $0["name"]?.text == "valid_12h" })
    let first = try #require(all.at("rfc8291", "cases").items.first)
    let options = EmulatorOptions.changed {
      $0.manualClock = 1_700_000_000_000
      $0.webPush.audiences = [all.at("vapid", "endpoint_origin").text ?? ""]
    }
    let app: JSONValue = [
      "vapidPublicKey": all.at("vapid", "subscription_application_server_key_b64u")
    ]
    let device: JSONValue = [
      "handle": [
        "id": "known", "p256dh": first["ua_public_b64u"] ?? .null,
        "auth": first["auth_secret_b64u"] ?? .null,
      ]
    ]
    try await WebPushScene.run(app: app, device, over: transport, options) { scene in
      _ = try await scene.harness.device(
        of: scene.app, ["handle": ["id": "gone"], "state": "unregistered"])
      let authorization = valid["authorization"]?.text ?? ""
      for item in cases {
        var headers: [String: String?] = ["authorization": authorization]
        for change in item["headers"]?.members ?? [] {
          let value = change.value.text?.replacing(
            "{t}", with: VAPIDHeader(authorization)?.token ?? "")
          headers.updateValue(value, forKey: change.name.lowercased())
        }
        var body = Base64URL.decode(first["body_b64u"]?.text ?? "") ?? []
        if item.member("body") == .null { body = [] }
        if let count = item["body_bytes"]?.whole {
          body = [UInt8](repeating: 4, count: Int(count))
        }
        if item["body_case"] != nil {
          body = try scene.sealed(String(repeating: "x", count: 3993))
          #expect(body.count == 4096)
        }
        let reply = try await scene.push("", headers, body: body, path: item["path"]?.text)
        let name = item["name"]?.text ?? ""
        let expected = item["expect"] ?? .null
        #expect(JSONValue(reply.status) == expected["status"], "\(name)")
        for header in expected["headers_present"]?.items ?? [] {
          #expect(reply.headers[header.text?.lowercased() ?? ""] != nil, "\(name)")
        }
        if let most = expected["ttl_at_most"]?.whole {
          #expect((Int64(reply.headers["ttl"] ?? "") ?? .max) <= most, "\(name)")
        }
      }
    }
  }
}
