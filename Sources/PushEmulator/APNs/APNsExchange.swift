import HTTP2

extension EmulatorState {
  /// Handles a request whole.
  ///
  /// - Parameter moments: The moments in the course of the request that faults are looked up for.
  mutating func exchange(
    _ raw: HTTP2ServerRequest, _ arrival: ServiceArrival, moments: [FaultAction.Moment]
  ) -> ServiceOutcome {
    let slot = arrival.slot
    let now = clock.now
    guard connections[slot] != nil else { return ServiceOutcome() }
    // Streams above the one a GOAWAY named do not exist for the client.
    if let last = connections[slot]?.lastStream, arrival.stream > last { return ServiceOutcome() }
    let request = APNsRequest(raw)
    let decision =
      faults.isEmpty
      ? FaultBook.Decision()
      : faults.decide(
        subject(request, raw, slot: slot), at: moments, now: now, generator: &generator)
    connections[slot]?.requests += 1
    connections[slot]?.lastActivity = now
    statistics.count(openStreams: arrival.openStreams)
    lastRequest += 1

    var outcome = ServiceOutcome(latency: decision.latency)
    var record = Self.record(nil, of: request)
    if isProcessed(decision.fault, arrival: arrival, outcome: &outcome) {
      let answer = handleAPNs(request, slot: slot, now: now)
      let highest = max(connections[slot]?.highestStream ?? 0, arrival.stream)
      connections[slot]?.highestStream = highest
      outcome.response = Self.response(to: answer)
      if answer.opensStreams { outcome.streams = settings.apns.maxStreams }
      if answer.isPenalized {
        outcome.isPenalized = true
        outcome.lastStream = highest
        connections[slot]?.lastStream = outcome.lastStream
      }
      record = Self.record(answer, of: request)
    }
    if let fault = decision.fault {
      spoil(
        &outcome, with: fault, record: &record, reply: Self.reply(to: request, now: now))
    }
    note(raw, record, arrival: arrival, latency: decision.latency, now: now)
    return outcome
  }

  private static func record(_ answer: APNsAnswer?, of request: APNsRequest) -> ServiceRecord {
    var record = ServiceRecord(service: .apns)
    guard let answer else {
      if request.authorization != nil { record.credential = .refusedToken }
      return record
    }
    record.status = answer.refusal?.reason.status ?? answer.status
    record.reason = answer.refusal?.reason.rawValue
    record.counted =
      answer.refusal == nil && answer.status != 200
      ? .answered(status: answer.status, reason: nil) : .apns(answer.refusal?.reason)
    record.credential = answer.credential
    record.storeAction = answer.storeAction
    record.recipients = answer.recipients
    if answer.isOfChannels {
      record.handle =
        answer.channelID ?? request.channelID.map { String(decoding: $0, as: UTF8.self) }
    }
    return record
  }

  /// A reply that a fault asks for, and its reason.
  private static func reply(
    to request: APNsRequest, now: Int64
  ) -> (inout EmulatorState, FaultAction.Reply) -> (HTTP2ServerResponse, reason: String?) {
    { state, reply in
      let id =
        (request.isOfChannels ? request.requestID : request.id).value ?? state.generator.uuid()
      let idName = request.isOfChannels ? "apns-request-id" : "apns-id"
      return (
        Self.response(reply, id: id, idName: idName, now: now),
        reply.reason ?? Self.usualReason(reply)
      )
    }
  }

  private func subject(
    _ request: APNsRequest, _ raw: HTTP2ServerRequest, slot: Int
  ) -> FaultSubject {
    let connection = connections[slot]
    var subject = FaultSubject(connection: connection?.number ?? 0)
    subject.path = raw.path
    subject.requestsBefore = connection?.requests ?? 0
    subject.credential =
      connection?.apns?.certificate?.sha256 ?? connection?.apns?.current?.kid ?? ""
    if case .token(let token) = request.path {
      subject.handle = token.text
      if let environment = connection?.apns?.environment,
        let device = apns.device(token, in: environment)
      {
        subject.app = devices[device].app
      }
    } else if let bundleID = request.bundleID {
      let name = String(decoding: bundleID, as: UTF8.self)
      subject.app = apns.apps.values.first { $0.bundleID == name }?.number ?? subject.app
      subject.handle = request.channelID.map { String(decoding: $0, as: UTF8.self) }
    }
    return subject
  }
}

extension EmulatorState {
  /// A fault that strikes as soon as the header block is there; `nil` when none does.
  mutating func headerFault(
    _ raw: HTTP2ServerRequest, slot: Int, stream: Int32
  ) -> ServiceOutcome? {
    let request = APNsRequest(raw)
    let now = clock.now
    let decision = faults.decide(
      subject(request, raw, slot: slot), at: [.headers], now: now, generator: &generator)
    guard let fault = decision.fault else { return nil }
    connections[slot]?.requests += 1
    lastRequest += 1
    var record = Self.record(nil, of: request)
    var outcome = ServiceOutcome()
    spoil(&outcome, with: fault, record: &record, reply: Self.reply(to: request, now: now))
    let arrival = ServiceArrival(
      slot: slot, stream: stream, openStreams: 1, startedAt: ContinuousClock.now)
    note(raw, record, arrival: arrival, latency: 0, now: now)
    return outcome
  }
}
