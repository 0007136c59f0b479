import HTTP2

/// One request to a push service, from the faults to the reply, as a value: the listener carries it
/// out.
struct ServiceOutcome: Sendable {
  /// `nil` when no reply is sent.
  var response: HTTP2ServerResponse?
  /// Delay of the reply in ms.
  var latency = 0.0
  /// A further effect on the stream or the connection.
  var effect: FaultAction?
  /// The last stream that counts as processed, for GOAWAY by a fault or a dismissal.
  var lastStream: Int32 = 0
  /// The new limit of concurrent streams on the connection.
  var streams: Int?
  /// The reason for which the connection must be closed.
  var dismissal: String?
}

/// A listener's data about a request besides its content.
struct ServiceArrival: Sendable {
  /// The connection's slot in the state's table.
  let slot: Int
  /// The stream of HTTP/2; over HTTP/1.1 the requests of a connection are numbered like streams.
  let stream: Int32
  /// Number of open streams on the connection, this one included.
  let openStreams: Int
  let startedAt = ContinuousClock.now
}

/// The record of a request for journal and statistics.
private struct ServiceRecord {
  var name: ServiceName
  /// 0 for no answer.
  var status = 0
  var reason: String?
  var credential = Journal.Credential.none
  var storeAction: StoreAction?
  var faultID: String?
  /// The named device, where the path does not contain it; for APNs' channels the channel.
  var handle: String?
  /// Number of devices that a broadcast was for.
  var recipients: Int?
  /// See ``ServiceSubject/path``.
  var path: String?

  init(_ subject: ServiceSubject) {
    name = subject.name
    handle = subject.handle
    path = subject.path
  }
}

extension FaultAction.Moment {
  /// The moments of a request whose faults were not checked when its header block came.
  static let ofWholeRequest: [Self] = [.headers, .body, .reply]
  static let afterHeaders: [Self] = [.body, .reply]
}

extension EmulatorCore {
  /// Handles a complete request that arrived at a service's address.
  ///
  /// - Parameter moments: The moments in the course of the request that faults are looked up for.
  func exchange(
    _ raw: HTTP2ServerRequest, at host: any StandIn, _ arrival: ServiceArrival,
    moments: [FaultAction.Moment]
  ) -> ServiceOutcome {
    func exchange(by service: some StandIn) -> ServiceOutcome {
      let reading = service.read(raw)
      return withState { state in
        state.exchange(
          raw, reading, by: service, arrival, moments: moments,
          isMisdirected: state.options.limitsHosts && !raw.isFor(host.service))
      }
    }
    return exchange(by: standIn(for: raw, at: host))
  }

  /// A fault that applies as soon as the header block has arrived; `nil` when there is none.
  func headerFault(
    _ raw: HTTP2ServerRequest, at host: any StandIn, _ arrival: ServiceArrival
  ) -> ServiceOutcome? {
    func fault(by service: some StandIn) -> ServiceOutcome? {
      withState { $0.headerFault(raw, by: service, arrival) }
    }
    return fault(by: standIn(for: raw, at: host))
  }

  /// The service that a request at a service's address is for.
  private func standIn(for raw: HTTP2ServerRequest, at host: any StandIn) -> any StandIn {
    guard let guest = host.guest(for: raw) else { return host }
    return services.first { $0.service == guest } ?? host
  }
}

extension EmulatorState {
  /// See ``EmulatorCore/exchange(_:at:_:moments:)``.
  ///
  /// - Parameter isMisdirected: Whether the request is for a host that is not the service's.
  mutating func exchange<Service: StandIn>(
    _ raw: HTTP2ServerRequest, _ reading: Service.Reading, by service: Service,
    _ arrival: ServiceArrival, moments: [FaultAction.Moment], isMisdirected: Bool
  ) -> ServiceOutcome {
    let slot = arrival.slot
    let now = clock.now
    guard connections[slot] != nil else { return ServiceOutcome() }
    // Streams above the one a GOAWAY named do not exist for the client.
    if let last = connections[slot]?.lastStream, arrival.stream > last { return ServiceOutcome() }
    let subject = service.subject(reading, slot: slot, forFaults: !faults.isEmpty, in: self)
    let decision = decide(subject, raw, slot: slot, at: moments, now: now)
    connections[slot]?.requests += 1
    connections[slot]?.lastActivity = now
    if let credential = subject.credential { connections[slot]?.identity = credential }
    statistics.count(openStreams: arrival.openStreams)
    lastRequest += 1

    var outcome = ServiceOutcome(latency: decision.latency)
    var record = ServiceRecord(subject)
    if isProcessed(decision.fault, arrival: arrival, outcome: &outcome) {
      let answer =
        if isMisdirected {
          ServiceAnswer(.init(status: 421), reason: "misdirected request")
        } else if raw.excess == nil {
          service.answer(reading, slot: slot, now: now, in: &self)
        } else {
          service.oversized(reading, slot: slot, now: now, in: &self)
        }
      let highest = max(connections[slot]?.highestStream ?? 0, arrival.stream)
      connections[slot]?.highestStream = highest
      outcome.streams = answer.streams
      if let dismissal = answer.dismissal {
        (outcome.dismissal, outcome.lastStream) = (dismissal, highest)
        connections[slot]?.lastStream = highest
      }
      (record.status, record.reason) = (answer.response.status, answer.reason)
      record.credential = answer.credential
      record.storeAction = answer.storeAction
      record.recipients = answer.recipients
      if let handle = answer.handle { record.handle = handle }
      outcome.response = answer.response
    } else if raw.fields.firstBytes("authorization") != nil {
      record.credential = .refusedToken
    }
    if let fault = decision.fault {
      spoil(&outcome, with: fault, of: reading, by: service, record: &record)
    }
    note(raw, record, arrival: arrival, latency: decision.latency, now: now)
    return outcome
  }

