import HTTPClient
import Testing
import Wire

@testable import PushEmulator

@Suite("ADM", .timeLimit(.minutes(5)))
struct ADMTests {
  private struct Stage: Sendable {
    let scene: PlainScene
    let token: String

    static func credentials(
      _ change: (inout [String: String]) -> Void = { _ in }
    ) -> [(String, String)] {
      var fields = [
        "grant_type": "client_credentials", "client_id": "c", "client_secret": "s",
        "scope": "messaging:push",
      ]
      change(&fields)
      return fields.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    static func run(
      device: JSONValue = .object([]), _ options: EmulatorOptions = .changed(),
      _ body: (Stage) async throws -> Void
    ) async throws {
      try await PlainScene.run(
        .adm, app: ["pns": "adm", "clientId": "c", "clientSecret": "s"], device: device, options
      ) { scene in
        let reply = try await scene.post(form: credentials(), to: "/auth/O2/token")
        #expect(reply.json["expires_in"]?.whole == 3600)
        #expect(reply.json["token_type"] == "Bearer")
        let token = try #require(reply.json["access_token"]?.text)
        try await body(Stage(scene: scene, token: token))
      }
    }

    var id: String { scene.device["handle"]?["registrationId"]?.text ?? "" }

    func push(
      _ body: JSONValue = ["data": ["k": "v"]], to id: String? = nil,
      _ changes: [String: String?] = [:], method: String = "POST"
    ) async throws -> HTTPReply {
      var headers: [String: String] = [
        "authorization": "Bearer \(token)", "content-type": "application/json",
        "x-amzn-type-version": "com.amazon.device.messaging.ADMMessage@1.0",
        "x-amzn-accept-type": "com.amazon.device.messaging.ADMSendResult@1.0",
      ]
      for (name, value) in changes { headers[name] = value }
      let segment = (id ?? self.id).replacing("=", with: "%3D")
      return try await scene.send(
        method, "/messaging/registrations/\(segment)/messages",
        headers.map { (name: $0.key, value: $0.value) }, body: body.jsonBytes)
    }
  }

  @Test("a message is accepted under its own id and shown")
  func success() async throws {
    try await Stage.run { stage in
      let reply = try await stage.push()
      #expect(reply.status == 200)
      #expect(reply.json["registrationID"]?.text == stage.id)
      #expect(reply["x-amzn-requestid"] != nil)
      let answer1 = try await stage.scene.delivered()
      #expect(answer1[0]["payload"]?["data"]?["k"] == "v")
    }
  }

  @Test("a device that has a new id is reached by the old one, and the answer names the new")
  func rotated() async throws {
    try await Stage.run { stage in
      let id = PlainScene.id(stage.scene.device)
      let fresh = try await stage.scene.harness.control("POST", "/v1/devices/\(id)/rotate")
      let reply = try await stage.push()
      #expect(reply.status == 200)
      #expect(reply.json["registrationID"] == fresh["handle"]?["registrationId"])
      #expect(reply.json["registrationID"]?.text != stage.id)
      let answer2 = try await stage.scene.delivered()
      #expect(answer2.count == 1)
      try await stage.scene.unregister(["mode": "unregistered"])
      let answer3 = try await stage.push()
      #expect(answer3.json["reason"] == "Unregistered")
    }
  }

  private static let long = String(repeating: "k", count: 65)
  static let faults: [(JSONValue, String, UInt16)] = [
    (.object([]), "InvalidData", 400), (["data": ["k": 1]], "InvalidData", 400),
    (["data": "x"], "InvalidData", 400),
    (["data": ["k": "v"], "consolidationKey": .string(long)], "InvalidConsolidationKey", 400),
    (["data": ["k": "v"], "expiresAfter": 59], "InvalidExpiration", 400),
    (["data": ["k": "v"], "expiresAfter": 2_678_401], "InvalidExpiration", 400),
    (["data": ["k": "v"], "md5": "x"], "InvalidChecksum", 400),
    (["data": ["k": "v"], "priority": "urgent"], "InvalidData", 400),
    (
      ["data": ["k": .string(String(repeating: "x", count: 6144))]], "MessageTooLarge", 413
    ),
  ]

  @Test("every fault of a message has its reason", arguments: faults)
  func bodies(body: JSONValue, reason: String, status: UInt16) async throws {
    try await Stage.run { stage in
      let reply = try await stage.push(body)
      #expect(reply.status == status)
      #expect(reply.json["reason"]?.text == reason)
    }
  }

