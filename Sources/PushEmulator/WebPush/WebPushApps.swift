import Cryptography
import Wire

/// Web Push at the control API.
extension WebPushStandIn {
  /// A web application with the key that its subscriptions are restricted to; kept in the state
  /// file.
  struct App: ServiceApp {
    let number: UInt32
    /// 65 bytes, base 64 URL; `nil` for subscriptions that accept any sender.
    var vapidPublicKey: String?
    /// The private key, for a pair that the emulator made: 32 bytes, base 64 URL.
    var vapidPrivateKey: String?
    var flavor: WebPushFlavor?
    var vendorStrict: Bool?
    var receipts: Bool?

    var names: [String] { [] }
  }

  // MARK: Devices

  func freshText(after old: NamedHandle?, _ generator: inout SeededGenerator) -> String {
    generator.base64URL(43)
  }

  func complete(
    _ handle: inout NamedHandle, after old: NamedHandle?, _ generator: inout SeededGenerator
  ) {
    if let keys = old?.keys, keys.privateKey == nil {
      handle.keys = keys
    } else {
      // If the engine fails, the device has no keys and its messages stay encrypted.
      handle.keys = try? SubscriptionKeys()
    }
  }

  func fault(inHandle text: String) -> String? {
    (1...200).contains(text.utf8.count) && text.utf8.allSatisfy(\.isBase64URL)
      ? nil : "must end in letters, digits, '-', '_'"
  }

  func handle(
    _ reader: JSONReader, in state: inout EmulatorState
  ) throws(ControlError) -> NamedHandle? {
    let text = try id(reader) ?? freshText(after: nil, &state.generator)
    return NamedHandle(service: .webpush, text: text, keys: try Self.keys(reader))
  }

  /// The last segment of `endpoint`, or `id`.
  private func id(_ reader: JSONReader) throws(ControlError) -> String? {
    let endpoint = try reader.string("endpoint")
    let last = endpoint.map { String($0.split(separator: "/").last ?? "") }
    guard let id = try reader.string("id") ?? last else { return nil }
    if let fault = fault(inHandle: id) {
      throw reader.invalid(endpoint == nil ? "id" : "endpoint", fault)
    }
    return id
  }

  private static func keys(_ reader: JSONReader) throws(ControlError) -> SubscriptionKeys {
    let privateKey = try reader.string("privateKey")
    let p256dh = try reader.string("p256dh")
    let auth = try reader.string("auth")
    do {
      return try SubscriptionKeys(given: p256dh, auth: auth, privateKey: privateKey)
    } catch {
      throw reader.invalid("p256dh", "and the other keys cannot be used: \(error)")
    }
  }

  func handleJSON(_ handle: NamedHandle, in state: EmulatorState) -> JSONValue {
    let endpoints = state.addresses.origins(.webpush).map { $0 + "/wp/" + handle.text }
    var json: JSONValue = ["endpoint": JSONValue(endpoints.first)]
    // For clients that support only HTTP/1.1.
    if endpoints.count > 1 { json = json + ["endpointHTTP1": .string(endpoints[1])] }
    if state.addresses.proxy != nil {
      let flavor = app(ofHandle: handle.text, in: state).flatMap { apps[$0]?.flavor }
      let endpoint = (flavor ?? options.flavor).publicEndpoint(handle.text)
      json = json + ["publicEndpoint": .string(endpoint)]
    }
    json = json + ["p256dh": JSONValue(handle.keys?.p256dh), "auth": JSONValue(handle.keys?.auth)]
    return handle.keys?.privateKey.map { json + ["privateKey": .string($0)] } ?? json
  }

  func deviceJSON(_ index: Int, in state: EmulatorState) -> JSONValue {
    ["minUrgency": .string(state.devices[index].minUrgency.word)]
  }

  // MARK: Apps

