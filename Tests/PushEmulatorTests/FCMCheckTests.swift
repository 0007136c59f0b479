import Testing
import Wire

@testable import PushEmulator

/// docs/protocol/emulator.md, section 5.2: every row of the table is reachable by one request.
@Suite struct FCMCheckTests {
  /// A message that breaks one rule, as members of `message` beside the token.
  struct Wrong: Sendable, CustomTestStringConvertible {
    let name: String
    let members: JSONValue
    var code: String?
    var field: String?

    var testDescription: String { name }
  }

  static let wrong: [Wrong] = [
    // 5
    Wrong(name: "no target", members: ["token": .null], field: "message.token"),
    Wrong(name: "two targets", members: ["topic": "news"], field: "message"),
    Wrong(name: "token is no text", members: ["token": 1], field: "message.token"),
    // 6
    Wrong(name: "unknown field", members: ["foo": 1], field: "message"),
    Wrong(name: "unknown nested field", members: ["android": ["foo": 1]], field: "message.android"),
    Wrong(
      name: "number in data", members: ["data": ["a": 1]], field: "message.data[0].value"),
    Wrong(
      name: "object in data", members: ["data": ["b": "x", "a": ["x": "y"]]],
      field: "message.data[1].value"),
    Wrong(name: "notification is no object", members: ["notification": "x"]),
    Wrong(
      name: "title is no text", members: ["notification": ["title": 7]],
      field: "message.notification.title"),
    Wrong(name: "key from", members: ["data": ["from": "x"]], field: "message.data"),
    Wrong(name: "key message_type", members: ["data": ["message_type": "x"]]),
    Wrong(name: "key google.x", members: ["data": ["google.x": "x"]]),
    Wrong(name: "key gcm.x", members: ["android": ["data": ["gcm.x": "x"]]]),
    Wrong(
      name: "ttl is a number", members: ["android": ["ttl": 3600]], field: "message.android.ttl"),
    Wrong(name: "ttl without unit", members: ["android": ["ttl": "3600"]]),
    Wrong(name: "ttl negative", members: ["android": ["ttl": "-1s"]]),
    Wrong(name: "ttl too long", members: ["android": ["ttl": "2419200.001s"]]),
    Wrong(
      name: "priority unknown", members: ["android": ["priority": "URGENT"]],
      field: "message.android.priority"),
    // 7
    Wrong(
      name: "too big", members: ["data": ["a": .string(String(repeating: "x", count: 4096))]],
      code: "INVALID_ARGUMENT"),
    // 8
    Wrong(name: "token of no form", members: ["token": "abc"], code: "INVALID_ARGUMENT"),
    // 11
    Wrong(
      name: "another package", members: ["android": ["restricted_package_name": "com.other"]],
      code: "INVALID_ARGUMENT"),
  ]