  /// See ``EmulatorCore/headerFault(_:at:_:)``.
  mutating func headerFault<Service: StandIn>(
    _ raw: HTTP2ServerRequest, by service: Service, _ arrival: ServiceArrival
  ) -> ServiceOutcome? {
    guard faults.concerns(.headers) else { return nil }
    let reading = service.read(raw)
    let now = clock.now
    let subject = service.subject(reading, slot: arrival.slot, forFaults: true, in: self)
    let decision = decide(subject, raw, slot: arrival.slot, at: [.headers], now: now)
    guard let fault = decision.fault else { return nil }
    connections[arrival.slot]?.requests += 1
    lastRequest += 1
    var record = ServiceRecord(subject)
    var outcome = ServiceOutcome()
    if raw.fields.firstBytes("authorization") != nil { record.credential = .refusedToken }
    spoil(&outcome, with: fault, of: reading, by: service, record: &record)
    note(raw, record, arrival: arrival, latency: 0, now: now)
    return outcome
  }

  // MARK: Faults

  /// The effect of a fault on a connection that was just accepted.
  mutating func acceptFault(_ service: PushService) -> FaultAction? {
    guard faults.concerns(.accept) else { return nil }
    let subject = FaultSubject(
      ServiceSubject(name: ServiceName(service)), connection: connections.nextNumber)
    return faults.decide(subject, at: [.accept], now: clock.now, generator: &generator)
      .fault?.action
  }

  private mutating func decide(
    _ subject: ServiceSubject, _ raw: HTTP2ServerRequest, slot: Int,
    at moments: [FaultAction.Moment], now: Int64
  ) -> FaultRules.Decision {
    guard !faults.isEmpty, let connection = connections[slot] else { return .init() }
    let matched = FaultSubject(
      subject, connection: connection.number, path: raw.path, requestsBefore: connection.requests)
    return faults.decide(matched, at: moments, now: now, generator: &generator)
  }

  /// Whether the message is processed in spite of the fault, according to its stage and action.
  private mutating func isProcessed(
    _ fault: FaultRules.Fault?, arrival: ServiceArrival, outcome: inout ServiceOutcome
  ) -> Bool {
    guard let fault else { return true }
    switch fault.action {
    case .settings, .truncate, .garbage: return true
    case .goAway(let goAway):
      // A stream that has been processed must not be reported as unprocessed.
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

  /// Applies the fault to the outcome.
  private mutating func spoil<Service: StandIn>(
    _ outcome: inout ServiceOutcome, with fault: FaultRules.Fault, of reading: Service.Reading,
    by service: Service, record: inout ServiceRecord
  ) {
    record.faultID = fault.id
    switch fault.action {
    case .reply(let wanted):
      let response: HTTP2ServerResponse
      if let body = wanted.body {
        response = HTTP2ServerResponse(
          status: wanted.status,
          fields: HTTP2FieldList(service.fields(ofGivenBody: reading, in: &self)),
          body: Array(body.utf8))
        record.reason = wanted.reason
      } else {
        (response, record.reason) = service.response(to: wanted, reading, in: &self)
      }
      record.status = response.status
      outcome.response = response.with(wanted.headers)
    case .truncate(let bytes):
      outcome.response?.truncatedBody = bytes
    case .garbage:
      outcome.response = outcome.response?.with([("content-type", "text/html")])
      outcome.response?.body = Array("<html><body>\u{1}{\"reason\":</body>".utf8)
    case .settings, .goAway:
      outcome.effect = fault.action
    case .resetStream, .reset, .close, .stall:
      outcome.response = nil
      outcome.effect = fault.action
      (record.status, record.reason) = (0, nil)
    case .latency, .errorRate, .throttle, .tlsAlert, .refuse:
      break
    }
  }

  // MARK: Journal

  /// Records a request in statistics and journal.
  private mutating func note(
    _ raw: HTTP2ServerRequest, _ record: ServiceRecord, arrival: ServiceArrival, latency: Double,
    now: Int64
  ) {
    let elapsed = (ContinuousClock.now - arrival.startedAt).components
    let microseconds =
      Int(elapsed.seconds) * 1_000_000 + Int(elapsed.attoseconds / 1_000_000_000_000)
      + Int(latency * 1000)
    statistics.count(
      record.name, status: record.status, reason: record.reason, action: record.storeAction,
      microseconds: microseconds)
    guard journal.capacity > 0 else { return }
    journal.append(
      Journal.Entry(
        seq: lastRequest, time: now, service: record.name,
        connection: connections[arrival.slot]?.number ?? 0, stream: arrival.stream,
        head: Journal.Entry.head(raw, path: record.path), credential: record.credential,
        handle: record.handle,
        bodyBytes: raw.body.count, status: record.status, reason: record.reason,
        faultID: record.faultID, storeAction: record.storeAction,
        recipients: record.recipients, microseconds: microseconds))
    for wake in requestWatchers.values { wake() }
  }
}
