import HTTP2

/// One request to a push service from the faults to the answer, as a value: the listener carries it
/// out.
struct ServiceOutcome: Sendable {
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

/// What a listener knows of a request beside its content.
struct ServiceArrival: Sendable {
  /// The connection's, in the state's table.
  let slot: Int
  /// Of HTTP/2; over HTTP/1.1 the requests of a connection are numbered as streams would be.
  let stream: Int32
  /// Streams open on the connection, this one included.
  let openStreams: Int
  let startedAt: ContinuousClock.Instant
}

/// What is said of a request in journal and statistics.
struct ServiceRecord: Sendable {
  var service: FaultRule.Service
  var counted = Statistics.CountedAnswer.none
  /// 0 for no answer.
  var status = 0
  var reason: String?
  var credential = Journal.Credential.none
  var storeAction: StoreAction?
  var faultID: String?
  /// The device that was named, where the path does not say it; for APNs' channels the channel.
  var handle: String?
  /// How many devices a broadcast was for.
  var recipients: Int?
}

extension EmulatorState {
  /// Whether the message is processed in spite of the fault, as its stage and action demand.
  mutating func isProcessed(
    _ fault: FaultBook.Fault?, arrival: ServiceArrival, outcome: inout ServiceOutcome
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
  ///
  /// - Parameter reply: Makes the answer that a `reply` fault asks for, in the service's own form,
  ///   with its reason.
  mutating func spoil(
    _ outcome: inout ServiceOutcome, with fault: FaultBook.Fault, record: inout ServiceRecord,
    reply: (inout EmulatorState, FaultAction.Reply) -> (HTTP2ServerResponse, reason: String?)
  ) {
    record.faultID = fault.id
    switch fault.action {
    case .reply(let wanted):
      let (response, reason) = reply(&self, wanted)
      outcome.response = response
      (record.status, record.reason) = (response.status, reason)
      record.counted = .spoilt(status: response.status, reason: reason)
    case .truncate(let bytes):
      outcome.response?.truncatedBody = bytes
    case .garbage:
      outcome.response = Self.garbage(outcome.response)
    case .settings, .goAway:
      outcome.effect = fault.action
    case .resetStream, .reset, .close, .stall:
      outcome.response = nil
      outcome.effect = fault.action
      (record.status, record.reason, record.counted) = (0, nil, .none)
    case .latency, .errorRate, .throttle, .tlsAlert, .refuse:
      break
    }
  }

  /// The answer with a body that nobody can read.
  private static func garbage(_ response: HTTP2ServerResponse?) -> HTTP2ServerResponse? {
    guard var response else { return nil }
    var fields = HTTP2FieldList()
    for field in response.fields.pairs where field.name != "content-type" {
      fields.append(field.name, field.value)
    }
    fields.append("content-type", "text/html")
    response.fields = fields
    response.body = Array("<html><body>\u{1}{\"reason\":</body>".utf8)
    return response
  }

  /// Writes a request down in statistics and journal.
  mutating func note(
    _ raw: HTTP2ServerRequest, _ record: ServiceRecord, arrival: ServiceArrival, latency: Double,
    now: Int64
  ) {
    let elapsed = (ContinuousClock.now - arrival.startedAt).components
    let microseconds =
      Int(elapsed.seconds) * 1_000_000 + Int(elapsed.attoseconds / 1_000_000_000_000)
      + Int(latency * 1000)
    statistics.count(
      record.counted, of: record.service, action: record.storeAction, microseconds: microseconds)
    guard journal.capacity > 0 else { return }
    journal.append(
      Journal.Entry(
        seq: lastRequest, time: now, service: record.service,
        connection: connections[arrival.slot]?.number ?? 0, stream: arrival.stream,
        head: Self.head(raw), credential: record.credential, handle: record.handle,
        bodyBytes: raw.body.count, status: record.status, reason: record.reason,
        faultID: record.faultID, storeAction: record.storeAction,
        recipients: record.recipients, microseconds: microseconds))
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
