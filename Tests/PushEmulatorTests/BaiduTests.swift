import Cryptography
import HTTP2
import HTTPClient
import Testing
import Wire

@testable import PushEmulator

@Suite("Baidu", .timeLimit(.minutes(5)))
struct BaiduTests {
  private struct Stage: Sendable {
    static let path3 = "/rest/3.0/push/single_device"
    static let path2 = "/rest/2.0/channel/channel"
    let scene: PlainScene

    static func run(
      device: JSONValue = .object([]), _ options: EmulatorOptions = .changed(),
      _ body: (Stage) async throws -> Void
    ) async throws {
      try await PlainScene.run(
        .baidu, app: ["pns": "baidu", "apiKey": "key", "secretKey": "secret"], device: device,
        options
      ) { try await body(Stage(scene: $0)) }
    }

    var channel: String { scene.device["handle"]?["channelId"]?.text ?? "" }
    var user: String { scene.device["handle"]?["userId"]?.text ?? "" }

    /// Sends a signed request of either API.
    func push(
      two: Bool = false, _ changes: [String: String?] = [:], secret: String = "secret",
      agent: String = "BCCS_SDK/3.0 (Linux) Swift (Baidu Push Server SDK V3.0.0)",
      method: String = "POST"
    ) async throws -> HTTPReply {
      var fields = [
        "apikey": "key", "timestamp": String(Harness.noon / 1000), "channel_id": channel,
        "device_type": "3",
      ]
      let message = #"{"title":"t","description":"d ~*"}"#
      if two {
        fields.merge([
          "method": "push_msg", "user_id": user, "push_type": "1", "message_type": "1",
          "messages": message, "msg_keys": "m",
        ]) { $1 }
      } else {
        fields.merge(["msg_type": "1", "msg": message]) { $1 }
      }
      for (name, value) in changes { fields[name] = value }
      let path = two ? Self.path2 : Self.path3
      let base =
        "POST" + scene.origin + path
        + fields.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined() + secret
      // The form's own encoding differs in `*` and `~` only.
      let encoded = String(decoding: PlainScene.form([("", base)]).dropFirst(), as: UTF8.self)
        .replacing("*", with: "%2A")
      fields["sign"] = fields["sign"] ?? Hex.encode(Digest.md5(Array(encoded.utf8)))
      return try await scene.send(
        method, path, [PlainScene.form, ("User-Agent", agent)],
        body: PlainScene.form(fields.map { ($0.key, $0.value) }))
    }
  }

  @Test("both APIs accept a signed message and show it", arguments: [true, false])
  func success(two: Bool) async throws {
    try await Stage.run { stage in
      let reply = try await stage.push(two: two)
      #expect(reply.status == 200)
      let parameters = reply.json["response_params"]
      #expect((parameters?["msg_id"] != nil) == !two)
      #expect((parameters?["success_amount"]?.whole == 1) == two)
      let answer1 = try await stage.scene.delivered()
      #expect(answer1[0]["payload"]?["title"] == "t")
    }
  }

