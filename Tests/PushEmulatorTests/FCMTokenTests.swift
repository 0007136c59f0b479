import Cryptography
import Testing
import Wire

@testable import PushEmulator

/// docs/protocol/emulator.md, section 5.1: Google's token endpoint.
@Suite struct FCMTokenTests {
  /// A wrong request and what it gets.
  struct Wrong: Sendable, CustomTestStringConvertible {
    let name: String
    let status: Int
    let error: String
    /// From a right form body.
    var body: @Sendable (JSONValue) throws -> [UInt8] = {
      FCMScene.form(try FCMScene.assertion($0, claims: FCMScene.claims($0)))
    }
    var method = "POST"
    var contentType = FCMScene.formType.1

    var testDescription: String { name }

    static func claim(_ name: String, _ changes: JSONValue, _ error: String = "invalid_grant")
      -> Wrong
    {
      Wrong(
        name: name, status: 400, error: error,
        body: { app in
          FCMScene.form(
            try FCMScene.assertion(app, claims: FCMScene.claims(app).setting(changes)))
        })
    }
  }

  private static let now = Harness.noon / 1000

  static let wrong: [Wrong] = [
    Wrong(name: "method", status: 405, error: "invalid_request", method: "GET"),
    Wrong(
      name: "content type", status: 400, error: "invalid_request", contentType: "application/json"),
    Wrong(
      name: "no grant type", status: 400, error: "invalid_request",
      body: { _ in Array("assertion=a.b.c".utf8) }),
    Wrong(
      name: "other grant type", status: 400, error: "unsupported_grant_type",
      body: { _ in Array("grant_type=password&assertion=a.b.c".utf8) }),
    Wrong(
      name: "no assertion", status: 400, error: "invalid_request",
      body: { _ in FCMScene.form("") }),
    Wrong(
      name: "two parts", status: 400, error: "invalid_request", body: { _ in FCMScene.form("a.b") }),
    Wrong(
      name: "no JWT", status: 400, error: "invalid_grant", body: { _ in FCMScene.form("a.b.c") }),
    Wrong(
      name: "another algorithm", status: 400, error: "invalid_grant",
      body: { app in
        FCMScene.form(
          try FCMScene.assertion(app, claims: FCMScene.claims(app), header: ["alg": "HS256"]))
      }),
    Wrong(
      name: "unknown kid", status: 400, error: "invalid_grant",
      body: { app in
        FCMScene.form(
          try FCMScene.assertion(
            app, claims: FCMScene.claims(app), header: ["alg": "RS256", "kid": "other"]))
      }),
    Wrong(
      name: "another key's signature", status: 400, error: "invalid_grant",
      body: { app in
        FCMScene.form(
          try FCMScene.assertion(app, claims: FCMScene.claims(app), key: RSAPrivateKey()))
      }),
    .claim("unknown account", ["iss": "nobody@demo-project.iam.gserviceaccount.com"]),
    .claim("no issuer", ["iss": .null]),
    .claim("another audience", ["aud": "https://example.com/token"]),
    .claim("audience without path", ["aud": "https://localhost"]),
    .claim("issued too far ahead", ["iat": JSONValue(now + 301), "exp": JSONValue(now + 3600)]),
    .claim("expired", ["iat": JSONValue(now - 3600), "exp": JSONValue(now)]),
    .claim("too long a life", ["exp": JSONValue(now + 3601)]),
    .claim("extreme times", ["iat": JSONValue(Int64.min), "exp": JSONValue(Int64.max)]),
    .claim("no times", ["iat": .null, "exp": .null]),
    .claim("another scope", ["scope": "https://www.googleapis.com/auth/drive"], "invalid_scope"),
    .claim("no scope", ["scope": .null], "invalid_scope"),
  ]

  @Test("a wrong token request gets the error of its row", arguments: Transport.allCases)
  func wrong(transport: Transport) async throws {
    try await FCMScene.run(over: transport) { scene in
      for item in Self.wrong {
        let reply = await scene.client.send(
          item.method, "/token", [("content-type", item.contentType)],
          body: try item.body(scene.app))
        #expect(reply.status == item.status, "\(item.name)")
        #expect(reply.json["error"]?.text == item.error, "\(item.name)")
        #expect(reply.json["error_description"]?.text?.isEmpty == false, "\(item.name)")
      }
      let last = try await scene.harness.lastRequest()
      #expect(last["pns"]?.text == "fcm-token")
      #expect(last["reason"]?.text == "invalid_scope")
    }
  }

