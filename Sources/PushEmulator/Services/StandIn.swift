import HTTP2

/// The rules of a push service that answers plain requests: everything but APNs, whose connections
/// have a memory of their own.
///
/// The same rules serve HTTP/2 and HTTP/1.1: requests over HTTP/1.1 come in the form of HTTP/2, with
/// lower-case names and `:method`, `:path` and `:authority`.
protocol StandIn: Sendable {
  /// A request as the service reads it, nothing judged yet.
  associatedtype Reading: Sendable

  var service: PushService { get }

  /// Looks at a request without the state: no lock is held.
  func read(_ request: HTTP2ServerRequest) -> Reading

  /// What fault rules are matched against.
  func subject(_ reading: Reading, in state: EmulatorState) -> ServiceSubject

  /// Judges the request and does what it asks.
  /// - Parameter now: In ms since the Unix epoch.
  func answer(
    _ reading: Reading, in state: inout EmulatorState, slot: Int, now: Int64
  ) -> ServiceAnswer

  /// The answer to a request whose head or body is over the listener's limit; nothing of it is read.
  func oversized(_ reading: Reading, in state: inout EmulatorState) -> ServiceAnswer

  /// The answer that a `reply` fault asks for; what it leaves open is filled in as the service would,
  /// with the service's own word for it.
  func response(
    to fault: FaultAction.Reply, _ reading: Reading, in state: inout EmulatorState
  ) -> (HTTP2ServerResponse, reason: String?)
}

/// What a request is about, for fault rules.
struct ServiceSubject: Sendable {
  /// The service's word, or that of its token endpoint.
  var service: FaultRule.Service
  var app: UInt32?
  var handle: String?
  /// The client's name or key.
  var credential: String?
}

/// A service's answer, and what it made of the request.
struct ServiceAnswer: Sendable {
  var response: HTTP2ServerResponse
  /// The service's word for a refusal, for journal and statistics; `nil` for a success.
  var reason: String?
  var credential = Journal.Credential.none
  var storeAction: StoreAction?

  init(_ response: HTTP2ServerResponse, reason: String? = nil) {
    self.response = response
    self.reason = reason
  }
}

extension HTTP2ServerResponse {
  /// An answer of JSON.
  static func json(
    _ status: Int, _ body: JSON, fields: [(name: String, value: String)] = [],
    contentType: String = "application/json; charset=UTF-8"
  ) -> HTTP2ServerResponse {
    .init(
      status: status, fields: HTTP2FieldList([("content-type", contentType)] + fields),
      body: body.bytes)
  }

  /// The answer with the fields of a `reply` fault; one of the same name takes the other's place.
  func with(_ headers: [(name: String, value: String)]) -> HTTP2ServerResponse {
    var response = self
    let kept = fields.pairs.filter { field in !headers.contains { $0.name == field.name } }
    response.fields = HTTP2FieldList(kept + headers)
    return response
  }
}

extension EmulatorState {
  /// Handles a request whole.
  ///
  /// - Parameter moments: The moments in the course of the request that faults are looked up for.
  mutating func exchange<Service: StandIn>(
    _ raw: HTTP2ServerRequest, _ reading: Service.Reading, by service: Service,
    _ arrival: ServiceArrival, moments: [FaultAction.Moment]
  ) -> ServiceOutcome {
    let slot = arrival.slot
    let now = clock.now
    guard connections[slot] != nil else { return ServiceOutcome() }
    // Streams above the one a GOAWAY named do not exist for the client.
    if let last = connections[slot]?.lastStream, arrival.stream > last { return ServiceOutcome() }
    let subject = service.subject(reading, in: self)
    let decision = decide(subject, raw, slot: slot, at: moments, now: now)
    connections[slot]?.requests += 1
    connections[slot]?.lastActivity = now
    if let credential = subject.credential { connections[slot]?.identity = credential }
    statistics.count(openStreams: arrival.openStreams)
    lastRequest += 1

    var outcome = ServiceOutcome(latency: decision.latency)
    var record = ServiceRecord(service: subject.service, handle: subject.handle)
    if isProcessed(decision.fault, arrival: arrival, outcome: &outcome) {
      let answer =
        raw.excess == nil
        ? service.answer(reading, in: &self, slot: slot, now: now)
        : service.oversized(reading, in: &self)
      let highest = max(connections[slot]?.highestStream ?? 0, arrival.stream)
      connections[slot]?.highestStream = highest
      outcome.response = answer.response
      record.status = answer.response.status
      record.reason = answer.reason
      record.counted = .answered(status: record.status, reason: record.reason)
      record.credential = answer.credential
      record.storeAction = answer.storeAction
    } else if raw.fields.firstBytes("authorization") != nil {
      record.credential = .refusedToken
    }
    if let fault = decision.fault {
      spoil(&outcome, with: fault, record: &record) { state, reply in
        service.response(to: reply, reading, in: &state)
      }
    }
    note(raw, record, arrival: arrival, latency: decision.latency, now: now)
    return outcome
  }

  /// A fault that strikes as soon as the header block is there; `nil` when none does.
  mutating func headerFault<Service: StandIn>(
    _ raw: HTTP2ServerRequest, by service: Service, _ arrival: ServiceArrival
  ) -> ServiceOutcome? {
    let reading = service.read(raw)
    let now = clock.now
    let subject = service.subject(reading, in: self)
    let decision = decide(subject, raw, slot: arrival.slot, at: [.headers], now: now)
    guard let fault = decision.fault else { return nil }
    connections[arrival.slot]?.requests += 1
    lastRequest += 1
    var record = ServiceRecord(service: subject.service, handle: subject.handle)
    var outcome = ServiceOutcome()
    if raw.fields.firstBytes("authorization") != nil { record.credential = .refusedToken }
    spoil(&outcome, with: fault, record: &record) { state, reply in
      service.response(to: reply, reading, in: &state)
    }
    note(raw, record, arrival: arrival, latency: 0, now: now)
    return outcome
  }

  private mutating func decide(
    _ subject: ServiceSubject, _ raw: HTTP2ServerRequest, slot: Int,
    at moments: [FaultAction.Moment], now: Int64
  ) -> FaultBook.Decision {
    guard !faults.isEmpty, let connection = connections[slot] else { return .init() }
    var matched = FaultSubject(connection: connection.number)
    matched.service = subject.service
    matched.app = subject.app
    matched.handle = subject.handle
    matched.credential = subject.credential ?? ""
    matched.path = raw.path
    matched.requestsBefore = connection.requests
    return faults.decide(matched, at: moments, now: now, generator: &generator)
  }
}
