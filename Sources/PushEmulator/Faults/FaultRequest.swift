import Wire

extension FaultRule {
  /// Reads the body of `POST /v1/faults` (docs/protocol/emulator.md, section 2.6).
  ///
  /// - Parameter app: Looks up an app id; throws when there is none.
  init(
    _ json: JSONValue, app: (String) throws(ControlError) -> UInt32
  ) throws(ControlError) {
    let body = try JSONReader(json, known: ["pns", "match", "when", "stage", "action"])
    guard let action = body.value("action") else { throw .missing("action") }
    self.init(action: try FaultAction(action), json: json)
    if let name = try body.string("pns"), name != "*" {
      guard let found = ServiceName(name) else {
        throw body.invalid("pns", "must be one of: \(ServiceName.list)")
      }
      service = found
    }
    stage = try body.word("stage", Stage.self) ?? .before
    match = try Self.match(body, app: app)
    when = try Self.when(body)
  }

  private static func match(
    _ body: JSONReader, app: (String) throws(ControlError) -> UInt32
  ) throws(ControlError) -> Match {
    var match = Match()
    guard
      let reader = try body.object("match", known: ["appId", "handle", "connection", "pathPrefix"])
    else { return match }
    if let id = try reader.string("appId") { match.app = try app(id) }
    match.handle = try reader.string("handle")
    match.connection = try reader.int("connection", in: 1...Int64.max).map(Int.init)
    match.pathPrefix = try reader.string("pathPrefix")
    return match
  }

  private static func when(_ body: JSONReader) throws(ControlError) -> When {
    var when = When()
    let known = ["probability", "every", "first", "limit", "from", "until"]
    guard let reader = try body.object("when", known: known) else { return when }
    when.probability = try reader.number("probability", in: 0...1) ?? 1
    when.every = try reader.int("every", in: 1...1_000_000_000).map(Int.init)
    when.first = try reader.int("first", in: 0...1_000_000_000).map(Int.init)
    when.limit = try reader.int("limit", in: 0...1_000_000_000).map(Int.init)
    when.from = try reader.int("from", in: 0...EmulatorClock.latest)
    when.until = try reader.int("until", in: 0...EmulatorClock.latest)
    return when
  }
}

extension FaultAction {
  /// Reads `action`.
  init(_ json: JSONValue) throws(ControlError) {
    guard let type = json.member("type") else { throw .missing("action.type") }
    guard case .string(let type) = type else {
      throw .wrongType("'action.type'", expected: "a string")
    }
    func reader(_ known: String...) throws(ControlError) -> JSONReader {
      try JSONReader(json, known: ["type"] + known, path: "action")
    }
    func moment() throws(ControlError) -> Moment {
      try reader("at").word("at", Moment.self) ?? .reply
    }
    switch type {
    case "latency":
      self = .latency(try Self.latency(reader("ms", "uniform", "p50", "p99")))
    case "reply":
      self = .reply(try Self.reply(reader("status", "reason", "headers", "body")))
    case "error-rate": self = .errorRate(try Self.rates(reader("rates")))
    case "throttle":
      self = .throttle(try Self.throttle(reader("rate", "burst", "scope", "retryAfter")))
    case "goaway":
      self = .goAway(
        try Self.goAway(reader("code", "reason", "lastStreamId", "graceMs", "afterRequests")))
    case "rst-stream":
      self = .resetStream(
        code: try HTTP2ErrorCode.read(reader("code"), "code") ?? HTTP2ErrorCode.internalError)
    case "settings":
      let reader = try reader("maxConcurrentStreams", "initialWindowSize")
      self = .settings(
        maxConcurrentStreams: try reader.int("maxConcurrentStreams", in: 0...Int64(Int32.max))
          .map(Int.init),
        initialWindowSize: try reader.int("initialWindowSize", in: 0...Int64(Int32.max))
          .map(Int.init))
    case "reset": self = .reset(at: try moment())
    case "close": self = .close(at: try moment())
    case "stall": self = .stall(at: try moment())
    case "truncate":
      self = .truncate(bytes: Int(try reader("bytes").int("bytes", in: 0...65_536) ?? 0))
    case "garbage":
      _ = try reader()
      self = .garbage
    case "tls-alert": self = .tlsAlert(try TLSAlert.read(reader("alert"), "alert"))
    case "refuse":
      _ = try reader()
      self = .refuse
    default:
      throw .invalidValue(
        "action.type",
        "must be one of: latency, reply, error-rate, throttle, goaway, rst-stream, settings, "
          + "reset, close, stall, truncate, garbage, tls-alert, refuse")
    }
  }

  private static func latency(_ reader: JSONReader) throws(ControlError) -> Latency {
    let range = 0...Latency.longest
    if let fixed = try reader.number("ms", in: range) { return .fixed(milliseconds: fixed) }
    if let bounds = try reader.array("uniform") {
      let pair = JSONValue.object(
        zip(["from", "to", "more"], bounds).map { .init($0, $1) })
      let ends = try JSONReader(pair, known: ["from", "to"], path: reader.name("uniform"))
      guard let from = try ends.number("from", in: range),
        let to = try ends.number("to", in: range),
        from <= to
      else { throw reader.invalid("uniform", "must be two numbers, the smaller first") }
      return .uniform(from: from, to: to)
    }
    guard let p50 = try reader.number("p50", in: 0.001...Latency.longest),
      let p99 = try reader.number("p99", in: p50...Latency.longest)
    else { throw .missing("action.ms, action.uniform, or action.p50 with action.p99") }
    return .logNormal(p50: p50, p99: p99)
  }

