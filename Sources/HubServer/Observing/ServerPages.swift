package import HTTPServer
package import HubCore
import NotificationHubs
import Wire

/// The information about the server for operators, and its permitted readers. A class, so that a
/// request copies one reference.
package final class HubObserver: Sendable {
  /// The permitted readers of `/metrics`, besides those with a Manage token of the namespace.
  package enum Readers: Sendable {
    case nobodyElse
    /// Anyone with this bearer token.
    case bearer(String)
    case everybody
  }

  package let log: HubLog
  package let health: HubHealth
  package let metrics: MetricsPage
  package let readers: Readers
  let refusals = RefusalLog()

  package init(log: HubLog, health: HubHealth, metrics: MetricsPage, readers: Readers) {
    self.log = log
    self.health = health
    self.metrics = metrics
    self.readers = readers
  }
}

/// Pages about the server itself: `/$health`, a page for browsers, and with an observer
/// `/health/live`, `/health/ready` and `/metrics` (`docs/reference/metrics.md`).
struct ServerPages {
  let api: HubAPI

  /// The maximum length of the paths below, which makes it cheap to skip the paths of devices.
  private static let longestPath = 24

  /// Answers requests that need no token and are not counted.
  func open(_ request: HTTPRequest) -> HTTPResponse? {
    guard request.target.rawPath.count <= Self.longestPath else { return nil }
    return health(request) ?? frontPage(request)
  }

  /// Reports that the server is running, for simple load balancers.
  private func health(_ request: HTTPRequest) -> HTTPResponse? {
    let segments = request.target.pathSegments
    guard segments.count == 1, segments[0].decoded == String(HubAPI.healthPath.dropFirst()) else {
      return nil
    }
    return isRead(request) ? HTTPResponse(.ok, text: "ok\n") : Self.readOnly
  }

  /// The page at the root if the portal is disabled.
  ///
  /// - Returns: `nil` unless a browser requests the root: clients get the replies of the API.
  private func frontPage(_ request: HTTPRequest) -> HTTPResponse? {
    guard request.isOfBrowserAtRoot else { return nil }
    return HTTPResponse(
      .ok,
      headers: [
        "Content-Type": "text/html; charset=utf-8", "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
        "Cache-Control": "no-store",
      ], body: .bytes(Array(Self.frontPage.utf8)))
  }

  private static let frontPage = """
    <!doctype html>
    <html lang="en"><meta charset="utf-8"><title>Belfry</title>
    <style>body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; \
    padding: 0 1rem }</style>
    <h1>Belfry</h1>
    <p>This is a push notification hub. Its address is for programs: clients of Azure Notification \
    Hubs, the Swift SDK and the command line, each with a connection string.</p>
    <p>On the machine that it runs on, <code>belfry hub list</code> shows the hubs, \
    <code>belfry sas --connection-string</code> prints a connection string, and \
    <code>belfry --help</code> tells the rest. <a href="/$health">/$health</a> says whether it serves.</p>
    </html>

    """

  /// Whether it is worth calling ``observe(_:)``, whose frame is larger than that of most requests.
  func mayObserve(_ request: HTTPRequest) -> Bool {
    api.observer != nil && request.target.rawPath.count <= Self.longestPath
  }

  /// Answers requests about the server itself, for those that ``mayObserve(_:)``.
  /// - Returns: `nil` if the request is for something else.
  func observe(_ request: HTTPRequest) async throws -> HTTPResponse? {
    guard let observer = api.observer else { return nil }
    let path = request.target.pathSegments.compactMap(\.decoded)
    switch path {
    case ["health", "live"]:
      guard isRead(request) else { return Self.readOnly }
      return Self.json(.ok, #"{"status":"live"}"#.utf8)
    case ["health", "ready"]:
      guard isRead(request) else { return Self.readOnly }
      let report = await observer.health.report()
      return Self.json(report.isReady ? .ok : .serviceUnavailable, report.json)
    // A hub could have this name; its managers pass an api-version.
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
    _ = try await api.service.authorizeManagement(
      api.tokenCall(request), hub: nil, ofNamespace: true)
  }
}

/// A token in `Authorization: Bearer …`.
package enum BearerToken {
  /// Compares in constant time for wrong tokens of the same length.
  package static func matches(_ header: String, _ token: String) -> Bool {
    let scheme = "bearer "
    guard header.prefix(scheme.count).lowercased() == scheme else { return false }
    let given = Array(header.dropFirst(scheme.count).utf8)
    let wanted = Array(token.utf8)
    guard given.count == wanted.count, !wanted.isEmpty else { return false }
    return zip(given, wanted).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
  }
}

/// A handler for a separate listener that serves only `/metrics`.
package struct MetricsHandler: HTTPHandler {
  private let page: MetricsPage
  /// The required token; `nil` requires none.
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
    JSONWriter.object { writer in
      writer.member("status", isReady ? "ready" : "unready")
      for (name, findings) in [("reasons", reasons), ("warnings", warnings)] {
        writer.objects(name, findings) { writer, finding in
          writer.member("code", finding.code)
          writer.member("text", finding.text)
        }
      }
    }
  }
}
