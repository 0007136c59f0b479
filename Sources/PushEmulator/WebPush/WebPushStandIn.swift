import Cryptography
import HTTP2
import Wire

extension EmulatorListener {
  /// HTTP/2.
  package static let webPush = Self(.webpush, "http2", port: 9470)
  /// The same over HTTP/1.1.
  package static let webPushHTTP1 = Self(.webpush, port: 9471)
}

/// The strictness of the Web Push stand-in, and the vendor that it imitates
/// (docs/protocol/emulator.md, section 7).
package struct WebPushOptions: Sendable {
  /// The default source of error bodies and codes, where the app specifies none.
  package var flavor = WebPushFlavor.rfc
  /// Whether `sub` is required and must not contain blanks, as Apple and Mozilla demand.
  package var vendorStrict = false
  /// Whether `Prefer: respond-async` gets a receipt.
  package var receipts = false
  /// Maximum time for which a message is kept, in seconds.
  package var ttlCap: Int64 = 2_419_200
  /// Messages per second and subscription; `nil` switches the limit off.
  package var perSubscriptionRate: Double?
  /// Origins that `aud` may name in addition to the stand-in's own.
  package var audiences: [String] = []

  package init() {}
}

/// The source of the error bodies and codes of the stand-in
/// (docs/protocol/push-services/web-push.md, section 5).
package enum WebPushFlavor: String, CaseIterable, Sendable, Codable {
  case rfc, mozilla, google, apple
}

/// A browser vendor's Web Push service (docs/protocol/emulator.md, section 7). The emulator's lock
/// guards its state; see `StandIn`.
final class WebPushStandIn: NamedStandIn, @unchecked Sendable {
  static let service = PushService.webpush
  static let listeners: [EmulatorListener] = [.webPush, .webPushHTTP1]
  static let stateKey = "webPush"
  static let handleMembers = ["endpoint", "endpointHTTP1", "id", "p256dh", "auth", "privateKey"]

  let options: WebPushOptions
  private let acceptsAnyCredential: Bool
  private let serviceName = ServiceName(.webpush)
  var apps = AppTable<App>()
  /// Verified tokens with their claims, cached because nearly every request has the same.
  private var verified: [String: VAPIDToken] = [:]

  init(_ options: EmulatorOptions) {
    self.options = options.webPush
    acceptsAnyCredential = options.acceptsAnyCredential
  }

  // MARK: Requests

  struct Reading: Sendable {
    enum Path: Sendable, Equatable {
      case subscription(String)
      case message(String)
      case other
    }

    /// A header field that has a form.
    enum Field<Value: Sendable & Equatable>: Sendable, Equatable {
      case absent
      case malformed
      case value(Value)

      var value: Value? { if case .value(let value) = self { value } else { nil } }
    }

    var path = Path.other
    /// The service's host that the request was for; `nil` for the stand-in's own address.
    var host: String?
    var method = ""
    var authorization: String?
    /// Seconds.
    var ttl = Field<Int64>.absent
    var urgency = Field<Urgency>.absent
    var topic = Field<String>.absent
    var encoding: String?
    var wantsReceipt = false
    var body: [UInt8] = []
  }

  func read(_ request: HTTP2ServerRequest) -> Reading {
    var reading = Reading()
    reading.host = request.publicHost?.name
    reading.path = Self.path(request.path, at: reading.host)
    reading.method = request.method
    reading.authorization = request.fields.first("authorization")
    reading.body = request.body
    reading.encoding = request.fields.first("content-encoding")
    reading.wantsReceipt = request.fields.indices(of: "prefer").contains { index in
      String(decoding: request.fields.value(at: index), as: UTF8.self).lowercased()
        .split(separator: ",").contains { $0.trimmed == "respond-async" }
    }
    reading.ttl = Self.field("ttl", request, Self.seconds)
    reading.urgency = Self.field("urgency", request) { Urgency(word: $0) }
    reading.topic = Self.field("topic", request) { text in
      (1...32).contains(text.utf8.count) && text.utf8.allSatisfy(\.isBase64URL)
        ? text : nil
    }
    return reading
  }

  /// The starts of the paths of Google's subscriptions.
  static let googlePaths = ["/fcm/send/", "/wp/"]

  private static let mozillaPaths = ["/wpush/v1/", "/wpush/v2/"]