  @Test("a message that breaks a rule is refused with what is wrong", arguments: Transport.allCases)
  func wrong(transport: Transport) async throws {
    try await FCMScene.run(over: transport) { scene in
      for item in Self.wrong {
        let reply = await scene.send(scene.message(item.members))
        #expect(reply.status == 400, "\(item.name)")
        #expect(reply.errorStatus == "INVALID_ARGUMENT", "\(item.name)")
        #expect(reply.fcmError == item.code, "\(item.name)")
        if let field = item.field { #expect(reply.fields == [field], "\(item.name)") }
        if item.code == nil { #expect(!reply.fields.isEmpty, "\(item.name)") }
      }
      let seen = try await scene.texts()
      #expect(seen.isEmpty)
    }
  }

  @Test("what FCM says of tokens and sizes can be read from its words")
  func words() async throws {
    try await FCMScene.run { scene in
      let token = await scene.send(scene.message(["token": "abc"]))
      #expect(
        token.json.at("error", "message").text
          == "The registration token is not a valid FCM registration token")
      let size = await scene.send(
        scene.message(["data": ["a": .string(String(repeating: "x", count: 5000))]]))
      #expect(size.json.at("error", "message").text == "Android message is too big")
    }
  }

  @Test("path, method, credential and body come first, in this order")
  func order() async throws {
    try await FCMScene.run { scene in
      let body = scene.message().jsonBytes
      // 1
      let path = await scene.send(raw: body, bearer: "", path: "/v1/projects/demo-project/messages")
      #expect(path.status == 404)
      #expect(path.errorStatus == "NOT_FOUND")
      #expect(path.fcmError == nil)
      #expect(await scene.send(raw: [], bearer: "", method: "GET").status == 404)
      // 2
      let none = await scene.send(raw: Array("no JSON".utf8), bearer: "")
      #expect(none.status == 401)
      #expect(none.errorStatus == "UNAUTHENTICATED")
      #expect(await scene.send(bearer: "ya29.unknown").status == 401)
      // 3
      let project = await scene.send(raw: Array("no JSON".utf8), project: "other")
      #expect(project.status == 403)
      #expect(project.errorStatus == "PERMISSION_DENIED")
      #expect(project.fcmError == nil)
      // 4
      for (raw, type) in [
        ("no JSON", "application/json"), ("[]", "application/json"), ("{}", "application/json"),
        (#"{"message":{},"other":1}"#, "application/json"),
        (#"{"message":"x"}"#, "application/json"),
        (#"{"message":{},"validate_only":1}"#, "application/json"),
        (String(decoding: body, as: UTF8.self), "text/plain"),
      ] {
        let reply = await scene.send(raw: Array(raw.utf8), contentType: type)
        #expect(reply.status == 400, "\(raw)")
        #expect(reply.errorStatus == "INVALID_ARGUMENT", "\(raw)")
        #expect(reply.fields.count == 1, "\(raw)")
      }
    }
  }

  @Test("the token's project, state and age decide")
  func registration() async throws {
    try await FCMScene.run { scene in
      let other = try await scene.harness.app([
        "pns": "fcm", "projectId": "other", "serviceAccounts": [],
      ])
      let foreign = try await scene.harness.device(of: other)
      let mismatch = await scene.send(
        scene.message(["token": foreign.at("handle", "token")]))
      #expect(mismatch.status == 403)
      #expect(mismatch.errorStatus == "PERMISSION_DENIED")
      #expect(mismatch.fcmError == "SENDER_ID_MISMATCH")
      for state in ["unregistered", "expired", "unknown"] {
        let dead = try await scene.harness.device(of: scene.app, ["state": .string(state)])
        let reply = await scene.send(scene.message(["token": dead.at("handle", "token")]))
        #expect(reply.status == 404, "\(state)")
        #expect(reply.errorStatus == "NOT_FOUND", "\(state)")
        #expect(reply.fcmError == "UNREGISTERED", "\(state)")
      }
      try await scene.harness.control(
        "POST", "/v1/devices/\(scene.device["deviceId"]?.text ?? "")/rotate")
      #expect(await scene.send().fcmError == "UNREGISTERED")
    }
  }

  @Test("a limit that is on answers 429 with a time to wait")
  func rates() async throws {
    try await FCMScene.run(over: .http2, .changed { $0.fcm.perDeviceRate = true }) { scene in
      for _ in 0..<240 { _ = await scene.send() }
      let reply = await scene.send()
      #expect(reply.status == 429)
      #expect(reply.errorStatus == "RESOURCE_EXHAUSTED")
      #expect(reply.fcmError == "QUOTA_EXCEEDED")
      #expect(reply.headers["retry-after"] == "60")
      try await scene.harness.advance(seconds: 1)
      #expect(await scene.send().status == 200)
    }
    let collapsible = EmulatorOptions.changed { $0.fcm.collapsibleRate = true }
    try await FCMScene.run(over: .http2, collapsible) { scene in
      let message = scene.message(["android": ["collapse_key": "k"]])
      for _ in 0..<20 { #expect(await scene.send(message).status == 200) }
      #expect(await scene.send(message).fcmError == "QUOTA_EXCEEDED")
      #expect(await scene.send().status == 200)
      let now = scene.message(["android": ["collapse_key": "k", "ttl": "0s"]])
      #expect(await scene.send(now).status == 200)
      try await scene.harness.advance(seconds: 180)
      #expect(await scene.send(message).status == 200)
      #expect(await scene.send(message).status == 429)
    }
    try await FCMScene.run(over: .http2, .changed { $0.fcm.projectRate = 60 }) { scene in
      for _ in 0..<60 { #expect(await scene.send().status == 200) }
      #expect(await scene.send().status == 429)
    }
  }

  @Test("a right message is named and delivered as it was sent", arguments: Transport.allCases)
  func success(transport: Transport) async throws {
    try await FCMScene.run(over: transport) { scene in
      let reply = await scene.send(
        scene.message([
          "notification": ["title": "Hi"], "data": ["a": "1"],
          "android": ["collapseKey": "k", "ttl": "3.5s", "priority": "high"],
        ]))
      #expect(reply.status == 200)
      let prefix = "projects/demo-project/messages/"
      let name = try #require(reply.json["name"]?.text)
      #expect(name.hasPrefix(prefix + "0:\(Harness.noon / 1000)"))
      let shown = try #require(try await scene.harness.delivered(scene.device).first)
      #expect(shown["id"]?.text == String(name.dropFirst(prefix.count)))
      #expect(shown["pns"]?.text == "fcm")
      #expect(shown.at("payload", "notification", "title").text == "Hi")
      #expect(shown.at("payload", "token") == .null)
      #expect(shown.at("headers", "collapse_key").text == "k")
      #expect(shown.at("headers", "priority").text == "HIGH")
      let journal = try await scene.harness.lastRequest()
      #expect(journal["pns"]?.text == "fcm")
      #expect(journal["storeAction"]?.text == "delivered")
      #expect(journal.at("auth", "keyId").text?.hasPrefix("pusher@") == true)
      #expect(journal.at("headers", "authorization") == .null)
      let found = try await scene.harness.control("GET", "/v1/requests?handle=\(scene.token)")
      #expect(found["requests"]?.items.count == 1)
    }
  }

  @Test("validate_only checks everything and delivers nothing")
  func validateOnly() async throws {
    try await FCMScene.run { scene in
      let reply = await scene.send(scene.message().setting(["validate_only": true]))
      #expect(reply.json["name"]?.text == "projects/demo-project/messages/fake_message_id")
      #expect(
        await scene.send(scene.message(["token": "abc"]).setting(["validateOnly": true])).status
          == 400)
      let seen = try await scene.texts()
      #expect(seen.isEmpty)
    }
  }

  @Test("a topic and a condition without subscribers are taken, and nobody gets them")
  func topics() async throws {
    try await FCMScene.run { scene in
      for target: JSONValue in [["topic": "news"], ["condition": "'a' in topics"]] {
        let reply = await scene.send(["message": target.setting(["data": ["a": "1"]])])
        #expect(reply.status == 200)
      }
      let seen = try await scene.texts()
      #expect(seen.isEmpty)
    }
  }

  @Test("a body over the listener's limit is answered 413", arguments: Transport.allCases)
  func oversized(transport: Transport) async throws {
    try await FCMScene.run(over: transport) { scene in
      let reply = await scene.send(raw: [UInt8](repeating: 0x20, count: 300_000))
      #expect(reply.status == 413 || reply.failure != nil)
      let seen = try await scene.harness.lastRequest()["status"]
      #expect(seen == 413)
    }
  }

  @Test("a case of the vectors gets its listed answer", arguments: Transport.allCases)
  func vectors(transport: Transport) async throws {
    let vectors = ServiceVectors.all.at("fcm_request_cases")
    let cases = vectors["cases"]?.items ?? []
    #expect(cases.count == 18)
    let device: JSONValue = ["handle": ["token": vectors["known_token"] ?? .null]]
    try await FCMScene.run(device, over: transport) { scene in
      for item in cases {
        let name = item["name"]?.text ?? ""
        var body = item["body"] ?? .null
        if name == "data_over_4096" {
          body = scene.message(["data": ["a": .string(String(repeating: "x", count: 5000))]])
        }
        let before = try await scene.harness.delivered(scene.device).count
        let reply = await scene.send(
          raw: body.jsonBytes, bearer: name == "no_auth" ? "" : nil, path: item["path"]?.text)
        let expected = item["expect"] ?? .null
        #expect(JSONValue(reply.status) == expected["status"], "\(name)")
        #expect(reply.errorStatus == expected["error_status"]?.text, "\(name)")
        if let code = expected["fcm_error"]?.text { #expect(reply.fcmError == code, "\(name)") }
        if let field = expected["field"]?.text { #expect(reply.fields == [field], "\(name)") }
        if let prefix = expected["name_prefix"]?.text {
          #expect(reply.json["name"]?.text?.hasPrefix(prefix) == true, "\(name)")
        }
        let after = try await scene.harness.delivered(scene.device).count
        let wanted = expected["delivered"] == 0 || reply.status != 200 ? 0 : 1
        #expect(after - before == wanted, "\(name)")
      }
    }
  }
}
