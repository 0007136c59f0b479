import HTTP2

/// WNS and both of its token services (emulator.md, section 6).
struct WNSStandIn: StandIn {
  var service: PushService { .wns }

  func read(_ request: HTTP2ServerRequest) -> WNSRequest { WNSRequest(request) }

  func subject(_ reading: WNSRequest, in state: EmulatorState) -> ServiceSubject {
    guard case .channel(let text) = reading.target else {
      let client = reading.plain.form?["client_id"]
      return ServiceSubject(service: .wnsToken, credential: client)
    }
    var subject = ServiceSubject(service: .wns, handle: text)
    subject.app = state.handles.device(.wns, text).map { state.devices[$0].app }
    let token = reading.plain.authorization("bearer")
    subject.credential = token.flatMap { state.wnsToken($0)?.token.clientID }
    return subject
  }

  func answer(
    _ reading: WNSRequest, in state: inout EmulatorState, slot: Int, now: Int64
  ) -> ServiceAnswer {
    switch reading.target {
    case .liveToken: state.answerWNSToken(reading.plain, tenant: nil, now: now)
    case .entraToken(let tenant): state.answerWNSToken(reading.plain, tenant: tenant, now: now)
    case .channel(let text): state.answerWNS(reading, channel: text, now: now)
    }
  }

  func oversized(_ reading: WNSRequest, in state: inout EmulatorState) -> ServiceAnswer {
    guard case .channel = reading.target else {
      return ServiceAnswer(.init(status: 413), reason: "too large")
    }
    return state.wnsAnswer(WNSReply(413, "the request is too large"), to: reading)
  }

  func response(
    to fault: FaultAction.Reply, _ reading: WNSRequest, in state: inout EmulatorState
  ) -> (HTTP2ServerResponse, reason: String?) {
    if let body = fault.body {
      let response = HTTP2ServerResponse(
        status: fault.status, fields: HTTP2FieldList(), body: Array(body.utf8))
      return (response.with(fault.headers), fault.reason)
    }
    guard case .channel = reading.target else {
      let refusal = TokenRefusal(fault: fault.status, reason: fault.reason)
      return (refusal.response.with(fault.headers), refusal.error)
    }
    // What other services say with 429, WNS says with 406.
    let status = fault.status == 429 ? 406 : fault.status
    var reply = WNSReply(status, status == 200 ? nil : fault.reason ?? "by a fault")
    if status == 200, let word = fault.reason { reply.status = word }
    let answer = state.wnsAnswer(reply, to: reading)
    return (answer.response.with(fault.headers), answer.reason)
  }
}

/// What WNS answers, before it is written out (wns.md, section 4).
struct WNSReply: Sendable {
  enum Connection: String { case connected, disconnected }

  let code: Int
  /// `X-WNS-Status`.
  var status: String
  /// `X-WNS-Error-Description`.
  let fault: String?
  /// `X-WNS-DeviceConnectionStatus`, where the device is known.
  var connection: Connection?
  /// In seconds: `Retry-After`, or `X-WNS-CONTINUE-AFTER` of a channel.
  var pause: Int64?

  /// - Parameter fault: `nil` for what is no fault.
  init(_ code: Int, _ fault: String? = nil) {
    self.code = code
    self.fault = fault
    status = code == 200 ? "received" : "dropped"
  }
}

extension EmulatorState {
  /// An access token of either kind.
  func wnsToken(_ text: String) -> (token: AccessTokens.Token, isEntra: Bool)? {
    let now = clock.now
    if let token = wns.liveTokens.token(text, now: now) { return (token, false) }
    return wns.entraTokens.token(text, now: now).map { ($0, true) }
  }

  /// The answer with the fields that every answer of WNS has.
  /// - Parameter id: The message's; made where there is none.
  mutating func wnsAnswer(
    _ reply: WNSReply, to request: WNSRequest, id: String? = nil
  ) -> ServiceAnswer {
    var fields: [(name: String, value: String)] = [
      ("x-wns-msg-id", id ?? generator.hex(16).uppercased()),
      ("x-wns-debug-trace", "EMULATOR-\(lastRequest)"),
      ("ms-cv", request.plain["ms-cv"] ?? generator.base64URL(16) + ".0"),
      ("x-wns-status", reply.status),
    ]
    if request.wantsStatus, let connection = reply.connection {
      fields.append(("x-wns-deviceconnectionstatus", connection.rawValue))
    }
    if let fault = reply.fault { fields.append(("x-wns-error-description", fault)) }
    if let pause = reply.pause {
      fields.append((reply.code == 200 ? "x-wns-continue-after" : "retry-after", String(pause)))
    }
    if reply.code == 401 {
      fields.append(("www-authenticate", #"Bearer error="invalid_token""#))
    }
    let isPlain = reply.code == 200 && reply.status == "received"
    return ServiceAnswer(
      .init(status: reply.code, fields: HTTP2FieldList(fields)),
      reason: isPlain ? nil : reply.fault ?? reply.status)
  }
}
