import HTTP2

/// Xiaomi Push (emulator.md, section 8).
struct XiaomiStandIn: StandIn {
  var service: PushService { .xiaomi }

  func read(_ request: HTTP2ServerRequest) -> XiaomiRequest { XiaomiRequest(request) }

  func subject(_ reading: XiaomiRequest, in state: EmulatorState) -> ServiceSubject {
    var subject = ServiceSubject(service: .xiaomi)
    subject.handle = reading.form?["registration_id"]
    let app = reading.secret.flatMap { state.xiaomi.app(secret: $0) }
    subject.app = app?.number
    // The secret itself is not for the journal.
    subject.credential = app?.packageName
    return subject
  }

  func answer(
    _ reading: XiaomiRequest, in state: inout EmulatorState, slot: Int, now: Int64
  ) -> ServiceAnswer {
    guard reading.isOfPath else {
      return ServiceAnswer(.init(status: 404), reason: "nothing there")
    }
    guard reading.plain.method == "POST" else {
      return ServiceAnswer(
        .init(status: 405, fields: HTTP2FieldList([("allow", "POST")])), reason: "method")
    }
    return state.answerXiaomi(reading, now: now)
  }

  func oversized(_ reading: XiaomiRequest, in state: inout EmulatorState) -> ServiceAnswer {
    state.xiaomiAnswer(XiaomiFault(65009, "the request is too large"))
  }

  func response(
    to fault: FaultAction.Reply, _ reading: XiaomiRequest, in state: inout EmulatorState
  ) -> (HTTP2ServerResponse, reason: String?) {
    if let body = fault.body {
      let response = HTTP2ServerResponse(status: fault.status, body: Array(body.utf8))
      return (response.with(fault.headers), fault.reason)
    }
    // Every fault of the service's own comes with status 200 and a code.
    let status = fault.status == 429 ? 200 : fault.status
    let usual = fault.status == 429 ? "10027" : nil
    guard let code = (fault.reason ?? usual).flatMap(Int.init) else {
      return (HTTP2ServerResponse(status: status).with(fault.headers), fault.reason)
    }
    var response = state.xiaomiAnswer(XiaomiFault(code, "by a fault")).response
    response.status = status
    return (response.with(fault.headers), String(code))
  }
}

extension EmulatorState {
  /// A refusal in Xiaomi's form.
  mutating func xiaomiAnswer(_ fault: XiaomiFault) -> ServiceAnswer {
    let body: JSON = [
      "result": "error", "reason": .string(fault.reason),
      "trace_id": .string("Xcm" + generator.base64URL(20)), "code": JSON(fault.code),
      "description": .string(fault.reason),
    ]
    return ServiceAnswer(.json(200, body), reason: String(fault.code))
  }

  mutating func answerXiaomi(_ request: XiaomiRequest, now: Int64) -> ServiceAnswer {
    guard let app = request.secret.flatMap({ xiaomi.app(secret: $0) }) else {
      var answer = xiaomiAnswer(XiaomiFault(21301, "the secret is not accepted"))
      if request.plain["authorization"] != nil { answer.credential = .refusedToken }
      return answer
    }
    var answer: ServiceAnswer
    do throws(XiaomiFault) {
      let message = try request.message(now: now)
      answer = try send(message, of: app, now: now)
    } catch {
      answer = xiaomiAnswer(error)
    }
    answer.credential = .accepted(keyID: app.packageName, claims: [])
    return answer
  }

  private mutating func send(
    _ message: XiaomiRequest.Message, of app: XiaomiApp, now: Int64
  ) throws(XiaomiFault) -> ServiceAnswer {
    guard message.packages.isEmpty || message.packages.contains(app.packageName) else {
      throw XiaomiFault(22022, "the package name does not belong to the app")
    }
    guard xiaomi.rates.take(app.number, rate: settings.others.xiaomiRate, now: now) else {
      throw XiaomiFault(10027, "calls come too fast")
    }
    let quota = settings.others.xiaomiDailyQuota
    guard xiaomi.count(message.ids.count, app: app.number, quota: quota, now: now) else {
      throw XiaomiFault(10034, "the day's quota is used up")
    }
    var good: [Int] = []
    var bad: [String] = []
    for id in message.ids {
      if let found = find(.xiaomi, id, now: now), found.isAlive,
        devices[found.device].app == app.number
      {
        good.append(found.device)
      } else {
        bad.append(id)
      }
    }
    if good.isEmpty, message.ids.count == 1, let fault = fault(of: bad[0], app: app, now: now) {
      return xiaomiAnswer(fault)
    }
    let id = "scm" + generator.base64URL(20)
    var data: [JSON.Member] = [.init(name: "id", value: .string(id))]
    if !bad.isEmpty {
      data.append(.init(name: "bad_regids", value: .string(bad.joined(separator: ","))))
    }
    var answer = ServiceAnswer(
      .json(
        200,
        [
          "result": "ok", "trace_id": .string("Xcm" + generator.base64URL(20)), "code": 0,
          "data": .object(data), "description": "success",
          "info": .string("Received push messages for \(message.ids.count) REGID"),
        ]))
    let notification = notification(message, id: id, now: now)
    for device in good { answer.storeAction = take(notification, for: device, now: now) }
    return answer
  }

  /// How one id alone is refused: an unknown one and one that was offline for too long by a code, an
  /// app that is gone in `bad_regids` of a success.
  private func fault(of id: String, app: XiaomiApp, now: Int64) -> XiaomiFault? {
    guard let found = find(.xiaomi, id, now: now), devices[found.device].app == app.number else {
      return XiaomiFault(10029, "the registration id is not valid")
    }
    if case .expired = found.registration {
      return XiaomiFault(66108, "the registration id has expired")
    }
    return nil
  }

  private func notification(
    _ message: XiaomiRequest.Message, id: String, now: Int64
  ) -> Notification {
    let isLater = now < message.notBefore
    return Notification(
      id: .word(id), receivedAt: now,
      headers: .fields(.xiaomi, message.fields.map { .init(name: $0.name, value: $0.value) }),
      payload: Array(message.payload.utf8), urgency: .high, collapseKey: message.key,
      // What has its own time is replaced when it is shown, not before.
      storeKey: isLater ? .some(nil) : .none,
      storableUntil: max(now, message.notBefore) + message.lifetime,
      notBefore: isLater ? message.notBefore : 0, shelf: .wide, requestSeq: lastRequest)
  }
}
