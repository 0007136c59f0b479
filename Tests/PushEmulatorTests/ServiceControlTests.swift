import Foundation
import HTTPClient
import Testing
import Wire

@testable import PushEmulator

/// The control API, the state file and the listeners for services beside APNs.
@Suite(.timeLimit(.minutes(5))) struct ServiceControlTests {
  @Test("info tells every address")
  func info() async throws {
    try await Harness.run { harness in
      let info = try await harness.control("GET", "/v1/info")
      #expect(info.at("fcm", "http2").text == harness.addresses[.fcm])
      #expect(info.at("fcm", "http1").text == harness.addresses[.fcmHTTP1])
      #expect(info.at("webpush", "http2").text == harness.addresses[.webPush])
      #expect(info.at("webpush", "http1").text == harness.addresses[.webPushHTTP1])
      #expect(Set(harness.addresses.services.values).count == EmulatorListener.besideAPNs.count)
    }
  }

  struct Wrong: Sendable, CustomTestStringConvertible {
    let path: String
    let body: String
    let status: Int
    let names: String

    init(_ path: String, _ body: String, _ status: Int, _ names: String) {
      (self.path, self.body, self.status, self.names) = (path, body, status, names)
    }

    var testDescription: String { body }
  }

  static let wrong: [Wrong] = [
    Wrong("apps", #"{"pns":"fcm"}"#, 400, "projectId"),
    Wrong("apps", #"{"pns":"fcm","projectId":"a b"}"#, 400, "projectId"),
    Wrong("apps", #"{"pns":"fcm","projectId":"taken"}"#, 409, "taken"),
    Wrong("apps", #"{"pns":"fcm","projectId":"a","x":1}"#, 400, "x"),
    Wrong(
      "apps",
      #"{"pns":"fcm","projectId":"a","serviceAccounts":[{"clientEmail":"a","publicKeyPem":"x"}]}"#,
      400, "serviceAccounts[0].publicKeyPem"),
    Wrong("apps", #"{"pns":"webpush","vapidPublicKey":"AAAA"}"#, 400, "vapidPublicKey"),
    Wrong("apps", #"{"pns":"webpush","flavor":"opera"}"#, 400, "flavor"),
    Wrong("devices", #"{"appId":"app-1","handle":{"token":"short"}}"#, 400, "handle.token"),
    Wrong("devices", #"{"appId":"app-1","kind":"voip"}"#, 400, "kind"),
    Wrong("devices", #"{"appId":"app-2","minUrgency":"urgent"}"#, 400, "minUrgency"),
    Wrong("devices", #"{"appId":"app-2","handle":{"id":"a/b"}}"#, 400, "handle.id"),
    Wrong("devices", #"{"appId":"app-2","handle":{"p256dh":"AAAA"}}"#, 400, "handle.p256dh"),
    Wrong("devices", #"{"appId":"app-2","count":2,"handle":{"id":"a"}}"#, 400, "count"),
    Wrong("devices", #"{"appId":"app-2","handle":{"id":"taken"}}"#, 409, "webpush"),
  ]

  @Test("wrong input gets an error that names what is wrong, and changes nothing")
  func wrong() async throws {
    try await Harness.run { harness in
      _ = try await harness.app(["pns": "fcm", "projectId": "taken"])
      let web = try await harness.app(["pns": "webpush"])
      _ = try await harness.device(of: web, ["handle": ["id": "taken"]])
      for item in Self.wrong {
        let reply = try await harness.server.control("POST", "/v1/" + item.path, body: item.body)
        #expect(reply.status == item.status, "\(item.body)")
        let text = String(decoding: reply.body, as: UTF8.self)
        #expect(text.contains(item.names), "\(item.body): \(text)")
      }
      let apps = try await harness.control("GET", "/v1/apps")["apps"]?.items ?? []
      #expect(apps.map { $0["devices"] } == [0, 1])
    }
  }

  @Test("a deleted app's devices and credentials are gone")
  func deletion() async throws {
    try await FCMScene.run { scene in
      try await scene.harness.control("DELETE", "/v1/apps/\(scene.app["appId"]?.text ?? "")")
      #expect(await scene.send().status == 401)
      let again = try await scene.harness.app(["pns": "fcm", "projectId": "demo-project"])
      let reply = try await FCMScene.askToken(scene.client, again)
      let bearer = try #require(reply.json["access_token"]?.text)
      #expect(await scene.send(bearer: bearer).fcmError == "UNREGISTERED")
    }
  }

  @Test("a reset gives the same handles again")
  func reset() async throws {
    try await Harness.run { harness in
      func handles() async throws -> [JSONValue] {
        let fcm = try await harness.app(["pns": "fcm", "projectId": "p", "serviceAccounts": []])
        let web = try await harness.app(["pns": "webpush"])
        return [
          try await harness.device(of: fcm)["handle"] ?? .null,
          try await harness.device(of: web).at("handle", "endpoint"),
        ]
      }
      let first = try await handles()
      try await harness.control("POST", "/v1/reset")
      #expect(try await handles() == first)
    }
  }

  @Test("projects, subscriptions and what waits for them outlive the emulator")
  func stateFile() async throws {
    let directory = try ServerTests.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let options = EmulatorOptions.changed { $0.stateFile = directory + "/emulator.json" }
    var account: JSONValue = .null
    var token = ""
    try await FCMScene.run(["online": false], over: .http2, options) { scene in
      account = scene.app
      token = scene.token
      _ = await scene.send(scene.data("waits", ["android": ["collapse_key": "k"]]))
      let web = try await scene.harness.app(["pns": "webpush", "flavor": "apple"])
      _ = try await scene.harness.device(of: web, ["minUrgency": "low"])
      _ = try await scene.harness.device(of: web, ["state": "expired", "at": 5])
    }
    try await Harness.run(options) { harness in
      let client = harness.client(.fcm)
      let claims = FCMScene.claims(account).setting(["aud": .string(client.origin + "/token")])
      let assertion = try FCMScene.assertion(account, claims: claims)
      let reply = await client.send(
        "POST", "/token", [FCMScene.formType], body: FCMScene.form(assertion))
      let scene = FCMScene(
        harness: harness, app: account,
        device: ["deviceId": "dev-1", "handle": ["token": .string(token)]], client: client,
        accessToken: try #require(reply.json["access_token"]?.text))
      _ = await scene.send(scene.data("newer", ["android": ["collapse_key": "k"]]))
      try await harness.patch(scene.device, ["online": true])
      #expect(try await scene.texts() == ["newer"])
      let web = try await harness.control("GET", "/v1/devices/dev-2")
      #expect(web["minUrgency"]?.text == "low")
      #expect(web.at("handle", "privateKey").text != nil)
      #expect(try await harness.control("GET", "/v1/devices/dev-3")["state"]?.text == "expired")
      #expect(try await harness.control("GET", "/v1/apps/app-2")["flavor"]?.text == "apple")
      client.close()
    }
  }

  @Test("without TLS every address speaks plain HTTP/1.1")
  func plain() async throws {
    try await Harness.run(.changed { $0.tls = false }) { harness in
      var configuration = HTTPSessionConfiguration()
      configuration.allowsPlainHTTP = true
      let session = HTTPSession(configuration)
      for listener in EmulatorListener.besideAPNs {
        let address = harness.addresses[listener]
        #expect(address.hasPrefix("http://127.0.0.1:"))
        let reply = try await session.send(HTTPCall(method: "GET", url: address + "/none"))
        #expect(reply.status >= 400)
      }
      session.close()
    }
  }

  @Test("connections are listed with their protocol and who speaks on them")
  func connections() async throws {
    try await FCMScene.run(over: .http1) { scene in
      _ = await scene.send()
      let list = try await scene.harness.control("GET", "/v1/connections")["connections"]?.items
      let connection = try #require(list?.first)
      #expect(connection["pns"]?.text == "fcm")
      #expect(connection["protocol"]?.text == "http/1.1")
      #expect(connection["requests"] == 2)
      #expect(connection.at("identity", "keyId").text?.hasPrefix("pusher@") == true)
      let stats = try await scene.harness.control("GET", "/v1/stats")
      let answers = stats["answers"]?.items ?? []
      #expect(answers.map { $0["pns"]?.text } == ["fcm", "fcm-token"])
    }
  }
}