  private static func reply(_ reader: JSONReader) throws(ControlError) -> Reply {
    guard let status = try reader.int("status", in: 200...599) else {
      throw .missing("action.status")
    }
    var reply = Reply(status: Int(status), reason: try reader.string("reason"))
    reply.body = try reader.string("body")
    if let headers = reader.value("headers") {
      guard let members = headers.members else {
        throw .wrongType("'action.headers'", expected: "an object of strings")
      }
      for member in members {
        let path = "action.headers.\(member.name)"
        guard let value = member.value.text else {
          throw .wrongType("'\(path)'", expected: "a string")
        }
        guard member.name.isHTTPToken, value.isHTTPFieldValue else {
          throw .invalidValue(path, "is no header field that HTTP allows")
        }
        reply.headers.append((member.name.lowercased(), value))
      }
    }
    return reply
  }

  private static func rates(
    _ reader: JSONReader
  ) throws(ControlError) -> [(status: Int, rate: Double)] {
    guard let rates = reader.value("rates") else { throw .missing("action.rates") }
    guard let members = rates.members else {
      throw .wrongType("'action.rates'", expected: "an object of numbers by status")
    }
    let reader = try JSONReader(rates, known: members.map(\.name), path: "action.rates")
    var found: [(status: Int, rate: Double)] = []
    for member in members {
      guard let status = Int(member.name), (200...599).contains(status) else {
        throw .invalidValue("action.rates.\(member.name)", "is no status from 200 to 599")
      }
      found.append((status, try reader.number(member.name, in: 0...1) ?? 0))
    }
    guard found.reduce(0, { $0 + $1.rate }) <= 1.000_001 else {
      throw .invalidValue("action.rates", "must not sum to more than 1")
    }
    return found
  }

  private static func throttle(_ reader: JSONReader) throws(ControlError) -> Throttle {
    guard let rate = try reader.number("rate", in: 0.000_001...1_000_000_000) else {
      throw .missing("action.rate")
    }
    return Throttle(
      rate: rate, burst: try reader.number("burst", in: 1...1_000_000_000) ?? max(1, rate),
      scope: try reader.word("scope", Throttle.Scope.self) ?? .global,
      retryAfter: try reader.int("retryAfter", in: 0...1_000_000).map(Int.init))
  }

  private static func goAway(_ reader: JSONReader) throws(ControlError) -> GoAway {
    GoAway(
      code: try HTTP2ErrorCode.read(reader, "code") ?? 0,
      reason: try reader.string("reason"),
      last: try reader.word("lastStreamId", GoAway.Last.self) ?? .seen,
      graceMilliseconds: Int(try reader.int("graceMs", in: 0...600_000) ?? 1000),
      afterRequests: Int(try reader.int("afterRequests", in: 0...1_000_000_000) ?? 0))
  }
}

/// HTTP/2 error codes (RFC 9113, section 7) by name, as the control API takes them.
enum HTTP2ErrorCode {
  static let noError: UInt32 = 0
  static let internalError: UInt32 = 2

  private static let names = [
    "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT",
    "STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR",
    "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
  ]

  /// A code by its name or number; `nil` when the member is absent.
  static func read(_ reader: JSONReader, _ member: String) throws(ControlError) -> UInt32? {
    guard case .string(let name)? = reader.value(member) else {
      return try reader.int(member, in: 0...Int64(UInt32.max)).map(UInt32.init)
    }
    guard let code = names.firstIndex(of: name.uppercased()) else {
      throw reader.invalid(
        member, "must be a number or one of: \(names.joined(separator: ", "))")
    }
    return UInt32(code)
  }
}

/// TLS alerts (RFC 8446, section 6) by name, as the control API takes them.
enum TLSAlert {
  private static let codes: [(name: String, code: UInt8)] = [
    ("unexpected_message", 10), ("handshake_failure", 40), ("bad_certificate", 42),
    ("unsupported_certificate", 43), ("certificate_revoked", 44), ("certificate_expired", 45),
    ("certificate_unknown", 46), ("illegal_parameter", 47), ("unknown_ca", 48),
    ("access_denied", 49), ("protocol_version", 70), ("insufficient_security", 71),
    ("internal_error", 80), ("unrecognized_name", 112), ("certificate_required", 116),
    ("no_application_protocol", 120),
  ]

  static func read(_ reader: JSONReader, _ member: String) throws(ControlError) -> UInt8 {
    guard let value = reader.value(member) else { throw .missing(reader.name(member)) }
    if case .string(let name) = value {
      guard let alert = codes.first(where: { $0.name == name }) else {
        throw reader.invalid(
          member, "must be a number or one of: \(codes.map(\.name).joined(separator: ", "))")
      }
      return alert.code
    }
    return UInt8(try reader.int(member, in: 0...255) ?? 0)
  }
}
