import HTTP2

/// A browser vendor's Web Push service (emulator.md, section 7).
struct WebPushStandIn: StandIn {
  var service: PushService { .webpush }

  struct Reading: Sendable {
    enum Path: Sendable, Equatable {
      case subscription(String)
      case message(String)
      case other
    }

    /// A header field that has a form.
    enum Field<Value: Sendable & Equatable>: Sendable, Equatable {
      case absent
      case malformed
      case value(Value)

      var value: Value? { if case .value(let value) = self { value } else { nil } }
    }

    var path = Path.other
    var method = ""
    var authorization: String?
    /// Seconds.
    var ttl = Field<Int64>.absent
    var urgency = Field<Urgency>.absent
    var topic = Field<String>.absent
    var encoding: String?
    var wantsReceipt = false
    var body: [UInt8] = []
  }

  func read(_ request: HTTP2ServerRequest) -> Reading {
    var reading = Reading()
    reading.path = Self.path(request.path)
    reading.method = request.method
    reading.authorization = request.fields.first("authorization")
    reading.body = request.body
    reading.encoding = request.fields.first("content-encoding")
    reading.wantsReceipt = request.fields.indices(of: "prefer").contains { index in
      String(decoding: request.fields.value(at: index), as: UTF8.self).lowercased()
        .split(separator: ",").contains { $0.trimmed == "respond-async" }
    }
    reading.ttl = Self.field("ttl", request, Self.seconds)
    reading.urgency = Self.field("urgency", request) { Urgency(word: $0) }
    reading.topic = Self.field("topic", request) { text in
      (1...32).contains(text.utf8.count) && text.utf8.allSatisfy(FCMToken.isLetter) ? text : nil
    }
    return reading
  }

  private static func path(_ text: String) -> Reading.Path {
    let path = text.prefix { $0 != "?" }
    for (start, make) in [
      ("/wp/", Reading.Path.subscription), ("/m/", Reading.Path.message),
    ] where path.hasPrefix(start) {
      let id = path.dropFirst(start.count)
      return id.isEmpty || id.contains("/") ? .other : make(String(id))
    }
    return .other
  }

  private static func field<Value>(
    _ name: String, _ request: HTTP2ServerRequest, _ read: (String) -> Value?
  ) -> Reading.Field<Value> {
    let places = request.fields.indices(of: name)
    guard let place = places.first else { return .absent }
    guard places.count == 1,
      let value = read(String(decoding: request.fields.value(at: place), as: UTF8.self))
    else { return .malformed }
    return .value(value)
  }

  /// Digits, of whatever number; what is beyond a century is a century.
  private static func seconds(_ text: String) -> Int64? {
    guard !text.isEmpty, text.utf8.count <= 100,
      text.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") })
    else { return nil }
    return min(Int64(text) ?? .max, 3_155_760_000)
  }

  func subject(_ reading: Reading, in state: EmulatorState) -> ServiceSubject {
    var subject = ServiceSubject(service: .webpush)
    if case .subscription(let id) = reading.path {
      subject.handle = id
      if let device = state.handles.device(.webpush, id) { subject.app = state.devices[device].app }
    }
    subject.credential = reading.authorization.flatMap { VAPIDHeader($0)?.key }
    return subject
  }

  func answer(
    _ reading: Reading, in state: inout EmulatorState, slot: Int, now: Int64
  ) -> ServiceAnswer {
    let flavor = state.flavor(reading)
    do throws(WebPushRefusal) {
      switch reading.path {
      case .subscription(let id): return try state.webPush(reading, to: id, now: now)
      case .message(let id):
        guard reading.method == "DELETE" else { throw .methodNotAllowed }
        try state.withdrawWebPush(id)
        return ServiceAnswer(.init(status: 204))
      case .other: throw .unknownSubscription
      }
    } catch {
      var answer = ServiceAnswer(error.response(flavor), reason: error.rawValue)
      if reading.authorization != nil { answer.credential = .refusedToken }
      return answer
    }
  }

  func oversized(_ reading: Reading, in state: inout EmulatorState) -> ServiceAnswer {
    let refusal = WebPushRefusal.tooLarge
    return ServiceAnswer(refusal.response(state.flavor(reading)), reason: refusal.rawValue)
  }

  func response(
    to fault: FaultAction.Reply, _ reading: Reading, in state: inout EmulatorState
  ) -> (HTTP2ServerResponse, reason: String?) {
    if let body = fault.body {
      let response = HTTP2ServerResponse(status: fault.status, body: Array(body.utf8))
      return (response.with(fault.headers), fault.reason)
    }
    if fault.status < 400 {
      return (HTTP2ServerResponse(status: fault.status).with(fault.headers), fault.reason)
    }
    let refusal = WebPushRefusal(usualFor: fault.status)
    let response = refusal.response(
      state.flavor(reading), status: fault.status, reason: fault.reason)
    return (response.with(fault.headers), fault.reason ?? refusal.rawValue)
  }
}
