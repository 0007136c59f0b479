/// A web application: the key its subscriptions are restricted to; kept in the state file.
struct WebPushApp: Sendable, Codable {
  /// Unique in the emulator.
  let number: UInt32
  /// 65 bytes, base 64 URL; `nil` for subscriptions that anybody may send to.
  var vapidPublicKey: String?
  /// Of a pair that the emulator made: 32 bytes, base 64 URL.
  var vapidPrivateKey: String?
  var flavor: WebPushFlavor?
  var vendorStrict: Bool?
  var receipts: Bool?
}

/// What a browser vendor's push service knows of web applications.
struct WebPushAccounts: Sendable {
  private(set) var apps: [UInt32: WebPushApp] = [:]
  /// Tokens whose signature has been verified, with what they say: nearly every request has the same.
  private var verified: [String: VAPIDToken] = [:]

  mutating func add(_ app: WebPushApp) { apps[app.number] = app }

  mutating func remove(app number: UInt32) { apps[number] = nil }

  mutating func forgetDevices() {}

  /// Most tokens remembered; then all are verified again.
  private static let verifiedLimit = 1000

  /// - Parameter header: The parameters of `Authorization`.
  mutating func verifiedToken(_ header: VAPIDHeader) -> VAPIDToken? {
    let name = header.token + "." + header.key
    if let known = verified[name] { return known }
    guard let token = VAPIDToken(header) else { return nil }
    if verified.count >= Self.verifiedLimit { verified = [:] }
    verified[name] = token
    return token
  }
}