  @Test("token, type, method and path are checked")
  func forms() async throws {
    try await Stage.run { stage in
      let answer4 = try await stage.push([:], to: nil, ["authorization": nil])
      #expect(
        answer4.json["reason"]
          == "AccessTokenExpired")
      let answer5 = try await stage.push(to: nil, ["x-amzn-type-version": "other"])
      #expect(
        answer5.json["reason"]
          == "InvalidType")
      let answer6 = try await stage.push(to: nil, ["x-amzn-accept-type": "other"])
      #expect(
        answer6.json["reason"]
          == "InvalidType")
      let answer7 = try await stage.push(to: nil, ["content-type": "text/plain"])
      #expect(
        answer7.json["reason"]
          == "InvalidData")
      let answer8 = try await stage.push(method: "GET")
      #expect(answer8.status == 405)
      let answer9 = try await stage.scene.send("POST", "/elsewhere")
      #expect(answer9.status == 404)
      try await stage.scene.harness.advance(seconds: 3600)
      let late = try await stage.push()
      #expect(late.status == 401 && late.json["reason"] == "AccessTokenExpired")
    }
  }

  @Test("unknown, foreign and dead registrations are told apart")
  func registrations() async throws {
    try await Stage.run { stage in
      let answer10 = try await stage.push(to: "unknown")
      #expect(answer10.json["reason"] == "InvalidRegistrationId")
      let other = try await stage.scene.harness.control("POST", "/v1/apps", ["pns": "adm"])
      #expect(other["clientSecret"] != nil)
      let foreign = try await stage.scene.another(of: other)
      let id = foreign["handle"]?["registrationId"]?.text
      let answer11 = try await stage.push(to: id)
      #expect(answer11.json["reason"] == "InvalidRegistrationId")
      try await stage.scene.unregister(["mode": "unregistered"])
      let answer12 = try await stage.push()
      #expect(answer12.json["reason"] == "Unregistered")
    }
  }

  @Test(
    "a token request is checked in order",
    arguments: [
      ("grant_type", "", 400, "invalid_request"),
      ("grant_type", "password", 400, "unsupported_grant_type"),
      ("client_secret", "x", 401, "invalid_client"), ("client_id", "x", 401, "invalid_client"),
      ("scope", "x", 400, "invalid_scope"),
    ])
  func tokens(field: String, value: String, status: UInt16, error: String) async throws {
    try await Stage.run { stage in
      let reply = try await stage.scene.post(
        form: Stage.credentials { $0[field] = value.isEmpty ? nil : value }, to: "/auth/O2/token")
      #expect(reply.status == status)
      #expect(reply.json["error"]?.text == error)
    }
  }

  @Test("a client that sends too much is told when to go on")
  func rate() async throws {
    try await Stage.run(.changed { $0.others.rates["adm"] = 1 }) { stage in
      let answer13 = try await stage.push()
      #expect(answer13.status == 200)
      let reply = try await stage.push()
      #expect(reply.status == 429 && reply.json["reason"] == "MaxRateExceeded")
      #expect(reply["retry-after"] == "60")
    }
  }

  @Test("what waits is replaced by its consolidation key and ends by expiresAfter")
  func store() async throws {
    try await Stage.run(device: ["online": false]) { stage in
      _ = try await stage.push(["data": ["n": "1"], "consolidationKey": "a", "expiresAfter": 60])
      _ = try await stage.push(["data": ["n": "2"], "consolidationKey": "a", "expiresAfter": 120])
      _ = try await stage.push(["data": ["n": "3"], "expiresAfter": 60])
      try await stage.scene.harness.advance(seconds: 60)
      try await stage.scene.change(["online": true])
      let answer14 = try await stage.scene.delivered()
      #expect(answer14.map { $0["payload"]?["data"]?["n"]?.text } == ["2"])
    }
  }

  @Test("the published checksums are computed", arguments: PlainVectors.cases("adm_md5"))
  func checksums(item: PlainVectors.Case) async throws {
    try await Stage.run { stage in
      let data = try #require(item.json["data"])
      let md5 = try #require(item.json["md5_b64"])
      let reply = try await stage.push(["data": data, "md5": md5])
      #expect(reply.status == 200)
      #expect(reply["x-amzn-data-md5"] == md5.text)
    }
  }

  @Test("a fault takes ADM's own word for its status")
  func faultWords() async throws {
    try await Stage.run { stage in
      try await stage.scene.harness.control(
        "POST", "/v1/faults",
        ["pns": "adm", "stage": "before", "action": ["type": "reply", "status": 429]])
      let reply = try await stage.push()
      #expect(reply.status == 429 && reply.json["reason"] == "MaxRateExceeded")
    }
  }
}
