import HTTP2

/// ADM and its token service (emulator.md, section 8).
struct ADMStandIn: StandIn {
  var service: PushService { .adm }

  func read(_ request: HTTP2ServerRequest) -> ADMRequest { ADMRequest(request) }

  func subject(_ reading: ADMRequest, in state: EmulatorState) -> ServiceSubject {
    var subject = ServiceSubject(service: .adm)
    if case .message(let id) = reading.target {
      subject.handle = id
      subject.app = state.handles.device(.adm, id).map { state.devices[$0].app }
    }
    let token = reading.plain.authorization("bearer")
    subject.credential =
      token.flatMap { state.adm.tokens.token($0, now: state.clock.now)?.clientID }
      ?? reading.plain.form?["client_id"]
    return subject
  }

  func answer(
    _ reading: ADMRequest, in state: inout EmulatorState, slot: Int, now: Int64
  ) -> ServiceAnswer {
    guard reading.target != .nothing else {
      return ServiceAnswer(.init(status: 404), reason: "nothing there")
    }
    guard reading.plain.method == "POST" else {
      return ServiceAnswer(
        .init(status: 405, fields: HTTP2FieldList([("allow", "POST")])), reason: "method")
    }
    if case .message(let id) = reading.target {
      return state.answerADM(reading, to: id, now: now)
    }
    return state.answerADMToken(reading.plain, now: now)
  }

  func oversized(_ reading: ADMRequest, in state: inout EmulatorState) -> ServiceAnswer {
    state.admAnswer(.messageTooLarge)
  }

  func response(
    to fault: FaultAction.Reply, _ reading: ADMRequest, in state: inout EmulatorState
  ) -> (HTTP2ServerResponse, reason: String?) {
    if let body = fault.body {
      let response = HTTP2ServerResponse(status: fault.status, body: Array(body.utf8))
      return (response.with(fault.headers), fault.reason)
    }
    if reading.target == .token {
      let refusal = TokenRefusal(fault: fault.status, reason: fault.reason)
      return (refusal.response.with(fault.headers), refusal.error)
    }
    let reason = fault.reason ?? ADMReason.usual(for: fault.status)?.rawValue
    let body: JSON = reason.map { ["reason": .string($0)] } ?? .object([])
    return (.json(fault.status, body).with(fault.headers), reason)
  }
}

extension EmulatorState {
  private static let scope = "messaging:push"

  mutating func answerADMToken(_ request: PlainRequest, now: Int64) -> ServiceAnswer {
    do throws(TokenRefusal) {
      let wanted = try ClientCredentials(request)
      guard let app = adm.app(client: wanted.clientID), app.clientSecret == wanted.secret else {
        throw .invalidClient(401)
      }
      guard wanted.scope == Self.scope else { throw .invalidScope }
      let lifetime = settings.others.admTokenLifetime
      let text = "Atc|" + generator.base64URL(100)
      adm.tokens.remember(
        text,
        .init(app: app.number, clientID: wanted.clientID, expiresAt: now + lifetime * 1000),
        now: now)
      return ServiceAnswer(
        .json(
          200,
          [
            "access_token": .string(text), "expires_in": .int(lifetime),
            "scope": .string(Self.scope), "token_type": "Bearer",
          ]))
    } catch {
      return ServiceAnswer(error.response, reason: error.error)
    }
  }

  /// A refusal with ADM's own fields.
  mutating func admAnswer(_ reason: ADMReason) -> ServiceAnswer {
    var fields = [("x-amzn-requestid", generator.uuid().text)]
    if reason == .maxRateExceeded { fields.append(("retry-after", "60")) }
    return ServiceAnswer(
      .json(reason.status, ["reason": .string(reason.rawValue)], fields: fields),
      reason: reason.rawValue)
  }

  /// Checks in this order: token, form, registration, rate.
  mutating func answerADM(_ request: ADMRequest, to id: String, now: Int64) -> ServiceAnswer {
    guard let bearer = request.plain.authorization("bearer"),
      let token = adm.tokens.token(bearer, now: now)
    else {
      var answer = admAnswer(.accessTokenExpired)
      if request.plain["authorization"] != nil { answer.credential = .refusedToken }
      return answer
    }
    var answer: ServiceAnswer
    do throws(ADMReason) {
      let message = try request.message()
      let (device, current) = try registration(id, of: token.app, now: now)
      guard adm.rates.take(token.app, rate: settings.others.admRate, now: now) else {
        throw .maxRateExceeded
      }
      let messageID = generator.uuid().text
      answer = ServiceAnswer(
        .json(
          200, ["registrationID": .string(current)],
          fields: [
            ("x-amzn-requestid", messageID), ("x-amzn-data-md5", message.checksum),
            ("x-amzn-type-version", "com.amazon.device.messaging.ADMSendResult@1.0"),
          ]))
      answer.storeAction = take(
        Notification(
          id: .word(messageID), receivedAt: now, headers: .fields(.adm, []),
          payload: request.plain.body, urgency: message.isUrgent ? .high : .normal,
          collapseKey: message.consolidationKey,
          storableUntil: now + message.expiresAfter * 1000, shelf: .wide,
          requestSeq: lastRequest),
        for: device, now: now)
    } catch {
      answer = admAnswer(error)
    }
    answer.credential = .accepted(keyID: token.clientID, claims: [])
    return answer
  }

  /// A device, and its present id: a former one still reaches it, and the answer tells the new.
  private func registration(
    _ id: String, of app: UInt32, now: Int64
  ) throws(ADMReason) -> (device: Int, current: String) {
    guard let found = find(.adm, id, now: now), devices[found.device].app == app else {
      throw .invalidRegistrationID
    }
    let isFormer = found.current.text != id
    let isLive =
      isFormer ? devices[found.device].registration(at: now) == .registered : found.isAlive
    guard isLive else { throw .unregistered }
    return (found.device, found.current.text)
  }
}
