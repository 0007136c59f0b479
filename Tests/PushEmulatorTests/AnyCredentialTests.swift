import Cryptography
import Foundation
import Testing
import Wire

@testable import PushEmulator

/// Credentials that the emulator did not issue, where it accepts any.
@Suite("Any credential", .timeLimit(.minutes(5)))
struct AnyCredentialTests {
  private static func options(_ stateFile: String? = nil) -> EmulatorOptions {
    .changed {
      $0.acceptsAnyCredential = true
      $0.stateFile = stateFile
    }
  }

  /// Everything that the control API tells, to find traces of a credential.
  private static func everything(_ harness: Harness) async throws -> String {
    var texts: [String] = []
    for path in ["requests", "connections", "apps", "devices", "stats"] {
      let json = try await harness.control("GET", "/v1/" + path)
      texts.append(String(decoding: json.jsonBytes, as: UTF8.self))
    }
    return texts.joined()
  }

  // MARK: FCM

  private static let email = "firebase-adminsdk-x1@real-project.iam.gserviceaccount.com"

  /// An account that the emulator does not know, with a key of 2048 bits.
  private static let account: JSONValue = {
    let key = ServiceVectors.all.at("keys", "rsa_test")
    return [
      "client_email": .string(email), "private_key_id": "0123456789abcdef0123456789abcdef01234567",
      "private_key": key["private_pkcs8_pem"] ?? .null,
      "token_uri": "https://oauth2.googleapis.com/token",
    ]
  }()

  private func token(
    _ client: ServiceClient, claims: JSONValue = .object([]), header: JSONValue? = nil
  ) async throws -> ServiceClient.Reply {
    let app: JSONValue = ["serviceAccount": Self.account]
    let assertion = try FCMScene.assertion(
      app, claims: FCMScene.claims(app).setting(claims), header: header)
    return await client.send(
      "POST", "/token", [FCMScene.formType], body: FCMScene.form(assertion))
  }

  @Test("a real service account sends to every project of the emulator, and leaves no trace")
  func serviceAccount() async throws {
    let directory = try ServerTests.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let file = directory + "/emulator.json"
    try await Harness.run(Self.options(file)) { harness in
      let app = try await harness.app([
        "pns": "fcm", "projectId": "real-project", "serviceAccounts": [],
      ])
      let device = try await harness.device(of: app)
      let client = harness.client(.fcm)
      let granted = try await token(client)
      let bearer = try #require(granted.json["access_token"]?.text)
      func send(_ project: String) async -> ServiceClient.Reply {
        let body: JSONValue = [
          "message": ["token": device.at("handle", "token"), "data": ["a": "1"]]
        ]
        return await client.send(
          "POST", "/v1/projects/\(project)/messages:send",
          [("content-type", "application/json"), ("authorization", "Bearer " + bearer)],
          body: body.jsonBytes)
      }
      #expect(await send("real-project").status == 200)
      #expect(try await harness.delivered(device).count == 1)
      let unknown = await send("another-project")
      #expect(unknown.status == 403)
      #expect(unknown.json.at("error", "message").text?.contains("POST /v1/apps") == true)
      let told = try await Self.everything(harness)
      #expect(told.contains(AnyCredential.name))
      for secret in ["adminsdk", "0123456789abcdef", bearer] { #expect(!told.contains(secret)) }
      client.close()
    }
    let state = try String(contentsOfFile: file, encoding: .utf8)
    #expect(!state.contains("adminsdk") && !state.contains("PRIVATE KEY"))
  }

  @Test(
    "each address of Google's token service is taken, as key files have it",
    arguments: [
      "https://oauth2.googleapis.com/token", "https://accounts.google.com/o/oauth2/token",
      "https://www.googleapis.com/oauth2/v4/token",
    ])
  func tokenService(audience: String) async throws {
    try await Harness.run(Self.options()) { harness in
      let client = harness.client(.fcm)
      let reply = try await token(client, claims: ["aud": .string(audience)])
      #expect(reply.status == 200)
      client.close()
    }
  }

  @Test("of the scopes of an assertion only those that allow sending are kept")
  func scopes() async throws {
    try await Harness.run(Self.options()) { harness in
      let sending = "https://www.googleapis.com/auth/firebase.messaging"
      let client = harness.client(.fcm)
      let scope = "real-secret \(sending) \(sending)"
      let reply = try await token(client, claims: ["scope": .string(scope)])
      #expect(reply.status == 200)
      let request = try await harness.lastRequest()
      #expect(request.at("auth", "claims", "scope") == [.string(sending)])
      #expect(!(try await Self.everything(harness)).contains("real-secret"))
      client.close()
    }
  }

  @Test(
    "a credential in a query or another header is not in the journal",
    arguments: [Transport.http1, .http2])
  func elsewhere(transport: Transport) async throws {
    try await Harness.run(Self.options()) { harness in
      let client = harness.client(.fcm, over: transport)
      let fields = [
        "authorization", "proxy-authorization", "x-authorization", "cookie", "x-goog-api-key",
        "crypto-key", "x-amz-security-token",
      ]
      let query =
        "?key=real-secret&access%5Ftoken=real-secret&ASSERTION=real-secret"
        + "&client_secret=real-secret&alt=json&page_token=a"
      _ = await client.send(
        "POST", "/v1/projects/p/messages:send" + query,
        fields.map { ($0, "real-secret") } + [("x-kept", "b"), ("access_token_auth", "true")])
      let request = try await harness.lastRequest()
      #expect(
        request["path"]?.text
          == "/v1/projects/p/messages:send?key=…&access%5Ftoken=…&ASSERTION=…&client_secret=…"
          + "&alt=json&page_token=a")
      #expect(request.at("headers", "x-kept").text == "b")
      #expect(request.at("headers", "access_token_auth").text == "true")
      #expect(!(try await Self.everything(harness)).contains("real-secret"))
      client.close()
    }
  }