  /// - Parameter host: ``Reading/host``.
  private static func path(_ text: String, at host: String?) -> Reading.Path {
    let path = text.prefix { $0 != "?" }
    func id(after start: String) -> String? {
      let id = path.dropFirst(start.utf8.count)
      return path.hasPrefix(start) && !id.isEmpty && !id.contains("/") ? String(id) : nil
    }
    if let message = id(after: "/m/") { return .message(message) }
    let starts: [String] =
      switch host {
      case nil: googlePaths + mozillaPaths
      case WebPushFlavor.google.publicHost: googlePaths
      case WebPushFlavor.mozilla.publicHost: mozillaPaths
      // Apple's subscriptions have nothing before the id.
      case WebPushFlavor.apple.publicHost: ["/"]
      default: []
      }
    return starts.lazy.compactMap { id(after: $0) }.first.map(Reading.Path.subscription) ?? .other
  }

  private static func field<Value>(
    _ name: String, _ request: HTTP2ServerRequest, _ read: (String) -> Value?
  ) -> Reading.Field<Value> {
    let places = request.fields.indices(of: name)
    guard let place = places.first else { return .absent }
    guard places.count == 1,
      let value = read(String(decoding: request.fields.value(at: place), as: UTF8.self))
    else { return .malformed }
    return .value(value)
  }

  /// Parses digits of any length; values beyond a century become a century.
  private static func seconds(_ text: String) -> Int64? {
    guard !text.isEmpty, text.utf8.count <= 100,
      text.utf8.allSatisfy(\.isDigit)
    else { return nil }
    return min(Int64(text) ?? .max, 3_155_760_000)
  }

  func subject(
    _ reading: Reading, slot: Int, forFaults: Bool, in state: EmulatorState
  ) -> ServiceSubject {
    var subject = ServiceSubject(name: serviceName)
    if case .subscription(let id) = reading.path {
      subject.handle = id
      subject.app = app(ofHandle: id, in: state)
    }
    if !acceptsAnyCredential {
      subject.credential = reading.authorization.flatMap { VAPIDHeader($0)?.key }
    }
    return subject
  }

  func answer(
    _ reading: Reading, slot: Int, now: Int64, in state: inout EmulatorState
  ) -> ServiceAnswer {
    do throws(WebPushRefusal) {
      switch reading.path {
      case .subscription(let id): return try take(reading, to: id, now: now, in: &state)
      case .message(let id):
        guard reading.method == "DELETE" else { throw .methodNotAllowed }
        try withdraw(id, in: &state)
        return ServiceAnswer(.init(status: 204))
      case .other: throw .unknownSubscription
      }
    } catch {
      var answer = ServiceAnswer(error.response(flavor(reading, in: state)), reason: error.rawValue)
      if reading.authorization != nil { answer.credential = .refusedToken }
      return answer
    }
  }

  func oversized(
    _ reading: Reading, slot: Int, now: Int64, in state: inout EmulatorState
  ) -> ServiceAnswer {
    let refusal = WebPushRefusal.tooLarge
    return ServiceAnswer(refusal.response(flavor(reading, in: state)), reason: refusal.rawValue)
  }

  func response(
    to fault: FaultAction.Reply, _ reading: Reading, in state: inout EmulatorState
  ) -> (HTTP2ServerResponse, reason: String?) {
    if fault.status < 400 { return (HTTP2ServerResponse(status: fault.status), fault.reason) }
    let refusal = WebPushRefusal(usualFor: fault.status)
    let response = refusal.response(
      flavor(reading, in: state), status: fault.status, reason: fault.reason)
    return (response, fault.reason ?? refusal.rawValue)
  }

  /// The vendor whose wording a reply uses.
  private func flavor(_ reading: Reading, in state: EmulatorState) -> WebPushFlavor {
    guard case .subscription(let id) = reading.path, let app = app(ofHandle: id, in: state) else {
      return options.flavor
    }
    return apps[app]?.flavor ?? options.flavor
  }

