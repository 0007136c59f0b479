import Cryptography
import Testing
import Wire

@testable import PushEmulator

/// An emulator with a Firebase project, one device, and a client that has an access token.
struct FCMScene: Sendable {
  let harness: Harness
  let app: JSONValue
  let device: JSONValue
  let client: ServiceClient
  let accessToken: String

  static func run(
    _ device: JSONValue = .object([]), over transport: Transport = .http2,
    _ options: EmulatorOptions = .changed(), _ body: (FCMScene) async throws -> Void
  ) async throws {
    try await Harness.run(options) { harness in
      let app = try await Self.app(in: harness)
      let made = try await harness.device(of: app, device)
      let client = harness.client(.fcm, over: transport)
      let reply = try await Self.askToken(client, app)
      try await body(
        FCMScene(
          harness: harness, app: app, device: made, client: client,
          accessToken: try #require(reply.json["access_token"]?.text)))
      client.close()
    }
  }

  /// The project with an account whose key is published: making one takes its time.
  private static func app(in harness: Harness) async throws -> JSONValue {
    let key = ServiceVectors.all.at("keys", "rsa_test")
    let email: JSONValue = "pusher@demo-project.iam.gserviceaccount.com"
    let made = try await harness.app([
      "pns": "fcm", "projectId": "demo-project",
      "serviceAccounts": [
        [
          "clientEmail": email, "privateKeyId": "key-1",
          "publicKeyPem": key["public_spki_pem"] ?? .null,
        ]
      ],
    ])
    return made.adding([
      "serviceAccount": [
        "client_email": email, "private_key_id": "key-1",
        "private_key": key["private_pkcs8_pem"] ?? .null,
        "token_uri": made["tokenUri"] ?? .null,
      ]
    ])
  }

  var token: String { device["handle"]?["token"]?.text ?? "" }

  // MARK: Tokens

  /// Claims of an assertion that is right for the app's account.
  static func claims(_ app: JSONValue, now: Int64 = Harness.noon / 1000) -> JSONValue {
    let account = app["serviceAccount"] ?? .null
    return [
      "iss": account["client_email"] ?? .null,
      "scope": "https://www.googleapis.com/auth/firebase.messaging",
      "aud": account["token_uri"] ?? .null, "iat": JSONValue(now), "exp": JSONValue(now + 3600),
    ]
  }

  static func assertion(
    _ app: JSONValue, claims: JSONValue, header: JSONValue? = nil, key: RSAPrivateKey? = nil
  ) throws -> String {
    let account = app["serviceAccount"] ?? .null
    let header =
      header ?? ["alg": "RS256", "typ": "JWT", "kid": account["private_key_id"] ?? .null]
    let key = try key ?? RSAPrivateKey(pem: account["private_key"]?.text ?? "")
    return try CompactJWS.sign(header: header.jsonBytes, claims: claims.jsonBytes, with: key)
  }

  static let formType = ("content-type", "application/x-www-form-urlencoded")

  static func form(_ assertion: String) -> [UInt8] {
    Array(
      ("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=" + assertion)
        .utf8)
  }

  static func askToken(_ client: ServiceClient, _ app: JSONValue) async throws
    -> ServiceClient.Reply
  {
    let assertion = try assertion(app, claims: claims(app))
    return await client.send("POST", "/token", [formType], body: form(assertion))
  }

  // MARK: Sends

  /// A message to the device with these members.
  func message(_ members: JSONValue = ["data": ["a": "1"]]) -> JSONValue {
    ["message": JSONValue.object([.init("token", .string(token))]).setting(members)]
  }

  /// - Parameter bearer: By default the scene's access token; empty for no `Authorization`.
  func send(
    _ body: JSONValue? = nil, project: String = "demo-project", bearer: String? = nil
  ) async -> ServiceClient.Reply {
    await send(raw: (body ?? message()).jsonBytes, project: project, bearer: bearer)
  }

  func send(
    raw: [UInt8], project: String = "demo-project", bearer: String? = nil,
    contentType: String = "application/json; charset=UTF-8", method: String = "POST",
    path: String? = nil
  ) async -> ServiceClient.Reply {
    var headers = [("content-type", contentType)]
    let bearer = bearer ?? accessToken
    if !bearer.isEmpty { headers.append(("authorization", "Bearer " + bearer)) }
    return await client.send(
      method, path ?? "/v1/projects/\(project)/messages:send", headers, body: raw)
  }

  func data(_ text: String, _ more: JSONValue = .object([])) -> JSONValue {
    message(JSONValue.object([.init("data", ["text": .string(text)])]).setting(more))
  }

  /// `data.text` of what the device showed.
  func texts() async throws -> [String] {
    try await harness.delivered(device).map { $0.at("payload", "data", "text").text ?? "?" }
  }
}
