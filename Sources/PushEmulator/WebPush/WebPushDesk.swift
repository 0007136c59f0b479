import Cryptography
import Wire

/// Web Push at the control API.
struct WebPushDesk: ServiceDesk {
  var service: PushService { .webpush }

  func kind(of handle: DeviceHandle) -> String? { nil }

  func handleJSON(_ handle: DeviceHandle, in state: EmulatorState) -> JSON {
    guard case .named(let handle) = handle else { return nil }
    let endpoints = state.origins.all(.webpush).map { $0 + "/wp/" + handle.text }
    var members: [JSON.Member] = [.init(name: "endpoint", value: JSON(endpoints.first))]
    if endpoints.count > 1 {
      // For clients that speak HTTP/1.1 only.
      members.append(.init(name: "endpointHTTP1", value: .string(endpoints[1])))
    }
    members.append(.init(name: "p256dh", value: JSON(handle.keys?.p256dh)))
    members.append(.init(name: "auth", value: JSON(handle.keys?.auth)))
    if let key = handle.keys?.privateKey {
      members.append(.init(name: "privateKey", value: .string(key)))
    }
    return .object(members)
  }

  func freshHandle(after old: NamedHandle?, in state: inout EmulatorState) -> NamedHandle {
    var text = state.generator.base64URL(43)
    while state.handles.device(.webpush, text) != nil { text = state.generator.base64URL(43) }
    var handle = NamedHandle(service: .webpush, text: text)
    if let old, let keys = old.keys, keys.privateKey == nil {
      handle.keys = keys
    } else {
      // Without keys, should the engine fail, its messages stay encrypted.
      handle.keys = try? SubscriptionKeys()
    }
    return handle
  }

  func makeDevices(
    _ json: JSON, app: UInt32, in state: inout EmulatorState
  ) throws(ControlError) -> Range<Int> {
    let body = try JSONReader(json, known: DeviceRequest.members + ["handle"])
    let request = try DeviceRequest(body, app: app)
    guard
      let reader = try body.object(
        "handle", known: ["endpoint", "endpointHTTP1", "id", "p256dh", "auth", "privateKey"])
    else { return try state.addDevices(request, fixed: nil) }
    var handle = freshHandle(after: nil, in: &state)
    if let id = try Self.id(reader) { handle = NamedHandle(service: .webpush, text: id) }
    handle.keys = try Self.keys(reader)
    return try state.addDevices(request, fixed: handle)
  }

  /// The last segment of `endpoint`, or `id`.
  private static func id(_ reader: JSONReader) throws(ControlError) -> String? {
    let endpoint = try reader.string("endpoint")
    guard let id = try reader.string("id") ?? endpoint.map({ $0.lastSegment }) else { return nil }
    guard !id.isEmpty, id.utf8.count <= 200, id.utf8.allSatisfy(FCMToken.isLetter) else {
      throw reader.invalid(
        endpoint == nil ? "id" : "endpoint", "must end in letters, digits, '-', '_'")
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

  // MARK: Apps

  func makeApp(
    _ json: JSON, in state: inout EmulatorState
  ) throws(ControlError) -> (number: UInt32, made: [JSON.Member]) {
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
        throw ControlError(status: 500, code: "engine", message: "\(error)")
      }
    }
    let app = WebPushApp(
      number: state.newApp(.webpush), vapidPublicKey: publicKey, vapidPrivateKey: privateKey,
      flavor: flavor, vendorStrict: vendorStrict, receipts: receipts)
    state.webPush.add(app)
    return (
      app.number, privateKey.map { [.init(name: "vapidPrivateKey", value: .string($0))] } ?? []
    )
  }

  func changeApp(
    _ number: UInt32, _ json: JSON, in state: inout EmulatorState
  ) throws(ControlError) {
    let body = try JSONReader(json, known: ["flavor", "vendorStrict", "receipts"])
    guard var app = state.webPush.apps[number] else { return }
    app.flavor = try body.word("flavor", WebPushFlavor.self) ?? app.flavor
    app.vendorStrict = try body.bool("vendorStrict") ?? app.vendorStrict
    app.receipts = try body.bool("receipts") ?? app.receipts
    state.webPush.add(app)
    state.revision += 1
  }

  func appMembers(
    _ number: UInt32, made: [JSON.Member], in state: EmulatorState
  ) -> [JSON.Member] {
    guard let app = state.webPush.apps[number] else { return [] }
    let options = state.settings.webPush
    let members: JSON = [
      "vapidPublicKey": JSON(app.vapidPublicKey),
      "flavor": .string((app.flavor ?? options.flavor).rawValue),
      "vendorStrict": .bool(app.vendorStrict ?? options.vendorStrict),
      "receipts": .bool(app.receipts ?? options.receipts),
    ]
    return members.members ?? []
  }

  func removeApp(_ number: UInt32, from state: inout EmulatorState) {
    state.webPush.remove(app: number)
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

  /// Keys as somebody gives them: what is missing is made, where it can be.
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

extension String {
  /// What stands behind the last slash.
  var lastSegment: String { String(split(separator: "/").last ?? "") }
}