  /// Handles a message, from the first check to the store (docs/protocol/emulator.md, section 7).
  private func take(
    _ reading: Reading, to id: String, now: Int64, in state: inout EmulatorState
  ) throws(WebPushRefusal) -> ServiceAnswer {
    guard reading.method == "POST" else { throw .methodNotAllowed }
    guard let found = state.find(.webpush, id, now: now) else { throw .unknownSubscription }
    let device = found.device
    // A user who has turned notifications off has withdrawn the permission, and the subscription
    // with it.
    guard found.isAlive, !state.devices[device].flags.contains(.disabled) else { throw .gone }
    guard let app = apps[state.devices[device].app] else { throw .unknownSubscription }
    let token = try authorize(reading, app: app, now: now, in: state)
    let ttl = try fields(reading)
    try checkBody(reading, vapidKey: token?.key)
    if let rate = options.perSubscriptionRate,
      !state.devices.withLog(
        of: device, { $0.rate.take(rate: rate, burst: max(1, rate), now: now) })
    {
      throw .tooManyRequests
    }
    // Contains the device's index, so that a message is found without a table of all.
    let message = String(device, radix: 16) + "-" + state.generator.base64URL(32)
    let notification = notification(
      reading, id: message, keys: found.handle.keys, ttl: ttl, now: now, seq: state.lastRequest)
    let action = state.take(notification, for: device, now: now)
    var fields = [("location", "/m/" + message), ("ttl", String(ttl))]
    let receipts = reading.wantsReceipt && (app.receipts ?? options.receipts)
    if receipts {
      fields.append(("link", "</r/\(message)>; rel=\"urn:ietf:params:push:receipt\""))
    }
    var answer = ServiceAnswer(.init(status: receipts ? 202 : 201, fields: .init(fields)))
    answer.storeAction = action
    if token != nil, acceptsAnyCredential {
      answer.credential = .accepted(keyID: AnyCredential.name)
    } else if let token {
      answer.credential = .accepted(
        keyID: Base64URL.encode(token.key),
        claims: [
          "aud": JSONValue(token.audience), "exp": JSONValue(token.expiresAt),
          "sub": JSONValue(token.subject),
        ])
    }
    return answer
  }

  // MARK: Checks

  /// Maximum number of remembered tokens; beyond it all are verified again.
  private static let verifiedLimit = 1000

  private func verifiedToken(_ header: VAPIDHeader) -> VAPIDToken? {
    let name = header.token + "." + header.key
    if let known = verified[name] { return known }
    guard let token = VAPIDToken(header) else { return nil }
    if acceptsAnyCredential { return token }
    if verified.count >= Self.verifiedLimit { verified = [:] }
    verified[name] = token
    return token
  }

  /// Authenticates the sender by VAPID.
  ///
  /// - Returns: The sender's token; `nil` for a subscription that accepts any sender.
  private func authorize(
    _ reading: Reading, app: App, now: Int64, in state: EmulatorState
  ) throws(WebPushRefusal) -> VAPIDToken? {
    guard let field = reading.authorization, VAPIDHeader.isVAPID(field) else {
      if app.vapidPublicKey == nil { return nil }
      throw .missingAuthorization
    }
    guard let header = VAPIDHeader(field), let token = verifiedToken(header) else {
      throw .invalidAuthorization
    }
    if let key = app.vapidPublicKey, Base64URL.decode(key) != token.key, !acceptsAnyCredential {
      throw .keyMismatch
    }
    let audience = token.audience ?? ""
    let seconds = now / 1000
    // The origin of the endpoint (RFC 8292, section 2): another vendor's would be refused.
    let isMeant =
      reading.host.map { audience == "https://" + $0 }
      ?? state.addresses.isOwn(audience, of: .webpush)
    guard isMeant || options.audiences.contains(audience),
      let expires = token.expiresAt, expires > seconds, expires <= seconds + 86_400,
      isContact(token.subject, strict: app.vendorStrict ?? options.vendorStrict)
    else { throw .invalidAuthorization }
    return token
  }

  private func isContact(_ subject: String?, strict: Bool) -> Bool {
    guard let subject else { return !strict }
    guard subject.hasPrefix("mailto:") || subject.hasPrefix("https:") else { return false }
    return !strict
      || !(subject.contains(" ") || subject.contains("<") || subject.contains(">")
        || subject.contains("localhost"))
  }

  /// Checks the fields `TTL`, `Urgency` and `Topic`.
  ///
  /// - Returns: The granted seconds.
  private func fields(_ reading: Reading) throws(WebPushRefusal) -> Int64 {
    switch reading.ttl {
    case .absent: throw .ttlMissing
    case .malformed: throw .ttlInvalid
    case .value: break
    }
    if reading.urgency == .malformed { throw .urgencyInvalid }
    if reading.topic == .malformed { throw .topicInvalid }
    return min(reading.ttl.value ?? 0, options.ttlCap)
  }

  /// Checks the body: its size and its encryption.
  private func checkBody(
    _ reading: Reading, vapidKey: [UInt8]?
  ) throws(WebPushRefusal) {
    if reading.body.count > 4096 { throw .tooLarge }
    if reading.body.isEmpty { return }
    guard reading.encoding?.lowercased() == "aes128gcm",
      let sender = WebPushDecryption.senderKey(of: reading.body), sender != vapidKey,
      (try? P256PublicKey(point: sender)) != nil
    else { throw .encodingInvalid }
  }