  @Test("a right request gets a token in Google's form", arguments: Transport.allCases)
  func right(transport: Transport) async throws {
    try await FCMScene.run(over: transport) { scene in
      let reply = try await FCMScene.askToken(scene.client, scene.app)
      #expect(reply.status == 200)
      #expect(reply.json["access_token"]?.text?.hasPrefix("ya29.") == true)
      #expect(reply.json["expires_in"] == 3599)
      #expect(reply.json["token_type"]?.text == "Bearer")
      #expect(reply.json["access_token"]?.text != scene.accessToken)
      // Without a key id any key of the account will do; so will the other scope and a clock that
      // is five minutes ahead.
      let claims = FCMScene.claims(scene.app).setting([
        "scope": "https://www.googleapis.com/auth/cloud-platform",
        "iat": JSONValue(Self.now + 300), "aud": "https://oauth2.googleapis.com/token",
      ])
      let assertion = try FCMScene.assertion(
        scene.app, claims: claims, header: ["alg": "RS256"])
      let other = await scene.client.send(
        "POST", "/token", [FCMScene.formType], body: FCMScene.form(assertion))
      #expect(other.status == 200)
    }
  }

  @Test("a disabled account gets no token, and enabled again it does")
  func disabled() async throws {
    try await FCMScene.run { scene in
      let id = scene.app["appId"]?.text ?? ""
      let email = scene.app.at("serviceAccount", "client_email")
      for (flag, status) in [(true, 401), (false, 200)] {
        try await scene.harness.control(
          "PATCH", "/v1/apps/\(id)",
          ["serviceAccounts": [["clientEmail": email, "disabled": .bool(flag)]]])
        let reply = try await FCMScene.askToken(scene.client, scene.app)
        #expect(reply.status == status)
        if flag { #expect(reply.json["error"]?.text == "invalid_client") }
      }
    }
  }

  @Test("a token ends with its time, and at once when it is revoked")
  func lifetime() async throws {
    try await FCMScene.run { scene in
      try await scene.harness.advance(seconds: 3598)
      #expect(await scene.send().status == 200)
      try await scene.harness.advance(seconds: 1)
      #expect(await scene.send().status == 401)
      try await scene.harness.clock(["mode": "manual", "now": JSONValue(Harness.noon)])
      #expect(await scene.send().status == 200)
      try await scene.harness.control(
        "PATCH", "/v1/apps/\(scene.app["appId"]?.text ?? "")", ["revokeTokens": true])
      #expect(await scene.send().errorStatus == "UNAUTHENTICATED")
    }
  }

  @Test("the account's file is the one that people download, and is shown once")
  func file() async throws {
    try await Harness.run { harness in
      let app = try await harness.app(["pns": "fcm", "projectId": "demo-project"])
      let file = app["serviceAccount"] ?? .null
      let client = harness.client(.fcm, over: .http1)
      #expect(try await FCMScene.askToken(client, app).status == 200)
      #expect(file["type"]?.text == "service_account")
      #expect(file["project_id"]?.text == "demo-project")
      #expect(file["token_uri"]?.text == client.origin + "/token")
      #expect(file["private_key"]?.text?.hasPrefix("-----BEGIN PRIVATE KEY-----\n") == true)
      let shown = try await harness.control("GET", "/v1/apps/\(app["appId"]?.text ?? "")")
      #expect(shown["serviceAccount"] == nil)
      #expect(!String(decoding: shown.jsonBytes, as: UTF8.self).contains("PRIVATE KEY"))
      client.close()
    }
  }

  @Test("a case of the vectors gets its listed answer")
  func vectors() async throws {
    let vectors = ServiceVectors.all.at("fcm_oauth")
    let cases = vectors["cases"]?.items ?? []
    #expect(cases.count == 8)
    try await Harness.run { harness in
      _ = try await harness.app([
        "pns": "fcm", "projectId": "demo-project",
        "serviceAccounts": [
          [
            "clientEmail": vectors.at("service_account", "client_email"),
            "privateKeyId": vectors.at("service_account", "private_key_id"),
            "publicKeyPem": ServiceVectors.all.at("keys", "rsa_test", "public_spki_pem"),
          ]
        ],
      ])
      let client = harness.client(.fcm)
      for item in cases {
        try await harness.clock([
          "mode": "manual", "now": JSONValue((item["now"]?.whole ?? 0) * 1000),
        ])
        let reply = await client.send(
          "POST", "/token", [FCMScene.formType],
          body: FCMScene.form(item["assertion"]?.text ?? ""))
        let got =
          reply.json["error"]?.text.map { "\(reply.status) \($0)" }
          ?? (reply.json["access_token"] == nil ? "?" : "\(reply.status) access_token")
        #expect(got == item["expect"]?.text, "\(item["name"]?.text ?? "")")
      }
    }
  }
}