  @Test(
    "an assertion that no service account would write is refused",
    arguments: [
      (["iss": "somebody@example.com"], nil), (["iss": "@x.iam.gserviceaccount.com"], nil),
      (["aud": "https://evil.example/token"], nil), (["exp": 1], nil),
      (["scope": "https://www.googleapis.com/auth/drive"], nil),
      ([:], ["alg": "RS512", "kid": "0123"]), ([:], ["alg": "RS256", "kid": ""]),
    ] as [(JSONValue, JSONValue?)])
  func noServiceAccount(claims: JSONValue, header: JSONValue?) async throws {
    try await Harness.run(Self.options()) { harness in
      let client = harness.client(.fcm)
      let reply = try await token(client, claims: claims, header: header)
      #expect(reply.status == 400)
      client.close()
    }
  }

  @Test("a known account is checked with its key as ever")
  func knownAccount() async throws {
    try await Harness.run(Self.options()) { harness in
      let key = try RSAPrivateKey()
      _ = try await harness.app([
        "pns": "fcm", "projectId": "real-project",
        "serviceAccounts": [
          ["clientEmail": .string(Self.email), "publicKeyPem": .string(try key.publicKey().pem)]
        ],
      ])
      let client = harness.client(.fcm)
      #expect(try await token(client).json["error"]?.text == "invalid_grant")
      client.close()
    }
  }

  @Test("without the option it is refused")
  func without() async throws {
    try await Harness.run { harness in
      let client = harness.client(.fcm)
      let reply = try await token(client)
      #expect(reply.json["error"]?.text == "invalid_grant")
      client.close()
    }
  }

  // MARK: APNs