  // MARK: Store and forward

  private func notification(
    _ reading: Reading, id: String, keys: SubscriptionKeys?, ttl: Int64, now: Int64,
    seq: Int
  ) -> Notification {
    var fields: [Notification.Field] = [
      .init(name: "ttl", value: String(ttl)),
      .init(name: "urgency", value: (reading.urgency.value ?? .normal).word),
    ]
    if let topic = reading.topic.value { fields.append(.init(name: "topic", value: topic)) }
    if let encoding = reading.encoding {
      fields.append(.init(name: "content-encoding", value: encoding))
    }
    let (payload, decryption) = Self.open(reading.body, keys: keys)
    return Notification(
      id: .word(id), receivedAt: now, headers: .fields(.webpush, fields), payload: payload,
      decryption: decryption, urgency: reading.urgency.value ?? .normal, collapseKey: nil,
      storeKey: .some(reading.topic.value), storableUntil: ttl > 0 ? now + ttl * 1000 : 0,
      shelf: Shelf(number: 0, limit: 100, overflow: .dropsOldest), requestSeq: seq)
  }

  /// Decrypts as the browser would, if the device's private key is known.
  private static func open(
    _ body: [UInt8], keys: SubscriptionKeys?
  ) -> ([UInt8], Notification.Decryption) {
    guard !body.isEmpty, let keys, let privateKey = keys.privateKey,
      let scalar = Base64URL.decode(privateKey), let secret = Base64URL.decode(keys.auth)
    else { return (body, .none) }
    do {
      let key = try P256PrivateKey(scalar: scalar)
      return (try WebPushDecryption.open(body, key: key, secret: secret), .succeeded)
    } catch {
      return (body, .failed(reason: "\(error)"))
    }
  }

  /// `DELETE /m/{id}`: removes a waiting message from the store.
  private func withdraw(_ id: String, in state: inout EmulatorState) throws(WebPushRefusal) {
    let message = MessageID.word(id)
    guard let text = id.split(separator: "-").first, let device = Int(text, radix: 16),
      state.devices.devices.indices.contains(device),
      state.devices.log(of: device)?.waiting.contains(where: { $0.notification.id == message })
        == true
    else { throw .unknownMessage }
    state.devices.removeWaiting([message], from: device)
    state.revision += 1
  }
}

/// The parameters of `Authorization: vapid t=…, k=…` (RFC 8292, section 3).
struct VAPIDHeader: Sendable, Equatable {
  let token: String
  let key: String

  /// Whether the field has the scheme `vapid`, in any case.
  static func isVAPID(_ field: String) -> Bool {
    let scheme = field.prefix { $0 != " " && $0 != "\t" }
    return scheme.lowercased() == "vapid"
  }

  /// Parses the parameters in any order; `nil` when one is missing or duplicate.
  init?(_ field: String) {
    guard Self.isVAPID(field) else { return nil }
    var values: [String: String] = [:]
    for part in field.dropFirst(5).split(separator: ",") {
      let text = part.trimmed
      guard let equals = text.firstIndex(of: "=") else { return nil }
      let name = text[..<equals].lowercased()
      let value = text[text.index(after: equals)...]
      let plain =
        value.hasPrefix("\"") && value.hasSuffix("\"") && value.count >= 2
        ? value.dropFirst().dropLast() : value
      guard values.updateValue(String(plain), forKey: name) == nil else { return nil }
    }
    guard let token = values["t"], let key = values["k"] else { return nil }
    (self.token, self.key) = (token, key)
  }
}

/// A VAPID token whose signature has been verified.
struct VAPIDToken: Sendable {
  let audience: String?
  /// Unix seconds.
  let expiresAt: Int64?
  let subject: String?
  /// The uncompressed point, 65 bytes.
  let key: [UInt8]

  /// - Returns: `nil` unless `k` is a point of P-256 and the token an ES256 one signed with it.
  init?(_ header: VAPIDHeader) {
    // Far longer than any real token; anything longer is not decoded.
    guard header.token.utf8.count <= 4096, let point = Base64URL.decode(header.key),
      let key = try? P256PublicKey(point: point),
      let token = try? CompactJWS(header.token), token.verifies(with: key)
    else { return nil }
    self.key = point
    audience = token.claims.string("aud")
    expiresAt = token.claims.integer("exp")
    // A member of another type is not a contact.
    subject = token.claims.contains("sub") ? token.claims.string("sub") ?? "" : nil
  }
}
