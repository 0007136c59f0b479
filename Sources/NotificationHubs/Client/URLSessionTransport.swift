public import Foundation

#if canImport(FoundationNetworking)
  public import FoundationNetworking
#endif

/// A transport over `URLSession`, which keeps connections open between requests.
///
/// A redirect is a reply like any other, with its status: followed, it would carry the request's
/// token to another host. ``TransportRequest/followsRedirects`` is for requests without credentials.
public struct URLSessionTransport: StreamingTransport {
  /// A transport with its own session for hub traffic, without cookies and cache.
  public static let shared = URLSessionTransport()

  /// The largest body that is collected in memory, in bytes. A hub's pages end far below it.
  static let replyLimit = 32 << 20

  private let session: URLSession
  /// The delegate of ``session``; `nil` if the caller supplied the session.
  private let collector: ReplyCollector?
  private let timeout: TimeInterval

  /// Creates a transport.
  ///
  /// - Parameters:
  ///   - session: The session to use; `nil` creates an ephemeral one. A session of your own follows
  ///     redirects unless its delegate refuses them, and passes on streamed bodies in one piece. On
  ///     Linux it also needs a delegate that answers authentication challenges: without one
  ///     FoundationNetworking never completes a request whose reply is 401 with
  ///     `WWW-Authenticate: Basic`.
  ///   - timeout: The maximum time without data on a connection, in seconds.
  public init(session: URLSession? = nil, timeout: TimeInterval = 30) {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpCookieAcceptPolicy = .never
    configuration.httpShouldSetCookies = false
    configuration.urlCache = nil
    collector = session == nil ? ReplyCollector() : nil
    self.session =
      session ?? URLSession(configuration: configuration, delegate: collector, delegateQueue: nil)
    self.timeout = timeout
  }

  /// Sends the request and returns the whole reply.
  ///
  /// - Throws: `URLError`, or `CancellationError` if the task is cancelled.
  public func send(_ request: TransportRequest) async throws -> TransportReply {
    try await exchange(request)
  }

  /// Sends the request and passes on its body as it arrives; a session supplied by the caller passes
  /// it on in one piece at the end.
  public func stream(
    _ request: TransportRequest, _ receive: @escaping @Sendable (Data) throws -> Void
  ) async throws -> TransportReply {
    let reply = try await exchange(request, receive)
    guard collector == nil, (200...299).contains(reply.status) else { return reply }
    try receive(reply.body)
    return TransportReply(status: reply.status, headers: reply.headers)
  }

  private func outgoing(_ request: TransportRequest) -> URLRequest {
    var outgoing = URLRequest(url: request.url, timeoutInterval: timeout)
    outgoing.httpMethod = request.method
    outgoing.httpBody = request.body
    for (name, value) in request.headers { outgoing.setValue(value, forHTTPHeaderField: name) }
    return outgoing
  }

  private static func reply(_ reply: URLResponse, _ body: Data) throws -> TransportReply {
    guard let reply = reply as? HTTPURLResponse else { throw URLError(.badServerResponse) }
    var headers: [String: String] = [:]
    for (name, value) in reply.allHeaderFields {
      if let name = name as? String { headers[name] = "\(value)" }
    }
    return TransportReply(status: reply.statusCode, headers: headers, body: body)
  }

  private func exchange(
    _ request: TransportRequest, _ receive: (@Sendable (Data) throws -> Void)? = nil
  ) async throws -> TransportReply {
    if let collector {
      let (body, reply) = try await collector.reply(
        to: outgoing(request), over: session, followsRedirects: request.followsRedirects,
        limit: Self.replyLimit, receive: receive)
      return try Self.reply(reply, body)
    }
    do {
      let (body, reply) = try await session.data(for: outgoing(request))
      return try Self.reply(reply, body)
    } catch {
      // The system throws `URLError.cancelled` for it.
      try Task.checkCancellation()
      throw error
    }
  }
}
