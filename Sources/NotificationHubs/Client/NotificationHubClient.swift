import Foundation

/// Talks to one hub, on Azure or of your own.
///
/// ```swift
/// let client = NotificationHubClient(
///   connectionString: try ConnectionString(text), hub: "my-hub")
/// try await client.createOrReplace(installation)
/// let receipt = try await client.send(
///   .template(["message": "Hello!"]), to: "12345" && !"beta")
/// ```
/// Every call throws ``NotificationHubError``, or `CancellationError` when its task is cancelled; a
/// failure to get a token is passed on as it is.
public struct NotificationHubClient: Sendable {
  public let endpoint: ServiceEndpoint
  /// The hub's name.
  public let hub: String
  private let tokens: TokenProvider
  private let transport: any HTTPTransport
  private let retry: RetryPolicy

  /// A client that makes its own tokens from a key.
  public init(
    connectionString: ConnectionString, hub: String,
    transport: any HTTPTransport = URLSessionTransport.shared, retry: RetryPolicy = .standard
  ) {
    self.init(
      endpoint: connectionString.endpoint, hub: hub,
      tokens: TokenProvider(connectionString: connectionString, hub: hub), transport: transport,
      retry: retry)
  }

  /// A client whose tokens come from elsewhere, so that it holds no key.
  public init(
    endpoint: ServiceEndpoint, hub: String, tokens: TokenProvider,
    transport: any HTTPTransport = URLSessionTransport.shared, retry: RetryPolicy = .standard
  ) {
    self.endpoint = endpoint
    self.hub = hub
    self.tokens = tokens
    self.transport = transport
    self.retry = retry
  }

  // MARK: Installations

  /// Creates the installation, or puts it in the place of the one with its id. May be repeated.
  public func createOrReplace(_ installation: Installation) async throws {
    _ = try await perform(
      "PUT", ["installations", installation.installationID],
      headers: [WireName.contentType: WireName.json], body: installation.jsonData)
  }

  /// Reads an installation.
  ///
  /// - Throws: ``NotificationHubError`` of the kind `notFound` when there is none.
  public func installation(_ installationID: String) async throws -> Installation {
    let reply = try await perform("GET", ["installations", installationID])
    do { return try Installation(jsonData: reply.body) } catch {
      throw unexpected(reply, error.message)
    }
  }

  /// Changes parts of an installation: all of the operations, or none.
  public func patch(
    installation installationID: String, _ patch: InstallationPatch
  ) async throws {
    _ = try await perform(
      "PATCH", ["installations", installationID],
      headers: [WireName.contentType: "application/json-patch+json"], body: patch.jsonData)
  }

  /// Deletes an installation. May be repeated.
  public func delete(installation installationID: String) async throws {
    _ = try await perform("DELETE", ["installations", installationID])
  }

  // MARK: Sending

  /// Sends to every device whose tags satisfy the expression.
  @discardableResult
  public func send(
    _ notification: PushNotification, to audience: TagExpression
  ) async throws -> SendReceipt {
    try await send(notification, tags: audience.description)
  }

  /// Sends to every device of the hub.
  @discardableResult
  public func broadcast(_ notification: PushNotification) async throws -> SendReceipt {
    try await send(notification, tags: nil)
  }

  private func send(
    _ notification: PushNotification, tags: String?
  ) async throws -> SendReceipt {
    var headers = notification.headers
    headers[WireName.contentType] = notification.contentType
    headers[WireName.format] = notification.format.wireWord
    headers[WireName.tags] = tags
    let reply = try await perform("POST", ["messages"], headers: headers, body: notification.body)
    return SendReceipt(reply: reply)
  }

  /// What has become of a notification so far.
  public func telemetry(of notificationID: String) async throws -> NotificationTelemetry {
    let reply = try await perform("GET", ["messages", notificationID])
    do { return try NotificationTelemetry(xml: reply.body) } catch {
      throw unexpected(reply, error.message)
    }
  }

  private func unexpected(_ reply: TransportReply, _ detail: String) -> NotificationHubError {
    NotificationHubError(
      kind: .unexpectedReply, status: reply.status, detail: detail,
      trackingID: reply.header(WireName.trackingID))
  }
}

extension NotificationHubClient {
  /// What servers see of this library.
  private static let userAgent = "NotificationHubs-Swift (api-version=\(WireName.apiVersion))"

  /// Sends one request below the hub until it succeeds or no further try is worth it.
  private func perform(
    _ method: String, _ path: [String], headers: [String: String] = [:], body: Data? = nil
  ) async throws -> TransportReply {
    var request = TransportRequest(
      method: method, url: try url(path), headers: headers, body: body)
    request.headers["User-Agent"] = Self.userAgent
    for (name, value) in request.headers where value.utf8.contains(where: { $0 < 0x20 }) {
      throw NotificationHubError(
        kind: .badRequest, detail: "the header '\(name)' must not have control characters")
    }
    var failures = 0
    while true {
      let failure: NotificationHubError
      do {
        return try await attempt(&request)
      } catch let error as NotificationHubError where error.isWorthRetrying {
        failure = error
      }
      failures += 1
      guard let pause = retry.delay(afterFailures: failures, retryAfter: failure.retryAfter) else {
        throw failure
      }
      try await retry.sleep(pause)
    }
  }

  private func attempt(_ request: inout TransportRequest) async throws -> TransportReply {
    let token = try await tokens.token()
    request.headers[WireName.authorization] = token.text
    let reply: TransportReply
    do {
      reply = try await transport.send(request)
    } catch {
      // A cancelled task shows as an error of the transport; the caller should see what it is.
      try Task.checkCancellation()
      throw NotificationHubError(
        kind: .unreachable, detail: "no reply from \(endpoint.url): \(Self.reason(error))",
        underlying: error)
    }
    guard !(200...299).contains(reply.status) else { return reply }
    if reply.status == 401 { await tokens.invalidate(token) }
    throw NotificationHubError(reply: reply)
  }

  private static func reason(_ error: any Error) -> String {
    (error as? URLError)?.localizedDescription ?? "\(error)"
  }

  private func url(_ path: [String]) throws -> URL {
    // A hub's own path may have slashes.
    let segments = (hub.split(separator: "/").map(String.init) + path)
      .map(\.percentEncoded).joined(separator: "/")
    let text = "\(endpoint.url)/\(segments)?\(WireName.apiVersionParameter)=\(WireName.apiVersion)"
    guard let url = URL(string: text) else {
      throw NotificationHubError(kind: .badRequest, detail: "'\(text)' is no valid address")
    }
    return url
  }
}
