import Cryptography
import HTTP2
import Wire

/// What a Web Push service does with a request, from the first check to the store
/// (emulator.md, section 7).
extension EmulatorState {
  /// Whose words the answer to a request uses.
  func flavor(_ reading: WebPushStandIn.Reading) -> WebPushFlavor {
    guard case .subscription(let id) = reading.path,
      let device = handles.device(.webpush, id),
      let flavor = webPush.apps[devices[device].app]?.flavor
    else { return settings.webPush.flavor }
    return flavor
  }

  mutating func webPush(
    _ reading: WebPushStandIn.Reading, to id: String, now: Int64
  ) throws(WebPushRefusal) -> ServiceAnswer {
    guard reading.method == "POST" else { throw .methodNotAllowed }
    guard let found = find(.webpush, id, now: now) else { throw .unknownSubscription }
    let device = found.device
    // A user who turned notifications off has withdrawn the permission, and the subscription with it.
    guard found.isAlive, !devices[device].flags.contains(.disabled) else { throw .gone }
    guard let app = webPush.apps[devices[device].app] else { throw .unknownSubscription }
    let token = try authorize(reading, app: app, now: now)
    let ttl = try fields(reading)
    try checkBody(reading, vapidKey: token?.key)
    if let rate = settings.webPush.perSubscriptionRate,
      !devices.withLog(of: device, { $0.rate.take(rate: rate, burst: max(1, rate), now: now) })
    {
      throw .tooManyRequests
    }
    let message = webPushMessageID(device: device)
    let notification = notification(
      reading, id: message, keys: found.handle.keys, ttl: ttl, now: now)
    let action = take(notification, for: device, now: now)
    var fields = [("location", "/m/" + message), ("ttl", String(ttl))]
    let receipts = reading.wantsReceipt && (app.receipts ?? settings.webPush.receipts)
    if receipts {
      fields.append(("link", "</r/\(message)>; rel=\"urn:ietf:params:push:receipt\""))
    }
    var answer = ServiceAnswer(
      .init(status: receipts ? 202 : 201, fields: .init(fields)))
    answer.storeAction = action
    if let token { answer.credential = Self.credential(token) }
    return answer
  }

  private static func credential(_ token: VAPIDToken) -> Journal.Credential {
    .accepted(
      keyID: Base64URL.encode(token.key),
      claims: [
        .init(name: "aud", value: JSON(token.audience)),
        .init(name: "exp", value: JSON(optional: token.expiresAt)),
        .init(name: "sub", value: JSON(token.subject)),
      ])
  }

  // MARK: Checks

  /// Checks 3 and 4: VAPID.
  ///
  /// - Returns: What the sender showed; `nil` for a subscription that anybody may send to.
  private mutating func authorize(
    _ reading: WebPushStandIn.Reading, app: WebPushApp, now: Int64
  ) throws(WebPushRefusal) -> VAPIDToken? {
    guard let field = reading.authorization, VAPIDHeader.isVAPID(field) else {
      if app.vapidPublicKey == nil { return nil }
      throw .missingAuthorization
    }
    guard let header = VAPIDHeader(field), let token = webPush.verifiedToken(header) else {
      throw .invalidAuthorization
    }
    if let key = app.vapidPublicKey, Base64URL.decode(key) != token.key { throw .keyMismatch }
    let audience = token.audience ?? ""
    let seconds = now / 1000
    guard origins.isOwn(audience, of: .webpush) || settings.webPush.audiences.contains(audience),
      let expires = token.expiresAt, expires > seconds, expires <= seconds + 86_400,
      isContact(token.subject, strict: app.vendorStrict ?? settings.webPush.vendorStrict)
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

  /// Checks 5 to 7.
  ///
  /// - Returns: The seconds that are granted.
  private func fields(_ reading: WebPushStandIn.Reading) throws(WebPushRefusal) -> Int64 {
    switch reading.ttl {
    case .absent: throw .ttlMissing
    case .malformed: throw .ttlInvalid
    case .value: break
    }
    if reading.urgency == .malformed { throw .urgencyInvalid }
    if reading.topic == .malformed { throw .topicInvalid }
    return min(reading.ttl.value ?? 0, settings.webPush.ttlCap)
  }

  /// Checks 8 and 9.
  private func checkBody(
    _ reading: WebPushStandIn.Reading, vapidKey: [UInt8]?
  ) throws(WebPushRefusal) {
    if reading.body.count > 4096 { throw .tooLarge }
    if reading.body.isEmpty { return }
    guard reading.encoding?.lowercased() == "aes128gcm",
      let sender = WebPushDecryption.senderKey(of: reading.body), sender != vapidKey,
      (try? P256PublicKey(point: sender)) != nil
    else { throw .encodingInvalid }
  }

  // MARK: Store and forward

  /// Names the device, so that a message is found again without a table of all.
  private mutating func webPushMessageID(device: Int) -> String {
    String(device, radix: 16) + "-" + generator.base64URL(32)
  }

  private func notification(
    _ reading: WebPushStandIn.Reading, id: String, keys: SubscriptionKeys?, ttl: Int64, now: Int64
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
      shelf: Shelf(number: 0, limit: 100, overflow: .dropsOldest), requestSeq: lastRequest)
  }

  /// Decrypts as the browser would, where the device's private key is known.
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

  /// `DELETE /m/{id}`: takes a waiting message out of the store.
  mutating func withdrawWebPush(_ id: String) throws(WebPushRefusal) {
    let message = MessageID.word(id)
    guard let text = id.split(separator: "-").first, let device = Int(text, radix: 16),
      device >= 0, device < devices.count,
      devices.log(of: device)?.waiting.contains(where: { $0.notification.id == message }) == true
    else { throw .unknownMessage }
    devices.removeWaiting([message], from: device)
    revision += 1
  }
}
