import HTTPClient
import Testing
import Wire

@testable import PushEmulator

@Suite("Xiaomi", .timeLimit(.minutes(5)))
struct XiaomiTests {
  private struct Stage: Sendable {
    let scene: PlainScene

    static func run(
      device: JSONValue = .object([]), _ options: EmulatorOptions = .changed(),
      _ body: (Stage) async throws -> Void
    ) async throws {
      try await PlainScene.run(
        .xiaomi, app: ["pns": "xiaomi", "packageName": "com.example", "appSecret": "secret=="],
        device: device, options
      ) { try await body(Stage(scene: $0)) }
    }

    var id: String { scene.device["handle"]?["regId"]?.text ?? "" }

    func push(
      _ changes: [String: String?] = [:], secret: String? = "key=secret==",
      path: String = "/v3/message/regid", method: String = "POST"
    ) async throws -> HTTPReply {
      var fields = [
        "registration_id": id, "payload": "a=1&b", "title": "t", "description": "d",
        "pass_through": "0", "restricted_package_name": "com.example",
      ]
      for (name, value) in changes { fields[name] = value }
      var headers = [PlainScene.form]
      if let secret { headers.append(("Authorization", secret)) }
      return try await scene.send(
        method, path, headers, body: PlainScene.form(fields.map { ($0.key, $0.value) }))
    }
  }

  @Test("both versions accept a message", arguments: ["/v2/message/regid", "/v3/message/regid"])
  func success(path: String) async throws {
    try await Stage.run { stage in
      let reply = try await stage.push(path: path)
      #expect(reply.status == 200)
      #expect(reply.json["result"] == "ok" && reply.json["code"]?.whole == 0)
      #expect(reply.json["data"]?["id"]?.text?.isEmpty == false)
      #expect(reply.json["data"]?["bad_regids"] == nil)
      let shown = try await stage.scene.delivered()[0]
      #expect(shown["headers"]?["title"] == "t")
      #expect(shown["payloadBase64"]?.text == "YT0xJmI=")
    }
  }

  static let faults: [(String, [String: String?], Int64)] = [
    ("no id", ["registration_id": nil as String?], 10017),
    ("no title", ["title": nil as String?], 10017),
    ("no description", ["description": nil as String?], 10017),
    ("long title", ["title": String(repeating: "t", count: 50)], 10016),
    ("long description", ["description": String(repeating: "d", count: 128)], 10016),
    ("long payload", ["payload": String(repeating: "p", count: 4097)], 65009),
    ("pass through", ["pass_through": "2"], 10016), ("notify type", ["notify_type": "8"], 10016),
    ("lifetime", ["time_to_live": "0"], 10016),
    ("late", ["time_to_send": String(Harness.noon + 7 * 86_400_000 + 1)], 10016),
    ("package", ["restricted_package_name": "com.other"], 22022),
    ("unknown id", ["registration_id": "unknown"], 10029),
  ]

  @Test("every fault of a message has its code, with status 200", arguments: faults)
  func codes(name: String, changes: [String: String?], code: Int64) async throws {
    try await Stage.run { stage in
      let reply = try await stage.push(changes)
      #expect(reply.status == 200)
      #expect(reply.json["result"] == "error")
      #expect(reply.json["code"]?.whole == code)
    }
  }

  @Test("secret, path and method are checked")
  func forms() async throws {
    try await Stage.run { stage in
      let answer1 = try await stage.push(secret: nil)
      #expect(answer1.json["code"]?.whole == 21301)
      let answer2 = try await stage.push(secret: "key=other")
      #expect(answer2.json["code"]?.whole == 21301)
      let answer3 = try await stage.push(path: "/v3/message/all")
      #expect(answer3.status == 404)
      let answer4 = try await stage.push(method: "GET")
      #expect(answer4.status == 405)
      let json = try await stage.scene.send(
        "POST", "/v3/message/regid",
        [("Authorization", "key=secret=="), ("Content-Type", "application/json")],
        body: Array("{}".utf8))
      #expect(json.json["code"]?.whole == 10008)
    }
  }

  @Test("a dead id stands in bad_regids, alone or in a list; an expired one has a code")
  func badIDs() async throws {
    try await Stage.run { stage in
      let other = try await stage.scene.another()
      let id = try #require(other["handle"]?["regId"]?.text)
      let list = try await stage.push(["registration_id": "\(stage.id),\(id),nobody"])
      #expect(list.json["code"]?.whole == 0)
      #expect(list.json["data"]?["bad_regids"] == "nobody")
      let answer5 = try await stage.scene.delivered(other)
      #expect(answer5.count == 1)
      try await stage.scene.unregister(["mode": "unregistered"])
      let dead = try await stage.push()
      #expect(dead.json["code"]?.whole == 0)
      #expect(dead.json["data"]?["bad_regids"]?.text == stage.id)
      try await stage.scene.unregister(["mode": "expired"], other)
      let answer6 = try await stage.push(["registration_id": id])
      #expect(answer6.json["code"]?.whole == 66108)
    }
  }