  func makeApp(
    _ json: JSONValue, in state: inout EmulatorState
  ) throws(ControlError) -> (number: UInt32, made: JSONValue) {
    let body = try JSONReader(
      json, known: ["pns", "vapidPublicKey", "flavor", "vendorStrict", "receipts"])
    let flavor = try body.word("flavor", WebPushFlavor.self)
    let vendorStrict = try body.bool("vendorStrict")
    let receipts = try body.bool("receipts")
    var publicKey = try body.string("vapidPublicKey")
    var privateKey: String?
    if let publicKey {
      guard let point = Base64URL.decode(publicKey), (try? P256PublicKey(point: point)) != nil
      else { throw body.invalid("vapidPublicKey", "must be a point of P-256, base 64 URL") }
    } else if !body.has("vapidPublicKey") {
      do {
        let key = try P256PrivateKey()
        publicKey = Base64URL.encode(try key.publicKey().point)
        privateKey = Base64URL.encode(try key.scalar())
      } catch {
        throw .engine(error)
      }
    }
    let app = App(
      number: state.newApp(.webpush), vapidPublicKey: publicKey, vapidPrivateKey: privateKey,
      flavor: flavor, vendorStrict: vendorStrict, receipts: receipts)
    apps.add(app)
    return (app.number, privateKey.map { ["vapidPrivateKey": .string($0)] } ?? [:])
  }

  static let changeableMembers = ["flavor", "vendorStrict", "receipts"]

  func change(_ app: inout App, _ body: JSONReader) throws(ControlError) {
    app.flavor = try body.word("flavor", WebPushFlavor.self) ?? app.flavor
    app.vendorStrict = try body.bool("vendorStrict") ?? app.vendorStrict
    app.receipts = try body.bool("receipts") ?? app.receipts
  }

  func appJSON(_ number: UInt32, made: JSONValue, in state: EmulatorState) -> JSONValue {
    guard let app = apps[number] else { return [:] }
    return [
      "vapidPublicKey": JSONValue(app.vapidPublicKey),
      "flavor": .string((app.flavor ?? options.flavor).rawValue),
      "vendorStrict": .bool(app.vendorStrict ?? options.vendorStrict),
      "receipts": .bool(app.receipts ?? options.receipts),
    ]
  }
}

extension SubscriptionKeys {
  /// A new pair and secret, as a browser makes them.
  convenience init() throws(CryptographyError) {
    let key = try P256PrivateKey()
    self.init(
      p256dh: Base64URL.encode(try key.publicKey().point),
      auth: Base64URL.encode(try SecureRandom.bytes(16)),
      privateKey: Base64URL.encode(try key.scalar()))
  }

  /// Keys from a request; missing ones are generated if possible.
  convenience init(
    given p256dh: String?, auth: String?, privateKey: String?
  ) throws(CryptographyError) {
    var p256dh = p256dh
    if let privateKey {
      guard let scalar = Base64URL.decode(privateKey) else {
        throw CryptographyError(.malformed, "The private key is not base 64 URL.")
      }
      let made = Base64URL.encode(try P256PrivateKey(scalar: scalar).publicKey().point)
      guard p256dh == nil || p256dh == made else {
        throw CryptographyError(.malformed, "p256dh is not the public key of privateKey.")
      }
      p256dh = made
    }
    guard let p256dh else {
      let made = try SubscriptionKeys()
      self.init(
        p256dh: made.p256dh, auth: auth ?? made.auth, privateKey: made.privateKey)
      return
    }
    var secret = auth
    if secret == nil { secret = Base64URL.encode(try SecureRandom.bytes(16)) }
    guard let secret, let point = Base64URL.decode(p256dh),
      Base64URL.decode(secret)?.count == 16
    else {
      throw CryptographyError(.malformed, "p256dh or auth is not base 64 URL, or of another size.")
    }
    _ = try P256PublicKey(point: point)
    self.init(p256dh: p256dh, auth: secret, privateKey: privateKey)
  }
}

extension EmulatorServer {
  /// A web application's VAPID pair, base 64 URL.
  package struct WebApplication: Sendable {
    package let appID: String
    package let publicKey: String
    package let privateKey: String
  }

  /// The first web application whose pair the emulator made; one is made if there is none.
  ///
  /// - Throws: As ``firebaseProject(_:)``.
  package func webApplication() throws -> WebApplication {
    try with(WebPushStandIn.self) { webPush, state in
      func own() -> WebApplication? {
        for app in webPush.apps.all.values.sorted(by: { $0.number < $1.number }) {
          if let publicKey = app.vapidPublicKey, let privateKey = app.vapidPrivateKey {
            return WebApplication(
              appID: EmulatorState.appID(app.number), publicKey: publicKey,
              privateKey: privateKey)
          }
        }
        return nil
      }
      if let own = own() { return own }
      _ = try webPush.makeApp(["pns": "webpush"], in: &state)
      guard let made = own() else { throw ControlError.notFound("web application") }
      return made
    }
  }
}
