import HTTP2

/// What WNS does with a notification for a channel, from the first check to the store.
extension EmulatorState {
  mutating func answerWNS(
    _ request: WNSRequest, channel text: String, now: Int64
  ) -> ServiceAnswer {
    var credential = Journal.Credential.none
    if request.plain["authorization"] != nil { credential = .refusedToken }
    let reply: WNSReply
    var action: StoreAction?
    let id = generator.hex(16).uppercased()
    switch check(request, channel: text, credential: &credential, now: now) {
    case .failure(let refusal): reply = refusal.reply
    case .success(let accepted): (reply, action) = take(accepted, request, id: id, now: now)
    }
    var answer = wnsAnswer(reply, to: request, id: id)
    answer.credential = credential
    answer.storeAction = action
    return answer
  }

  private struct Refusal: Error {
    let reply: WNSReply
    init(_ code: Int, _ fault: String) { reply = WNSReply(code, fault) }
  }

  private struct Accepted {
    let device: Int
    let app: UInt32
    let fields: WNSRequest.Fields
    let isBadPayload: Bool
  }

  /// Rows 1 to 10 of emulator.md, section 6, in their order.
  private func check(
    _ request: WNSRequest, channel text: String, credential: inout Journal.Credential, now: Int64
  ) -> Result<Accepted, Refusal> {
    if let refusal = form(request) { return .failure(refusal) }
    guard let bearer = request.plain.authorization("bearer"),
      let (token, isEntra) = wnsToken(bearer)
    else { return .failure(.init(401, "the access token is missing, unknown or expired")) }
    credential = .accepted(
      keyID: token.clientID, claims: [.init(name: "entra", value: .bool(isEntra))])
    guard let found = find(.wns, text, now: now) else {
      return .failure(.init(404, "the channel is unknown"))
    }
    guard found.isAlive else { return .failure(.init(410, "the channel has expired")) }
    guard token.app == devices[found.device].app else {
      return .failure(.init(403, "the access token is of another app than the channel"))
    }
    let fields: WNSRequest.Fields
    do {
      fields = try request.fields()
    } catch {
      return .failure(.init(400, error.description))
    }
    if isEntra, fields.kind == .tile || fields.kind == .badge {
      return .failure(.init(400, "a token of Entra is for toast and raw notifications only"))
    }
    let body = request.plain.body
    guard body.count <= 5000 else { return .failure(.init(413, "the payload is over 5000 bytes")) }
    guard !body.isEmpty else { return .failure(.init(400, "the payload is empty")) }
    let isBad = fields.kind != .raw && XMLOutline.root(of: body) != fields.kind.rawValue
    if isBad, settings.wns.strictXML {
      return .failure(
        .init(400, "the payload is no XML, or its root is not \(fields.kind.rawValue)"))
    }
    return .success(
      Accepted(device: found.device, app: token.app, fields: fields, isBadPayload: isBad))
  }

  /// Rows 1 and 2: method, and how the body is sent.
  private func form(_ request: WNSRequest) -> Refusal? {
    switch request.plain.method {
    case "POST": break
    case "DELETE" where request.plain["x-wns-match"] != nil: return nil
    default: return Refusal(405, "the method must be POST")
    }
    if request.plain["expect"] != nil { return Refusal(417, "Expect is not supported") }
    guard request.plain["content-length"] != nil, request.plain["transfer-encoding"] == nil else {
      return Refusal(411, "Content-Length is required, and no other transfer coding is taken")
    }
    return nil
  }

  /// Rows 11 and 12, and the store.
  private mutating func take(
    _ accepted: Accepted, _ request: WNSRequest, id: String, now: Int64
  ) -> (WNSReply, StoreAction?) {
    guard wns.appRates.take(accepted.app, rate: settings.wns.appRate, now: now) else {
      var reply = WNSReply(406, "the app sends too much")
      reply.pause = 60
      return (reply, nil)
    }
    let device = accepted.device
    let isOnline = devices.isOnline(device)
    var reply = WNSReply(200)
    reply.connection = isOnline ? .connected : .disconnected
    guard wns.channelRates.take(device, rate: settings.wns.channelRate, now: now) else {
      reply.status = "channelthrottled"
      reply.pause = 60
      return (reply, nil)
    }
    let isSilent = devices[device].registration(at: now) != .registered
    if devices[device].flags.contains(.disabled) { reply.connection = .connected }
    let action = take(
      notification(accepted, request, id: id, now: now), for: device, now: now,
      isBadPayload: accepted.isBadPayload)
    // Until the service has noticed that the app is gone, it says what it always says.
    if action == .discarded, !isSilent { reply.status = "dropped" }
    return (reply, action)
  }

  private func notification(
    _ accepted: Accepted, _ request: WNSRequest, id: String, now: Int64
  ) -> Notification {
    let fields = accepted.fields
    let kind = fields.kind
    let isQueued = kind == .tile && settings.wns.tileQueue
    let key = fields.tag.map { "\(kind.rawValue)/\($0)/\(fields.group ?? "")" }
    // Tile and badge end after three days (wns.md, section 5); so does the rest here.
    let until = now + (fields.ttl ?? 3 * 86_400) * 1000
    let shown = [
      ("x-wns-type", "wns/\(kind.rawValue)"), ("x-wns-tag", fields.tag),
      ("x-wns-group", fields.group), ("x-wns-priority", String(fields.priority)),
      ("x-wns-ttl", fields.ttl.map(String.init)),
    ]
    return Notification(
      id: .word(id), receivedAt: now,
      headers: .fields(
        .wns, shown.compactMap { name, value in value.map { .init(name: name, value: $0) } }),
      payload: request.plain.body,
      urgency: fields.priority <= 2 ? .high : fields.priority == 3 ? .normal : .low,
      collapseKey: key, storeKey: isQueued ? key : kind.rawValue,
      storableUntil: fields.isCached ? until : 0,
      shelf: Shelf(
        number: kind.shelf, limit: isQueued ? 5 : 1, overflow: .replacesOldest),
      requestSeq: lastRequest)
  }
}