  @Test("a provider token of an unknown key and team pushes to every app, and leaves no trace")
  func providerToken() async throws {
    try await Harness.run(Self.options()) { harness in
      let app = try harness.server.app()
      let device = try await harness.device(app)
      let client = try harness.connect()
      let pem = try P256PrivateKey().pem()
      func push(kid: String, team: String) async throws -> Client.Reply {
        let jwt = try Harness.token(kid: kid, team: team, p8: pem)
        return try await client.push(to: device.token, app, jwt: jwt)
      }
      for (kid, team) in [("ABC", "REALTEAM01"), ("REALKEY001", "REAL-TEAM1")] {
        #expect(try await push(kid: kid, team: team).reason == "InvalidProviderToken")
      }
      #expect(try await push(kid: "REALKEY001", team: "REALTEAM01").status == 200)
      #expect(try await harness.notifications(device.deviceID).count == 1)
      let told = try await Self.everything(harness)
      #expect(told.contains(AnyCredential.name))
      #expect(!told.contains("REALKEY001") && !told.contains("REALTEAM01"))
      // Its age counts, and a key that is known is checked with it.
      let other = try harness.connect()
      let old = try Harness.token(
        kid: "REALKEY001", team: "REALTEAM01", p8: pem, issuedAt: Harness.noon / 1000 - 7200)
      let expired = try await other.push(to: device.token, app, jwt: old)
      #expect(expired.reason == "ExpiredProviderToken")
      let forged = try Harness.token(kid: app.keyID, team: app.teamID, p8: pem)
      let refused = try await other.push(to: device.token, app, jwt: forged)
      #expect(refused.reason == "InvalidProviderToken")
    }
  }

  // MARK: WNS and Web Push

  @Test(
    "a client of WNS with any secret sends to every channel",
    arguments: [
      ("/accesstoken.srf", "ms-app://s-1-15-2-999", "notify.windows.com", true),
      ("/accesstoken.srf", "somebody", "notify.windows.com", false),
      (
        "/tenant/oauth2/v2.0/token", "01234567-89ab-cdef-0123-456789abcdef",
        "https://wns.windows.com/.default", true
      ),
      ("/tenant/oauth2/v2.0/token", "no-guid", "https://wns.windows.com/.default", false),
    ])
  func windows(path: String, client id: String, scope: String, isAccepted: Bool) async throws {
    try await Harness.run(Self.options()) { harness in
      let app = try await harness.app(["pns": "wns"])
      let device = try await harness.device(of: app)
      let client = harness.client(.wns, over: .http1)
      let form = PercentEncoding.form([
        ("grant_type", "client_credentials"), ("client_id", id), ("client_secret", "real-secret"),
        ("scope", scope),
      ])
      let granted = await client.send("POST", path, [FCMScene.formType], body: form)
      #expect((granted.status == 200) == isAccepted)
      if let token = granted.json["access_token"]?.text {
        let target = device.at("handle", "channelUri").text?.lastSegment ?? ""
        let sent = await client.send(
          "POST", "/" + target,
          [
            ("authorization", "Bearer " + token), ("x-wns-type", "wns/raw"),
            ("content-type", "application/octet-stream"),
          ], body: Array("x".utf8))
        #expect(sent.status == 200)
      }
      let told = try await Self.everything(harness)
      #expect(!told.contains(id) && !told.contains("real-secret") && !told.contains("/tenant/"))
      client.close()
    }
  }

  @Test("a VAPID key that is not the subscription's is good, if it has signed")
  func vapid() async throws {
    try await WebPushScene.run([:], Self.options()) { scene in
      let other = try P256PrivateKey()
      let authorization = try scene.authorization(key: other)
      #expect(try await scene.push("x", ["authorization": authorization]).status == 201)
      let key = Base64URL.encode(try other.publicKey().point)
      #expect(!(try await Self.everything(scene.harness)).contains(key))
      let forged = try scene.authorization(k: key)
      #expect(try await scene.push("x", ["authorization": forged]).status == 403)
    }
  }

  @Test("neither key nor contact of a VAPID token is kept, for any subscription")
  func anybody() async throws {
    try await WebPushScene.run(app: ["vapidPublicKey": .null], [:], Self.options()) { scene in
      let key = try P256PrivateKey()
      let authorization = try scene.authorization(key: key)
      #expect(try await scene.push("x", ["authorization": authorization]).status == 201)
      let told = try await Self.everything(scene.harness)
      #expect(told.contains(AnyCredential.name))
      #expect(!told.contains("ops@example.com"))
      #expect(!told.contains(Base64URL.encode(try key.publicKey().point)))
    }
  }
}
