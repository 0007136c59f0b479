import Cryptography
import Testing
import Wire

@testable import PushEmulator

/// An emulator with a web application of a VAPID key, one subscription, and a sender.
struct WebPushScene: Sendable {
  let harness: Harness
  let app: JSONValue
  let device: JSONValue
  let client: ServiceClient
  /// The sender's; `nil` for subscriptions that anybody may send to.
  let key: P256PrivateKey?

  static func run(
    app: JSONValue = .object([]), _ device: JSONValue = .object([]),
    over transport: Transport = .http2,
    _ options: EmulatorOptions = .changed(), _ body: (WebPushScene) async throws -> Void
  ) async throws {
    try await Harness.run(options) { harness in
      let made = try await harness.app((["pns": "webpush"] as JSONValue).adding(app))
      let scalar = made["vapidPrivateKey"]?.text.flatMap { Base64URL.decode($0) }
      let client = harness.client(.webpush, over: transport)
      try await body(
        WebPushScene(
          harness: harness, app: made, device: try await harness.device(of: made, device),
          client: client, key: try scalar.map { try P256PrivateKey(scalar: $0) }))
      client.close()
    }
  }

  /// The path of the subscription's endpoint.
  var path: String { "/wp/" + (device.at("handle", "endpoint").text ?? "").lastSegment }

  /// Keys of the subscription.
  var keys: (p256dh: String, auth: String) {
    (device.at("handle", "p256dh").text ?? "", device.at("handle", "auth").text ?? "")
  }

  static let now = Harness.noon / 1000

  /// `Authorization` of a sender that is right.
  func authorization(
    _ changes: JSONValue = .object([]), key other: P256PrivateKey? = nil, k: String? = nil
  ) throws -> String {
    guard let key = other ?? key else { return "" }
    let claims =
      (["aud": .string(client.origin), "exp": JSONValue(Self.now + 43_200)] as JSONValue)
      .adding(["sub": "mailto:ops@example.com"]).setting(changes)
    let token = try CompactJWS.sign(
      header: Array(#"{"typ":"JWT","alg":"ES256"}"#.utf8), claims: claims.jsonBytes, with: key)
    return "vapid t=\(token), k=\(try k ?? Base64URL.encode(key.publicKey().point))"
  }

  /// A message that the subscription can read.
  func sealed(_ text: String) throws -> [UInt8] {
    let recipient = try #require(WebPushRecipient(p256dh: keys.p256dh.utf8, auth: keys.auth.utf8))
    var body: [UInt8] = []
    try WebPushEncryptor().encrypt(Array(text.utf8), to: recipient, appendingTo: &body)
    return body
  }

  /// Posts a message; `nil` in `headers` removes one of those that make it right.
  func push(
    _ text: String = #"{"a":1}"#, _ headers: [String: String?] = [:], body: [UInt8]? = nil,
    path: String? = nil, method: String = "POST"
  ) async throws -> ServiceClient.Reply {
    var all: [String: String?] = ["ttl": "60", "content-encoding": "aes128gcm"]
    if key != nil { all["authorization"] = try authorization() }
    for (name, value) in headers { all[name.lowercased()] = value }
    let fields = all.compactMap { name, value in value.map { (name, $0) } }
    return await client.send(
      method, path ?? self.path, fields, body: try body ?? sealed(text))
  }

  /// The payloads that the device showed, as text.
  func texts() async throws -> [String] {
    try await harness.delivered(device).map {
      String(decoding: Base64.decode($0["payloadBase64"]?.text ?? "") ?? [], as: UTF8.self)
    }
  }
}

extension JSONValue {
  /// With the other object's members added, `null` included.
  func adding(_ other: JSONValue) -> JSONValue { .object((members ?? []) + (other.members ?? [])) }
}

extension String {
  /// What stands behind the last slash.
  var lastSegment: String { String(split(separator: "/").last ?? "") }
}
