import HTTP2

/// Baidu Cloud Push, both of its APIs (emulator.md, section 8).
struct BaiduStandIn: StandIn {
  var service: PushService { .baidu }

  func read(_ request: HTTP2ServerRequest) -> BaiduRequest { BaiduRequest(request) }

  func subject(_ reading: BaiduRequest, in state: EmulatorState) -> ServiceSubject {
    var subject = ServiceSubject(service: .baidu)
    subject.handle = reading.form?["channel_id"]
    subject.app = subject.handle.flatMap { state.handles.device(.baidu, $0) }
      .map { state.devices[$0].app }
    subject.credential = reading.form?["apikey"]
    return subject
  }

  func answer(
    _ reading: BaiduRequest, in state: inout EmulatorState, slot: Int, now: Int64
  ) -> ServiceAnswer {
    state.answerBaidu(reading, now: now)
  }

  func oversized(_ reading: BaiduRequest, in state: inout EmulatorState) -> ServiceAnswer {
    state.baiduAnswer(.parameter("the request is too large"))
  }

  func response(
    to fault: FaultAction.Reply, _ reading: BaiduRequest, in state: inout EmulatorState
  ) -> (HTTP2ServerResponse, reason: String?) {
    if let body = fault.body {
      let response = HTTP2ServerResponse(status: fault.status, body: Array(body.utf8))
      return (response.with(fault.headers), fault.reason)
    }
    let usual = fault.status == 429 ? 30699 : fault.status >= 500 ? 30600 : 30602
    let code = fault.reason.flatMap(Int.init) ?? usual
    let answer = state.baiduAnswer(BaiduFault(code, fault.reason ?? "by a fault"))
    var response = answer.response
    response.status = fault.status
    return (response.with(fault.headers), String(code))
  }
}

extension EmulatorState {
  /// A refusal in Baidu's form.
  mutating func baiduAnswer(_ fault: BaiduFault) -> ServiceAnswer {
    let body: JSON = [
      "request_id": JSON(requestID()), "error_code": JSON(fault.code),
      "error_msg": .string(fault.message),
    ]
    return ServiceAnswer(.json(fault.status, body), reason: String(fault.code))
  }

  private mutating func requestID() -> Int { Int(generator.next() >> 34) }

  mutating func answerBaidu(_ request: BaiduRequest, now: Int64) -> ServiceAnswer {
    var answer: ServiceAnswer
    var credential = request.form?["apikey"] == nil ? Journal.Credential.none : .refusedToken
    do throws(BaiduFault) {
      let form = try request.parameters()
      let app = try identify(request, form, now: now)
      credential = .accepted(keyID: app.apiKey, claims: [])
      let message = try request.message(form)
      let device = try channel(message, of: app.number, now: now)
      guard baidu.rates.take(app.number, rate: settings.others.baiduRate, now: now) else {
        throw BaiduFault(30699, "Requests Too Frequent")
      }
      let id = generator.digits(18)
      answer = ServiceAnswer(.json(200, accepted(id, request, now: now)))
      answer.storeAction = take(
        notification(message, id: id, now: now), for: device, now: now)
    } catch {
      answer = baiduAnswer(error)
    }
    answer.credential = credential
    return answer
  }

  /// Who sends: key, signature, then time.
  private func identify(
    _ request: BaiduRequest, _ form: FormFields, now: Int64
  ) throws(BaiduFault) -> BaiduApp {
    guard let key = form["apikey"], let sign = form["sign"] else {
      throw .parameter("apikey or sign is missing")
    }
    guard
      let timestamp = form["timestamp"].flatMap({ APNsRequest.decimal(Array($0.utf8)[...]) })
    else { throw .parameter("timestamp must be Unix seconds") }
    guard let app = baidu.app(key: key), request.signature(secret: app.secretKey) == sign else {
      throw BaiduFault(30603, "Authentication Failed")
    }
    let seconds = now / 1000
    var isTimely = timestamp.subtractingReportingOverflow(seconds).partialValue.magnitude <= 600
    if let text = form["expires"] {
      guard let expires = APNsRequest.decimal(Array(text.utf8)[...]) else {
        throw .parameter("expires must be Unix seconds")
      }
      isTimely = expires >= seconds
    }
    guard isTimely else { throw BaiduFault(30606, "Request Expired") }
    return app
  }

  private func channel(
    _ message: BaiduRequest.Message, of app: UInt32, now: Int64
  ) throws(BaiduFault) -> Int {
    guard let found = find(.baidu, message.channel, now: now), devices[found.device].app == app,
      message.user == nil || message.user == found.handle.user
    else { throw BaiduFault(30608, "Bind Relation Not Found") }
    if found.isAlive { return found.device }
    if case .expired = found.registration { throw BaiduFault(30607, "Channel Token Timeout") }
    throw BaiduFault(30608, "Bind Relation Not Found")
  }

  private mutating func accepted(_ id: String, _ request: BaiduRequest, now: Int64) -> JSON {
    let parameters: JSON =
      request.version == .two
      ? ["success_amount": 1, "msgids": [.string(id)]]
      : ["msg_id": .string(id), "send_time": .int(now / 1000)]
    return ["request_id": JSON(requestID()), "response_params": parameters]
  }

  private func notification(
    _ message: BaiduRequest.Message, id: String, now: Int64
  ) -> Notification {
    Notification(
      id: .word(id), receivedAt: now,
      headers: .fields(
        .baidu,
        [
          .init(name: "message_type", value: message.isNotification ? "1" : "0"),
          .init(name: "msg_keys", value: message.key ?? ""),
        ]), payload: Array(message.payload.utf8), urgency: .high, collapseKey: message.key,
      storableUntil: message.lifetime == 0 ? 0 : now + message.lifetime * 1000, shelf: .wide,
      requestSeq: lastRequest)
  }
}