  @Test("a thousand ids are taken, and not one more")
  func manyIDs() async throws {
    try await Stage.run { stage in
      let ids = [String](repeating: stage.id, count: 1)
      let fill = (0..<999).map { "x\($0)" }
      let full = (ids + fill).joined(separator: ",")
      let answer7 = try await stage.push(["registration_id": full])
      #expect(answer7.json["code"]?.whole == 0)
      let over = full + ",y"
      let answer8 = try await stage.push(["registration_id": over])
      #expect(answer8.json["code"]?.whole == 10016)
    }
  }

  @Test("calls that come too fast, and a quota that ends at midnight in China")
  func limits() async throws {
    try await Stage.run(.changed { $0.others.rates["xiaomi"] = 1 }) { stage in
      let answer9 = try await stage.push()
      #expect(answer9.json["code"]?.whole == 0)
      let answer10 = try await stage.push()
      #expect(answer10.json["code"]?.whole == 10027)
    }
    try await Stage.run(.changed { $0.others.dailyQuotas["xiaomi"] = 2 }) { stage in
      for code in [0, 0, 10034] as [Int64] {
        let answer11 = try await stage.push()
        #expect(answer11.json["code"]?.whole == code)
      }
      // 06:14:20 in China: 17 h 45 min 40 s to midnight.
      try await stage.scene.harness.advance(seconds: 63_939)
      let answer12 = try await stage.push()
      #expect(answer12.json["code"]?.whole == 10034)
      try await stage.scene.harness.advance(seconds: 1)
      let answer13 = try await stage.push()
      #expect(answer13.json["code"]?.whole == 0)
    }
  }

  @Test("what waits is replaced by its key and ends with its time")
  func store() async throws {
    try await Stage.run(device: ["online": false]) { stage in
      for (text, key) in [("1", "7"), ("2", "7"), ("3", "8")] {
        _ = try await stage.push(["payload": text, "notify_id": key])
      }
      _ = try await stage.push(["payload": "4", "extra.jobkey": "j", "time_to_live": "60000"])
      try await stage.scene.harness.advance(seconds: 60)
      try await stage.scene.change(["online": true])
      let answer14 = try await stage.scene.delivered()
      #expect(answer14.map { $0["payloadBase64"]?.text } == ["Mg==", "Mw=="])
    }
  }

  @Test("time_to_send keeps a message back, online or not, and its life begins then")
  func later() async throws {
    try await Stage.run { stage in
      func shown() async throws -> [String?] {
        try await stage.scene.delivered().map { $0["payloadBase64"]?.text }
      }
      let now = Harness.noon
      for (text, seconds) in [("2", Int64(120)), ("1", 60), ("0", 0)] {
        let reply = try await stage.push([
          "payload": text, "time_to_send": "\(now + seconds * 1000)", "time_to_live": "30000",
          "notify_id": "7",
        ])
        #expect(reply.json["code"]?.whole == 0)
      }
      #expect(try await shown() == ["MA=="])
      try await stage.scene.harness.advance(seconds: 59)
      #expect(try await shown() == ["MA=="])
      try await stage.scene.harness.advance(seconds: 1)
      #expect(try await shown() == ["MA==", "MQ=="])
      // Offline at its time, it waits for as long as it lives.
      try await stage.scene.change(["online": false])
      try await stage.scene.harness.advance(seconds: 75)
      try await stage.scene.change(["online": true])
      #expect(try await shown() == ["MA==", "MQ==", "Mg=="])
      let late = try await stage.push(["time_to_send": "\(now + 8 * 86_400_000)"])
      #expect(late.json["code"]?.whole == 10016)
    }
  }

  @Test("a fault may have any code, or a status of its own")
  func faultCodes() async throws {
    try await Stage.run { stage in
      for (status, reason, code) in [(200, "65003", 65003), (429, nil, 10027)]
        as [(Int64, String?, Int64)]
      {
        try await stage.scene.harness.control("DELETE", "/v1/faults")
        try await stage.scene.harness.control(
          "POST", "/v1/faults",
          [
            "pns": "xiaomi", "stage": "before",
            "action": ["type": "reply", "status": JSONValue(status), "reason": JSONValue(reason)],
          ])
        let reply = try await stage.push()
        #expect(reply.status == 200)
        #expect(reply.json["code"]?.whole == code)
      }
    }
  }
}
