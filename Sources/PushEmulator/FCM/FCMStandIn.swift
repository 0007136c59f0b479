import HTTP2

/// FCM HTTP v1 and Google's token endpoint (emulator.md, section 5).
struct FCMStandIn: StandIn {
  var service: PushService { .fcm }

  struct Reading: Sendable {
    enum Path: Sendable, Equatable {
      case token
      case send(project: String)
      case other
    }

    var path = Path.other
    var isPost = false
    /// The bearer token.
    var bearer: String?
    var contentType: String?
    /// At the token endpoint.
    var form = FormFields([])
    /// At the send endpoint.
    var message: Result<FCMMessage, FCMRefusal>?
  }

  func read(_ request: HTTP2ServerRequest) -> Reading {
    var reading = Reading()
    reading.path = Self.path(request.path)
    reading.isPost = request.method == "POST"
    reading.bearer = request.fields.first("authorization")?.credentials("bearer")
    reading.contentType = request.fields.first("content-type")
    switch reading.path {
    case .token: reading.form = FormFields(request.body)
    case .send:
      do throws(FCMRefusal) {
        let message = try FCMMessage(request.body, contentType: reading.contentType)
        reading.message = .success(message)
      } catch {
        reading.message = .failure(error)
      }
    case .other: break
    }
    return reading
  }

  /// `/token`, or `/v1/projects/{p}/messages:send`; a query does not matter.
  private static func path(_ text: String) -> Reading.Path {
    let path = text.prefix { $0 != "?" }
    if path == "/token" { return .token }
    let start = "/v1/projects/"
    let end = "/messages:send"
    guard path.hasPrefix(start), path.hasSuffix(end), path.utf8.count > start.count + end.count
    else { return .other }
    let project = path.dropFirst(start.count).dropLast(end.count)
    return project.contains("/") ? .other : .send(project: String(project))
  }

  func subject(_ reading: Reading, in state: EmulatorState) -> ServiceSubject {
    guard case .send(let project) = reading.path else {
      return ServiceSubject(service: reading.path == .token ? .fcmToken : .fcm)
    }
    var subject = ServiceSubject(service: .fcm, app: state.fcm.app(project: project)?.number)
    if case .success(let message) = reading.message, let token = message.handle {
      subject.handle = token
      // The device's own app, should another project's credential be used.
      if let device = state.handles.device(.fcm, token) { subject.app = state.devices[device].app }
    }
    subject.credential = reading.bearer.flatMap {
      state.fcm.token($0, now: state.clock.now)?.clientEmail
    }
    return subject
  }

  func answer(
    _ reading: Reading, in state: inout EmulatorState, slot: Int, now: Int64
  ) -> ServiceAnswer {
    reading.path == .token
      ? state.fcmToken(reading, now: now) : state.fcmSend(reading, now: now)
  }

  func oversized(_ reading: Reading, in state: inout EmulatorState) -> ServiceAnswer {
    let refusal = FCMRefusal(
      status: 413, word: "INVALID_ARGUMENT", message: "Request payload is too large.")
    return ServiceAnswer(refusal.response, reason: refusal.reason)
  }

  func response(
    to fault: FaultAction.Reply, _ reading: Reading, in state: inout EmulatorState
  ) -> (HTTP2ServerResponse, reason: String?) {
    if let body = fault.body {
      let response = HTTP2ServerResponse(
        status: fault.status, fields: HTTP2FieldList([("content-type", "application/json")]),
        body: Array(body.utf8))
      return (response.with(fault.headers), fault.reason)
    }
    if reading.path == .token {
      let refusal = TokenRefusal(fault: fault.status, reason: fault.reason)
      return (refusal.response.with(fault.headers), refusal.error)
    }
    if fault.status < 300 { return (.json(fault.status, [:]).with(fault.headers), fault.reason) }
    let refusal = FCMRefusal(fault: fault.status, reason: fault.reason)
    return (refusal.response.with(fault.headers), refusal.reason)
  }
}
