import HTTP2

/// One request to APNs from the faults to the answer, as a value: the listener carries it out.
struct APNsOutcome: Sendable {
  /// `nil`: no answer is sent.
  var response: HTTP2ServerResponse?
  /// Delay of the answer in ms.
  var latency = 0.0
  /// What else happens to the stream or the connection.
  var effect: FaultAction?
  /// With GOAWAY, by a fault or as a penalty: the last stream that counts as processed.
  var lastStream: Int32 = 0
  /// The connection may have so many streams from now on.
  var streams: Int?
  /// The connection has had too many bad tokens and must go.
  var isPenalized = false
}

/// What the listener knows of a request beside its content.
struct APNsArrival: Sendable {
  let slot: Int
  let stream: Int32
  /// Streams open on the connection, this one included.
  let openStreams: Int
  let startedAt: ContinuousClock.Instant
}

extension EmulatorState {
  /// Handles a request whole.
  ///
  /// - Parameter moments: The moments in the course of the request that faults are looked up for.
  mutating func exchange(
    _ raw: HTTP2ServerRequest, _ arrival: APNsArrival, moments: [FaultAction.Moment]
  ) -> APNsOutcome {
    let slot = arrival.slot
    let now = clock.now
    guard connections[slot] != nil else { return APNsOutcome() }
    // Streams above the one a GOAWAY named do not exist for the client.
    if let last = connections[slot]?.lastStream, arrival.stream > last { return APNsOutcome() }
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

    var outcome = APNsOutcome(latency: decision.latency)
    var record = Record()
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
      record = Record(answer)
    } else if request.authorization != nil {
      record.credential = .refusedToken
    }
    if let fault = decision.fault {
      spoil(&outcome, with: fault, request: request, record: &record, now: now)
    }
    note(raw, request, record, arrival: arrival, latency: decision.latency, now: now)
    return outcome
  }

  /// What is said of the request in journal and statistics.
  private struct Record {
    var counted = Statistics.CountedAnswer.none
    var status = 0
    var reason: String?
    var credential = Journal.Credential.none
    var storeAction: StoreAction?
    var faultID: String?

    init() {}

    init(_ answer: APNsAnswer) {
      status = answer.refusal?.reason.status ?? 200
      reason = answer.refusal?.reason.rawValue
      counted = answer.refusal.map { .refused($0.reason) } ?? .success
      credential = answer.credential
      storeAction = answer.storeAction
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
      connection?.apns.certificate?.sha256 ?? connection?.apns.current?.kid ?? ""
    if case .token(let token) = request.path {
      subject.handle = token.text
      if let environment = connection?.apns.environment,
        let device = apns.device(token, in: environment)
      {
        subject.app = devices[device].app
      }
    }
    return subject
  }

  // MARK: Faults

  /// Whether the message is processed in spite of the fault, as its stage and action demand.
  private mutating func isProcessed(
    _ fault: FaultBook.Fault?, arrival: APNsArrival, outcome: inout APNsOutcome
  ) -> Bool {
    guard let fault else { return true }
    switch fault.action {
    case .settings, .truncate, .garbage: return true
    case .goAway(let goAway):
      // A stream that has been processed cannot be disowned: that would be a lie of the service.
      let highest = connections[arrival.slot]?.highestStream ?? 0
      let last: Int32 =
        switch goAway.last {
        case .seen: max(arrival.stream, highest)
        case .previous: max(arrival.stream - 2, highest)
        case .zero: 0
        }
      connections[arrival.slot]?.lastStream = last
      outcome.lastStream = last
      return arrival.stream <= last || fault.stage == .after
    case .reset(.headers), .close(.headers), .stall(.headers): return false
    default: return fault.stage == .after
    }
  }

  /// Turns the outcome into what the fault wants.
  private mutating func spoil(
    _ outcome: inout APNsOutcome, with fault: FaultBook.Fault, request: APNsRequest,
    record: inout Record, now: Int64
  ) {
    record.faultID = fault.id
    switch fault.action {
    case .reply(let reply):
      let id = request.id.value ?? generator.uuid()
      outcome.response = Self.response(reply, id: id, now: now)
      (record.status, record.reason) = (reply.status, reply.reason ?? Self.usualReason(reply))
      record.counted = .spoilt(status: reply.status, reason: record.reason)
    case .truncate(let bytes):
      outcome.response?.truncatedBody = bytes
    case .garbage:
      outcome.response = Self.garbage(outcome.response)
    case .settings:
      outcome.effect = fault.action
    case .goAway:
      outcome.effect = fault.action
    case .resetStream, .reset, .close, .stall:
      outcome.response = nil
      outcome.effect = fault.action
      (record.status, record.reason, record.counted) = (0, nil, .none)
    case .latency, .errorRate, .throttle, .tlsAlert, .refuse:
      break
    }
  }

  // MARK: Records

  private mutating func note(
    _ raw: HTTP2ServerRequest, _ request: APNsRequest, _ record: Record, arrival: APNsArrival,
    latency: Double, now: Int64
  ) {
    let elapsed = (ContinuousClock.now - arrival.startedAt).components
    let microseconds =
      Int(elapsed.seconds) * 1_000_000 + Int(elapsed.attoseconds / 1_000_000_000_000)
      + Int(latency * 1000)
    statistics.count(record.counted, action: record.storeAction, microseconds: microseconds)
    guard journal.capacity > 0 else { return }
    journal.append(
      Journal.Entry(
        seq: lastRequest, time: now, service: .apns,
        connection: connections[arrival.slot]?.number ?? 0, stream: arrival.stream,
        head: Self.head(raw), credential: record.credential, bodyBytes: request.body.count,
        status: record.status, reason: record.reason, faultID: record.faultID,
        storeAction: record.storeAction, microseconds: microseconds))
  }

  private static func head(_ raw: HTTP2ServerRequest) -> [UInt8] {
    var head: [UInt8] = []
    head.reserveCapacity(384)
    func add(_ name: some Sequence<UInt8>, _ value: some Sequence<UInt8>) {
      head.append(contentsOf: name)
      head.append(0)
      head.append(contentsOf: value)
      head.append(0)
    }
    for name in [":method", ":path"] {
      add(name.utf8, raw.pseudoFields.firstBytes(name) ?? [])
    }
    let secret = "authorization".utf8
    for index in 0..<raw.fields.count {
      let name = raw.fields.name(at: index)
      guard !(name.count == secret.count && name.elementsEqual(secret)) else { continue }
      add(name, raw.fields.value(at: index))
    }
    return head
  }
}

extension EmulatorState {
  /// A fault that strikes as soon as the header block is there; `nil` when none does.
  mutating func headerFault(
    _ raw: HTTP2ServerRequest, slot: Int, stream: Int32
  ) -> APNsOutcome? {
    let request = APNsRequest(raw)
    let now = clock.now
    let decision = faults.decide(
      subject(request, raw, slot: slot), at: [.headers], now: now, generator: &generator)
    guard let fault = decision.fault else { return nil }
    connections[slot]?.requests += 1
    lastRequest += 1
    var record = Record()
    var outcome = APNsOutcome()
    if request.authorization != nil { record.credential = .refusedToken }
    spoil(&outcome, with: fault, request: request, record: &record, now: now)
    let arrival = APNsArrival(
      slot: slot, stream: stream, openStreams: 1, startedAt: ContinuousClock.now)
    note(raw, request, record, arrival: arrival, latency: 0, now: now)
    return outcome
  }
}