  @Test("the published signatures are computed", arguments: PlainVectors.cases("baidu_sign"))
  func signatures(item: PlainVectors.Case) throws {
    let url = try #require(item.json["url"]?.text)
    let scheme = String(url.prefix { $0 != ":" })
    let rest = url.dropFirst(scheme.count + 3)
    let slash = try #require(rest.firstIndex(of: "/"))
    let fields = (item.json["params"]?.members ?? []).map { ($0.name, $0.value.text ?? "") }
    let request = BaiduRequest(
      HTTP2ServerRequest(
        stream: 1,
        pseudoFields: HTTP2FieldList([
          (":method", item.json["method"]?.text ?? ""), (":scheme", scheme),
          (":authority", String(rest[..<slash])), (":path", String(rest[slash...])),
        ]), fields: HTTP2FieldList([("content-type", "application/x-www-form-urlencoded")]),
        body: PlainScene.form(fields + [("sign", "x")])))
    #expect(
      request.signature(secret: item.json["secret"]?.text ?? "") == item.json["sign"]?.text)
  }

  static let faults: [(String, [String: String?], Int64)] = [
    ("no key", ["apikey": nil as String?], 30602), ("unknown key", ["apikey": "other"], 30603),
    ("bad signature", ["sign": "0"], 30603), ("no time", ["timestamp": nil as String?], 30602),
    ("time as words", ["timestamp": "now"], 30602),
    ("old", ["timestamp": String(Harness.noon / 1000 - 601)], 30606),
    ("early", ["timestamp": String(Harness.noon / 1000 + 601)], 30606),
    ("expired", ["expires": String(Harness.noon / 1000 - 1)], 30606),
    ("no message", ["msg": nil as String?], 30602), ("type", ["msg_type": "2"], 30602),
    ("no description", ["msg": "{}"], 30602), ("no JSON", ["msg": "x"], 30602),
    ("device type", ["device_type": "5"], 30602), ("lifetime", ["msg_expires": "604801"], 30602),
    ("status", ["deploy_status": "3"], 30602),
    ("size", ["msg_type": "0", "msg": String(repeating: "x", count: 4097)], 30602),
    ("unknown channel", ["channel_id": "1"], 30608),
  ]

  @Test("every fault of a request has its code", arguments: faults)
  func codes(name: String, changes: [String: String?], code: Int64) async throws {
    try await Stage.run { stage in
      let reply = try await stage.push(changes)
      #expect(reply.status >= 400)
      #expect(reply.json["error_code"]?.whole == code)
      #expect(reply.json["request_id"] != nil)
    }
  }

  @Test("ten minutes are in time, and expires may stretch them")
  func timely() async throws {
    try await Stage.run { stage in
      let edge = String(Harness.noon / 1000 - 600)
      let atEdge = try await stage.push(["timestamp": edge])
      #expect(atEdge.status == 200)
      let stretched = try await stage.push([
        "timestamp": "1", "expires": String(Harness.noon / 1000),
      ])
      #expect(stretched.status == 200)
    }
  }

  @Test("method, path, agent and the older API's own fields are checked")
  func forms() async throws {
    try await Stage.run { stage in
      let answer2 = try await stage.push(method: "PUT")
      #expect(answer2.json["error_code"]?.whole == 30601)
      let answer3 = try await stage.scene.post(form: [], to: "/rest/3.0/push/all")
      #expect(
        answer3.json["error_code"]?.whole
          == 30601)
      let answer4 = try await stage.push(agent: "curl/8")
      #expect(answer4.json["error_code"]?.whole == 30602)
      let answer5 = try await stage.push(two: true, agent: "curl/8")
      #expect(answer5.status == 200)
      for changes in [
        ["method": "query"], ["push_type": "3"], ["user_id": ""], ["msg_keys": ""],
      ] {
        let reply = try await stage.push(two: true, changes.mapValues { $0 })
        #expect(reply.json["error_code"]?.whole == 30602)
      }
      let wrongUser = try await stage.push(two: true, ["user_id": "1"])
      #expect(wrongUser.json["error_code"]?.whole == 30608)
    }
  }

  @Test("a channel that has expired, or is gone")
  func channels() async throws {
    try await Stage.run { stage in
      try await stage.scene.unregister(["mode": "expired"])
      let answer6 = try await stage.push()
      #expect(answer6.json["error_code"]?.whole == 30607)
      try await stage.scene.unregister(["mode": "unregistered"])
      let answer7 = try await stage.push()
      #expect(answer7.json["error_code"]?.whole == 30608)
    }
  }

  @Test("an app that sends too much")
  func rate() async throws {
    try await Stage.run(.changed { $0.others.rates["baidu"] = 1 }) { stage in
      let answer8 = try await stage.push()
      #expect(answer8.status == 200)
      let reply = try await stage.push()
      #expect(reply.json["error_code"]?.whole == 30699)
    }
  }

  @Test("what waits is replaced by its key")
  func store() async throws {
    try await Stage.run(device: ["online": false]) { stage in
      for (text, key) in [("1", "a"), ("2", "a"), ("3", "b")] {
        _ = try await stage.push(
          two: true, ["message_type": "0", "messages": text, "msg_keys": key])
      }
      _ = try await stage.push(["msg": "4", "msg_type": "0", "msg_expires": "60"])
      try await stage.scene.harness.advance(seconds: 61)
      try await stage.scene.change(["online": true])
      let texts = try await stage.scene.delivered().map { $0["payloadBase64"]?.text }
      #expect(texts == [Base64.encode(Array("2".utf8)), Base64.encode(Array("3".utf8))])
    }
  }

  @Test("a fault may have any code of the table", arguments: [30600, 30604, 30612, 30618])
  func faultCodes(code: Int64) async throws {
    try await Stage.run { stage in
      let action: JSONValue = ["type": "reply", "status": 400, "reason": .string(String(code))]
      try await stage.scene.harness.control(
        "POST", "/v1/faults", ["pns": "baidu", "stage": "before", "action": action])
      let answer9 = try await stage.push()
      #expect(answer9.json["error_code"]?.whole == code)
    }
  }
}
