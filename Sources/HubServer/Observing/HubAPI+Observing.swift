package import HTTPServer
import HubCore
import NotificationHubs
import Wire

/// `/health/live`, `/health/ready` and `/metrics` (`docs/operations.md`).
extension HubAPI {
  /// Answers what is asked about the server itself.
  /// - Returns: `nil` when the request is for something else.
  func observe(_ request: HTTPRequest, replies: Replies) async throws -> HTTPResponse? {
    guard let observer else { return nil }
    let path = request.target.pathSegments.compactMap(\.decoded)
    switch path {
    case ["health", "live"]:
      guard isRead(request) else { return Self.readOnly }
      return Self.json(.ok, #"{"status":"live"}"#.utf8)
    case ["health", "ready"]:
      guard isRead(request) else { return Self.readOnly }
      let report = await observer.health.report()
      return Self.json(report.isReady ? .ok : .serviceUnavailable, report.json)
    // A hub could have this name; those who manage it say their api-version.
    case ["metrics"] where request.target.queryItem(WireName.apiVersionParameter) == nil:
      guard isRead(request) else { return Self.readOnly }
      try await authorizeMetrics(request, observer.readers)
      return await observer.metrics.response()
    default: return nil
    }
  }

  private func isRead(_ request: HTTPRequest) -> Bool {
    request.method == .get || request.method == .head
  }

  private static let readOnly = HTTPResponse(
    .methodNotAllowed, headers: ["Allow": "GET, HEAD"])

  private static func json(
    _ status: HTTPStatus, _ body: some Sequence<UInt8>
  ) -> HTTPResponse {
    var response = HTTPResponse(status, body: .bytes(Array(body) + [UInt8(ascii: "\n")]))
    response.headers.add(WireName.contentType, WireName.json)
    response.headers.add("Cache-Control", "no-store")
    return response
  }

  private func authorizeMetrics(
    _ request: HTTPRequest, _ readers: HubObserver.Readers
  ) async throws(HubFailure) {
    let header = request.headers[WireName.authorization]
    switch readers {
    case .everybody: return
    case .bearer(let token):
      if let header, BearerToken.matches(header, token) { return }
    case .nobodyElse: break
    }
    guard header?.hasPrefix("SharedAccessSignature") == true else {
      throw HubFailure(
        status: 401,
        message: "Metrics are for operators: set metricsToken and send it as a bearer token, set "
          + "metricsPort for a listener of their own, or sign with a Manage policy of the namespace"
      )
    }
    _ = try await service.authorizeManagement(
      header: header, hub: nil, host: request.headers["Host"], path: request.target.description,
      publicNames: configuration.publicHosts, ofNamespace: true)
  }
}

/// What is known of a request when it is answered.
struct RequestNote {
  /// `nil` for one that nobody understood, or that was refused before.
  var operation: String?
  var hub: String?
}

extension HubAPI {
  /// Counts a reply and logs it: refusals as they deserve, the rest only for those who ask.
  func finished(
    _ request: HTTPRequest, _ response: HTTPResponse, _ note: RequestNote, _ replies: Replies,
    since start: ContinuousClock.Instant
  ) {
    guard let observer else { return }
    let seconds = start.duration(to: .now) / .seconds(1)
    let status = response.status.rawValue
    service.dispatcher.metrics.replied(status: status, seconds: seconds)
    let level: LogLevel = status >= 500 ? .warning : status >= 400 ? .info : .debug
    observer.log(
      level, "request", "",
      [
        ("method", .text(request.method.rawValue)),
        ("operation", .text(note.operation ?? "unknown")), ("hub", .text(note.hub ?? "")),
        ("status", .number(status)), ("ms", .decimal(seconds * 1000)),
        ("trackingId", .text(replies.trackingID.description)),
      ])
  }
}

/// A token in `Authorization: Bearer …`.
package enum BearerToken {
  /// Takes the same time for every wrong token of a length.
  package static func matches(_ header: String, _ token: String) -> Bool {
    let scheme = "bearer "
    guard header.prefix(scheme.count).lowercased() == scheme else { return false }
    let given = Array(header.dropFirst(scheme.count).utf8)
    let wanted = Array(token.utf8)
    guard given.count == wanted.count, !wanted.isEmpty else { return false }
    return zip(given, wanted).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
  }
}

/// `/metrics` on a listener of its own, and nothing else.
package struct MetricsHandler: HTTPHandler {
  private let page: MetricsPage
  /// `nil` asks for none.
  private let token: String?

  package init(page: MetricsPage, token: String?) {
    self.page = page
    self.token = token
  }

  package func respond(to request: HTTPRequest) async -> HTTPResponse {
    guard request.target.pathSegments.compactMap(\.decoded) == ["metrics"] else {
      return HTTPResponse(.notFound, text: "here is only /metrics\n")
    }
    guard request.method == .get || request.method == .head else {
      return HTTPResponse(.methodNotAllowed, headers: ["Allow": "GET, HEAD"])
    }
    if let token {
      guard let header = request.headers[WireName.authorization],
        BearerToken.matches(header, token)
      else { return HTTPResponse(HTTPStatus(rawValue: 401), text: "wants the bearer token\n") }
    }
    return await page.response()
  }

  package func reject(_ status: HTTPStatus, request: HTTPRequest) -> HTTPResponse {
    HTTPResponse(status)
  }
}

extension HealthReport {
  var json: [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("status", isReady ? "ready" : "unready")
    for (name, findings) in [("reasons", reasons), ("warnings", warnings)] {
      writer.array(name, findings) { writer, finding in
        writer.beginObject()
        writer.member("code", finding.code)
        writer.member("text", finding.text)
        writer.endObject()
      }
    }
    writer.endObject()
    return writer.bytes
  }
}
