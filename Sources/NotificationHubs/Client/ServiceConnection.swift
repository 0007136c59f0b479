import Foundation
import Wire

/// The common part of the hub and namespace clients: authorized requests with retries.
struct ServiceConnection: Sendable {
  let endpoint: ServiceEndpoint
  let tokens: TokenProvider
  let transport: any HTTPTransport
  let retry: RetryPolicy

  /// The User-Agent header of this library.
  private static let userAgent = "NotificationHubs-Swift (api-version=\(WireName.apiVersion))"

  /// Path segments whose dollar sign is not percent-encoded.
  private static let verbatim = [
    WireName.batch, WireName.resources, ActivityList.namespaceSegment,
  ]

  /// Sends a request, retrying until it succeeds or a further retry is pointless.
  ///
  /// - Parameters:
  ///   - id: The id in the path, not percent-encoded.
  ///   - query: Values that are not percent-encoded, except for a continuation token, which is sent
  ///     back unchanged.
  func perform(
    _ operation: HubOperation, hub: String = "", _ id: String? = nil, query: [URLQueryItem] = [],
    headers: [String: String] = [:], body: Data? = nil
  ) async throws -> TransportReply {
    var request = try request(operation, hub, id, query: query)
    request.headers.merge(headers) { own, _ in own }
    request.body = body
    for (name, value) in request.headers where value.utf8.contains(where: { $0 < 0x20 }) {
      throw NotificationHubError(
        kind: .badRequest, detail: "the header '\(name)' must not have control characters")
    }
    let right = operation.right(hasFilter: query.contains { $0.name == WireName.filter })
    var failures = 0
    while true {
      let failure: NotificationHubError
      do {
        return try await attempt(&request, right) { try await transport.send($0) }
      } catch let error as NotificationHubError where error.isWorthRetrying {
        failure = error
      }
      failures += 1
      guard let pause = retry.delay(afterFailures: failures, retryAfter: failure.retryAfter) else {
        throw failure
      }
      retry.report(failure, pause)
      try await retry.sleep(pause)
    }
  }

  /// Sends a GET without retries, and passes on its reply as it arrives until the server ends it.
  func stream(
    _ operation: HubOperation, hub: String, _ id: String, over transport: any StreamingTransport,
    _ receive: @escaping @Sendable (Data) throws -> Void
  ) async throws {
    var request = try request(operation, hub, id)
    _ = try await attempt(&request, operation.right(hasFilter: false)) { request in
      try await transport.stream(request, receive)
    }
  }

  private func request(
    _ operation: HubOperation, _ hub: String, _ id: String?, query: [URLQueryItem] = []
  ) throws -> TransportRequest {
    // Azure ignores the second header.
    TransportRequest(
      method: operation.method, url: try url(operation.path(hub: hub, id: id), query),
      headers: ["User-Agent": Self.userAgent, WireName.extensions: "true"])
  }

  private func attempt(
    _ request: inout TransportRequest, _ right: String,
    _ exchange: (TransportRequest) async throws -> TransportReply
  ) async throws -> TransportReply {
    try Task.checkCancellation()
    let token = try await tokens.token()
    request.headers[WireName.authorization] = token.text
    let reply: TransportReply
    do {
      reply = try await exchange(request)
    } catch let error as NotificationHubError {
      throw error
    } catch {
      // The transport reports a cancelled task as an error of its own; callers expect
      // `CancellationError`.
      try Task.checkCancellation()
      throw NotificationHubError(
        kind: .unreachable, detail: "no reply from \(endpoint.url): \(Self.reason(error))",
        underlying: error)
    }
    guard !(200...299).contains(reply.status) else { return reply }
    if reply.status == 401 { await tokens.invalidate(token) }
    throw NotificationHubError(reply: reply, right: right)
  }

  private static func reason(_ error: any Error) -> String {
    (error as? URLError)?.localizedDescription ?? "\(error)"
  }

  private func url(_ path: [String], _ query: [URLQueryItem]) throws -> URL {
    for segment in path where !segment.isPathSegment {
      throw NotificationHubError(
        kind: .badRequest,
        detail: "'\(segment.printable)' cannot be an id or a name: URL layers would change the path"
      )
    }
    let segments = path.map { Self.verbatim.contains($0) ? $0 : $0.percentEncoded }
      .joined(separator: "/")
    var text = "\(endpoint.url)/\(segments)?\(WireName.apiVersionParameter)=\(WireName.apiVersion)"
    for item in query {
      text += "&\(item.name)"
      guard let value = item.value else { continue }
      text += "=" + (item.name == WireName.continuationParameter ? value : value.percentEncoded)
    }
    // Foundation may repair or normalize a URL; a changed path would address another resource.
    guard let url = URL(string: text), url.absoluteString == text else {
      throw NotificationHubError(
        kind: .badRequest, detail: "'\(text.printable)' is no valid address")
    }
    return url
  }
}

extension TransportReply {
  /// Decodes the body.
  /// - Throws: ``NotificationHubError`` of kind `unexpectedReply` if it cannot be decoded.
  func read<T>(
    _ decode: (Data) throws(WireFormatError) -> T
  ) throws(NotificationHubError) -> T {
    do { return try decode(body) } catch {
      throw NotificationHubError(
        kind: .unexpectedReply, status: status, detail: error.message,
        trackingID: header(WireName.trackingID))
    }
  }
}
