import Foundation
import HTTP2
import Testing
import Wire

@testable import PushEmulator

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The control API: what it gives, and what wrong input gets.
@Suite(.timeLimit(.minutes(5))) struct ControlTests {
  struct Wrong: Sendable, CustomTestStringConvertible {
    let method: String
    let target: String
    let body: String
    let status: Int
    let code: String
    /// What the message must name.
    let names: String

    var testDescription: String { "\(method) \(target) \(body)" }

    init(
      _ method: String, _ target: String, _ body: String, _ status: Int, _ code: String,
      _ names: String
    ) {
      self.method = method
      self.target = target
      self.body = body
      self.status = status
      self.code = code
      self.names = names
    }
  }

  static let wrong: [Wrong] = [
    Wrong("POST", "/v1/apps", "", 400, "invalid_json", "byte 0"),
    Wrong("POST", "/v1/apps", "{", 400, "invalid_json", "byte 1"),
    Wrong("POST", "/v1/apps", #"{"pns":"apns"} x"#, 400, "invalid_json", "byte 15"),
    Wrong("POST", "/v1/apps", "[]", 400, "wrong_type", "object"),
    Wrong("POST", "/v1/apps", #"{"pns":"apns","pns":"apns"}"#, 400, "invalid_json", "pns"),
    Wrong("POST", "/v1/apps", #"{"pns":"sms"}"#, 400, "invalid_value", "pns"),
    Wrong("POST", "/v1/apps", #"{"pns":1}"#, 400, "wrong_type", "pns"),
    Wrong("POST", "/v1/apps", #"{"bundleId":"com.a"}"#, 400, "missing_member", "pns"),
    Wrong("POST", "/v1/apps", #"{"pns":"apns"}"#, 400, "missing_member", "bundleId"),
    Wrong(
      "POST", "/v1/apps", #"{"pns":"apns","bundleId":"a b"}"#, 400, "invalid_value", "bundleId"),
    Wrong("POST", "/v1/apps", #"{"pns":"apns","bundle":"a"}"#, 400, "unknown_member", "bundle"),
    Wrong(
      "POST", "/v1/apps", #"{"pns":"apns","bundleId":"a","environment":"test"}"#, 400,
      "invalid_value", "environment"),
    Wrong(
      "POST", "/v1/apps", #"{"pns":"apns","bundleId":"a","keys":{}}"#, 400, "wrong_type", "keys"),
    Wrong(
      "POST", "/v1/apps", #"{"pns":"apns","bundleId":"a","keys":[{"kid":"K"}]}"#, 400,
      "missing_member", "keys[0].publicKeyPem"),
    Wrong(
      "POST", "/v1/apps",
      #"{"pns":"apns","bundleId":"a","keys":[{"kid":"K","publicKeyPem":"no key"}]}"#, 400,
      "invalid_value", "keys[0].publicKeyPem"),
    Wrong(
      "POST", "/v1/apps", #"{"pns":"apns","bundleId":"a","certificates":[{"sha256":"12"}]}"#, 400,
      "invalid_value", "certificates[0].sha256"),
    Wrong(
      "POST", "/v1/apps", #"{"pns":"apns","bundleId":"com.example.app","teamId":"TEAM"}"#, 409,
      "conflict", "com.example.app"),
    Wrong("GET", "/v1/apps/app-9", "", 404, "not_found", "app-9"),
    Wrong("GET", "/v1/apps/app-01", "", 404, "not_found", "app-01"),
    Wrong(
      "PATCH", "/v1/apps/app-1", #"{"keys":[{"kid":"NOPE","revoked":true}]}"#, 404, "not_found",
      "NOPE"),
    Wrong("PATCH", "/v1/apps/app-1", #"{"bundleId":"b"}"#, 400, "unknown_member", "bundleId"),
    Wrong("POST", "/v1/devices", #"{}"#, 400, "missing_member", "appId"),
    Wrong("POST", "/v1/devices", #"{"appId":"app-7"}"#, 404, "not_found", "app-7"),
    Wrong("POST", "/v1/devices", #"{"appId":"app-1","count":0}"#, 400, "invalid_value", "count"),
    Wrong("POST", "/v1/devices", #"{"appId":"app-1","count":1.5}"#, 400, "wrong_type", "count"),
    Wrong("POST", "/v1/devices", #"{"appId":"app-1","count":"2"}"#, 400, "wrong_type", "count"),
    Wrong("POST", "/v1/devices", #"{"appId":"app-1","count":1e99}"#, 400, "wrong_type", "count"),
    Wrong(
      "POST", "/v1/devices", #"{"appId":"app-1","kind":"radio"}"#, 400, "invalid_value", "kind"),
    Wrong("POST", "/v1/devices", #"{"appId":"app-1","online":1}"#, 400, "wrong_type", "online"),
    Wrong(
      "POST", "/v1/devices", #"{"appId":"app-1","handle":{"token":"xyz"}}"#, 400, "invalid_value",
      "handle.token"),
    Wrong(
      "POST", "/v1/devices", #"{"appId":"app-1","handle":"xyz"}"#, 400, "wrong_type", "handle"),
    Wrong(
      "POST", "/v1/devices", #"{"appId":"app-1","at":1}"#, 400, "invalid_value", "at"),
    Wrong(
      "POST", "/v1/devices",
      #"{"appId":"app-1","handle":{"token":"\#(String(repeating: "0f", count: 32))"}}"#, 409,
      "conflict", "token"),
    Wrong("GET", "/v1/devices/dev-2", "", 404, "not_found", "dev-2"),
    Wrong("GET", "/v1/devices/dev-0", "", 404, "not_found", "dev-0"),
    Wrong("GET", "/v1/devices/dev--1", "", 404, "not_found", "dev--1"),
    Wrong("GET", "/v1/devices/dev-99999999999999999999", "", 404, "not_found", "dev-9999"),
    Wrong("PATCH", "/v1/devices/dev-1", #"{"online":"yes"}"#, 400, "wrong_type", "online"),
    Wrong("PATCH", "/v1/devices/dev-1", #"{"on":true}"#, 400, "unknown_member", "'on'"),
    Wrong(
      "POST", "/v1/devices/dev-1/unregister", #"{"mode":"lost"}"#, 400, "invalid_value", "mode"),
    Wrong("POST", "/v1/devices/dev-1/unregister", #"{"at":-1}"#, 400, "invalid_value", "at"),
    Wrong(
      "GET", "/v1/devices/dev-1/notifications?after=x", "", 400, "invalid_value", "after"),
    Wrong("GET", "/v1/devices/dev-1/events?after=-1", "", 400, "invalid_value", "after"),
    Wrong("GET", "/v1/requests?status=ok", "", 400, "invalid_value", "status"),
    Wrong("GET", "/v1/requests?pns=fax", "", 400, "invalid_value", "pns"),
    Wrong("POST", "/v1/clock", "{}", 400, "missing_member", "mode"),
    Wrong("POST", "/v1/clock", #"{"mode":"fast"}"#, 400, "invalid_value", "mode"),
    Wrong("POST", "/v1/clock", #"{"advance":-5}"#, 400, "invalid_value", "advance"),
    Wrong("POST", "/v1/clock", #"{"mode":"real","now":5}"#, 400, "invalid_value", "now"),
    Wrong("POST", "/v1/reset", #"{"keep":["all"]}"#, 400, "invalid_value", "keep"),
    Wrong("POST", "/v1/faults", "{}", 400, "missing_member", "action"),
    Wrong("POST", "/v1/faults", #"{"action":{}}"#, 400, "missing_member", "action.type"),
    Wrong(
      "POST", "/v1/faults", #"{"action":{"type":"burn"}}"#, 400, "invalid_value", "action.type"),
    Wrong(
      "POST", "/v1/faults", #"{"action":{"type":"reply"}}"#, 400, "missing_member",
      "action.status"),
    Wrong(
      "POST", "/v1/faults", #"{"action":{"type":"reply","status":200,"headers":{"a b":"c"}}}"#,
      400, "invalid_value", "action.headers.a b"),
    Wrong(
      "POST", "/v1/faults", #"{"action":{"type":"reply","status":200,"speed":1}}"#, 400,
      "unknown_member", "action.speed"),
    Wrong(
      "POST", "/v1/faults", #"{"action":{"type":"error-rate","rates":{"503":0.9,"500":0.2}}}"#,
      400, "invalid_value", "action.rates"),
    Wrong(
      "POST", "/v1/faults", #"{"action":{"type":"latency","uniform":[5,1]}}"#, 400,
      "invalid_value", "action.uniform"),
    Wrong(
      "POST", "/v1/faults", #"{"action":{"type":"latency","p50":5,"p99":1}}"#, 400,
      "invalid_value", "action.p99"),
    Wrong(
      "POST", "/v1/faults", #"{"action":{"type":"reset","at":"end"}}"#, 400, "invalid_value",
      "action.at"),
    Wrong(
      "POST", "/v1/faults", #"{"action":{"type":"tls-alert","alert":"boo"}}"#, 400,
      "invalid_value", "action.alert"),
    Wrong(
      "POST", "/v1/faults", #"{"when":{"probability":2},"action":{"type":"garbage"}}"#, 400,
      "invalid_value", "when.probability"),
    Wrong(
      "POST", "/v1/faults", #"{"match":{"appId":"app-9"},"action":{"type":"garbage"}}"#, 404,
      "not_found", "app-9"),
    Wrong("DELETE", "/v1/faults/fault-1", "", 404, "not_found", "fault-1"),
    Wrong("GET", "/v1/nothing", "", 404, "not_found", "/v1/nothing"),
    Wrong("DELETE", "/v1/health", "", 405, "method_not_allowed", "DELETE"),
  ]

  @Test("wrong input gets an error that names what is wrong, and changes nothing")
  func wrongInput() async throws {
    try await Harness.run { harness in
      try await harness.control(
        "POST", "/v1/apps", ["pns": "apns", "bundleId": "com.example.app", "teamId": "TEAM"])
      try await harness.control(
        "POST", "/v1/devices",
        ["appId": "app-1", "handle": ["token": .string(String(repeating: "0f", count: 32))]])
      let before = try await state(harness)
      for item in Self.wrong {
        let reply = try await harness.server.control(item.method, item.target, body: item.body)
        let error = try JSONValue.read(reply.body, uniqueNames: true)["error"]
        #expect(reply.status == item.status, "\(item.testDescription)")
        #expect(error?["code"]?.text == item.code, "\(item.testDescription)")
        let message = error?["message"]?.text ?? ""
        #expect(message.contains(item.names), "\(item.testDescription): \(message)")
      }
      #expect(try await state(harness) == before)
    }
  }

  private func state(_ harness: Harness) async throws -> [JSONValue] {
    [
      try await harness.control("GET", "/v1/apps"), try await harness.control("GET", "/v1/devices"),
      try await harness.control("GET", "/v1/faults"), try await harness.control("GET", "/v1/clock"),
    ]
  }

  @Test("a deeply nested or huge body is refused, not followed")
  func hostileBodies() async throws {
    try await Harness.run { harness in
      let deep = String(repeating: #"{"a":"#, count: 10_000)
      #expect(try await harness.server.control("POST", "/v1/apps", body: deep).status == 400)
      var request = URLRequest(
        url: try #require(URL(string: harness.addresses.control + "/v1/apps")))
      request.httpMethod = "POST"
      request.httpBody = Data(repeating: 0x20, count: 2 << 20)
      let (_, response) = try await URLSession.shared.data(for: request)
      #expect((response as? HTTPURLResponse)?.statusCode == 413)
    }
  }

  @Test("an app's private key is shown once, to the caller that made the app")
  func privateKeys() async throws {
    try await Harness.run { harness in
      let made = try await harness.control(
        "POST", "/v1/apps", ["pns": "apns", "bundleId": "com.example.app"])
      let key = try #require(made["keys"]?.items.first)
      let p8 = try #require(key["privateKeyPem"]?.text)
      #expect(p8.hasPrefix("-----BEGIN PRIVATE KEY-----"))
      #expect(made["teamId"]?.text?.count == 10)
      #expect(key["kid"]?.text?.count == 10)
      for path in ["/v1/apps", "/v1/apps/app-1"] {
        let text = String(
          decoding: try await harness.control("GET", path).jsonBytes, as: UTF8.self)
        #expect(text.contains("publicKeyPem"))
        #expect(!text.contains("privateKeyPem"))
        #expect(!text.contains("PRIVATE KEY"))
      }
    }
  }

  @Test("a key can be added to an app, and wrong keys leave all others as they were")
  func addedKeys() async throws {
    let key = try #require(Vectors.shared.keys["p256_test"])
    let other = try #require(Vectors.shared.keys["p256_other"])
    try await Harness.run { harness in
      let app = try harness.server.app()
      let device = try harness.server.makeDevices(app: app)[0]
      let new: JSONValue = ["kid": "NEWKEY0001", "publicKeyPem": .string(key.publicSPKI)]
      let path = "/v1/apps/\(app.appID)"
      for _ in 0..<2 {
        let changed = try await harness.control("PATCH", path, ["keys": [new]])
        #expect(changed["keys"]?.items.count == 2)
      }
      let signed = EmulatorServer.App(
        appID: app.appID, bundleID: app.bundleID, teamID: app.teamID, keyID: "NEWKEY0001",
        p8: key.privatePKCS8)
      #expect(try await harness.connect().push(to: device.token, signed).status == 200)
      let wrong: JSONValue = [
        "keys": [
          ["kid": .string(app.keyID), "revoked": true],
          ["kid": "NEWKEY0001", "publicKeyPem": .string(other.publicSPKI)],
        ]
      ]
      let refused = try await harness.server.control(
        "PATCH", path, body: String(decoding: wrong.jsonBytes, as: UTF8.self))
      #expect(refused.status == 409)
      let keys = try await harness.control("GET", path)["keys"]?.items ?? []
      #expect(keys.allSatisfy { $0["revoked"] == false })
    }
  }

  @Test("info, health and the authority's certificate")
  func general() async throws {
    try await Harness.run { harness in
      #expect(try await harness.control("GET", "/v1/health")["status"]?.text == "ok")
      let info = try await harness.control("GET", "/v1/info")
      #expect(info["control"]?.text == harness.addresses.control)
      #expect(info["apns"]?["production"]?.text == harness.addresses.apnsProduction)
      #expect(info["apns"]?["sandbox"]?.text == harness.addresses.apnsSandbox)
      let ca = try await harness.server.control("GET", "/v1/ca.pem")
      #expect(String(decoding: ca.body, as: UTF8.self) == harness.addresses.authorityPEM)
    }
  }

  @Test("the journal tells who asked for what and never keeps the token itself")
  func journal() async throws {
    try await Harness.run { harness in
      let app = try harness.server.app()
      let device = try await harness.device(app)
      let jwt = try Harness.token(app)
      let client = try harness.connect()
      _ = try await client.push(to: device.token, app, jwt: jwt, [("apns-priority", "5")])
      _ = try await client.push(to: String(repeating: "ab", count: 32), app, jwt: jwt)
      _ = try await client.push(to: device.token, app, jwt: "x.y.z")
      let text = String(
        decoding: try await harness.control("GET", "/v1/requests").jsonBytes, as: UTF8.self)
      #expect(!text.contains(jwt))
      #expect(!text.contains("x.y.z"))
      let all = try await harness.control("GET", "/v1/requests")["requests"]?.items ?? []
      #expect(all.count == 3)
      #expect(all[0]["method"]?.text == "POST")
      #expect(all[0]["path"]?.text == "/3/device/" + device.token)
      #expect(all[0]["headers"]?["apns-priority"]?.text == "5")
      #expect(all[0]["auth"]?["keyId"]?.text == app.keyID)
      #expect(all[0]["auth"]?["claims"]?["iss"]?.text == app.teamID)
      #expect(all[0]["storeAction"]?.text == "delivered")
      #expect(all[0]["connection"] == 1)
      #expect(all[1]["reason"]?.text == "BadDeviceToken")
      #expect(all[2]["auth"]?["verdict"]?.text == "refused")
      func count(_ query: String) async throws -> Int? {
        try await harness.control("GET", "/v1/requests?" + query)["requests"]?.items.count
      }
      #expect(try await count("after=1") == 2)
      #expect(try await count("status=400") == 1)
      #expect(try await count("pns=apns&status=200") == 1)
      #expect(try await count("handle=" + device.token.uppercased()) == 2)
      #expect(try await count("limit=1") == 1)
      let last = try await harness.control("GET", "/v1/requests?newest=1&status=400")["requests"]
      #expect(last?.items.map { $0["seq"] } == [2])
      #expect(try await harness.control("GET", "/v1/requests?newest=1")["total"] == 3)
      try await harness.control("DELETE", "/v1/requests")
      #expect(try await count("after=0") == 0)
      let stats = try await harness.control("GET", "/v1/stats")
      #expect(stats["requests"] == 3)
      #expect(stats["storeActions"]?["delivered"] == 1)
      let refused = stats["answers"]?.items.first { $0["reason"]?.text == "BadDeviceToken" }
      #expect(refused?["count"] == 1)
      #expect(refused?["status"] == 400)
    }
  }

  @Test("a reset gives the same ids again for the same seed")
  func reset() async throws {
    func make(_ harness: Harness) async throws -> [String] {
      let app = try harness.server.app()
      let devices = try harness.server.makeDevices(app: app, count: 3)
      let client = try harness.connect()
      let reply = try await client.push(to: devices[0].token, app)
      client.connection.close()
      return [app.appID, app.teamID, app.keyID] + devices.map(\.token) + [reply.id ?? ""]
    }
    try await Harness.run { harness in
      let first = try await make(harness)
      try await harness.control("POST", "/v1/reset")
      #expect(try await harness.control("GET", "/v1/apps")["apps"]?.items.isEmpty == true)
      #expect(try await harness.control("GET", "/v1/devices")["devices"]?.items.isEmpty == true)
      #expect(try await make(harness) == first)
      try await harness.control("POST", "/v1/reset", ["keep": ["apps"]])
      #expect(try await harness.control("GET", "/v1/apps")["apps"]?.items.count == 1)
      #expect(try await harness.control("GET", "/v1/devices")["devices"]?.items.isEmpty == true)
    }
    try await Harness.run(.changed { $0.seed = 2 }) { harness in
      let other = try await make(harness)
      #expect(Set(other).contains("app-1"))
      #expect(other[1].count == 10)
    }
  }

  @Test("the newest devices are listed with how many there are, however many there are")
  func newestDevices() async throws {
    try await Harness.run { harness in
      let app = try harness.server.app()
      let first = try harness.server.makeDevices(app: app, count: 2500)
      let last = try harness.server.makeDevices(app: app, count: 1)
      let list = try await harness.control("GET", "/v1/devices?newest=2")
      #expect(
        list["devices"]?.items.map { $0["deviceId"]?.text }
          == [first[2499].deviceID, last[0].deviceID])
      #expect(list["total"] == 2501)
      let oldest = try await harness.control("GET", "/v1/devices?limit=1")
      #expect(oldest["devices"]?.items.map { $0["deviceId"]?.text } == [first[0].deviceID])
      #expect(oldest["total"] == 2501)
    }
  }

  @Test("a hundred thousand devices are made by one request")
  func manyDevices() async throws {
    try await Harness.run { harness in
      let app = try harness.server.app()
      let reply = try await harness.control(
        "POST", "/v1/devices", ["appId": .string(app.appID), "count": 100_000])
      let devices = reply["devices"]?.items ?? []
      #expect(devices.count == 100_000)
      #expect(Set(devices.compactMap { $0["handle"]?["token"]?.text }).count == 100_000)
      let details = try await harness.control("GET", "/v1/apps/\(app.appID)")
      #expect(details["devices"] == 100_000)
    }
  }
}
