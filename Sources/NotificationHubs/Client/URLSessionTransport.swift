public import Foundation

#if canImport(FoundationNetworking)
  public import FoundationNetworking
#endif

/// A transport over `URLSession`, which keeps connections open between requests.
public struct URLSessionTransport: StreamingTransport {
  /// A transport with its own session for hub traffic, without cookies and cache.
  public static let shared = URLSessionTransport()

  private let session: URLSession
  #if canImport(FoundationNetworking)
    /// The delegate of ``session``; `nil` if the caller supplied the session.
    private let collector: ReplyCollector?
  #endif
  private let timeout: TimeInterval

  /// Creates a transport.
  ///
  /// - Parameters:
  ///   - session: The session to use; `nil` creates an ephemeral one. On Linux your own session
  ///     needs a delegate that answers authentication challenges: without one FoundationNetworking
  ///     never completes a request whose reply is 401 with `WWW-Authenticate: Basic`.
  ///   - timeout: The maximum time without data on a connection, in seconds.
  public init(session: URLSession? = nil, timeout: TimeInterval = 30) {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpCookieAcceptPolicy = .never
    configuration.httpShouldSetCookies = false
    configuration.urlCache = nil
    #if canImport(FoundationNetworking)
      collector = session == nil ? ReplyCollector() : nil
      self.session =
        session ?? URLSession(configuration: configuration, delegate: collector, delegateQueue: nil)
    #else
      self.session = session ?? URLSession(configuration: configuration)
    #endif
    self.timeout = timeout
  }

  /// Sends the request and returns the whole reply.
  ///
  /// - Throws: `URLError`, or `CancellationError` if the task is cancelled.
  public func send(_ request: TransportRequest) async throws -> TransportReply {
    let (body, reply) = try await exchange(outgoing(request))
    return try Self.reply(reply, body)
  }

  /// Sends the request and passes on its body as it arrives. On Linux, a session supplied by the
  /// caller passes on the body in one piece at the end.
  public func stream(
    _ request: TransportRequest, _ receive: @escaping @Sendable (Data) throws -> Void
  ) async throws -> TransportReply {
    #if canImport(FoundationNetworking)
      if let collector {
        let (body, reply) = try await collector.reply(
          to: outgoing(request), over: session, receive: receive)
        return try Self.reply(reply, body)
      }
      let reply = try await send(request)
      guard (200...299).contains(reply.status) else { return reply }
      try receive(reply.body)
      return TransportReply(status: reply.status, headers: reply.headers)
    #else
      let (bytes, response) = try await session.bytes(for: outgoing(request))
      let reply = try Self.reply(response, Data())
      var piece = Data()
      for try await byte in bytes {
        piece.append(byte)
        // Passes on whole lines, so that an event is delivered as soon as it is complete.
        guard byte == UInt8(ascii: "\n"), (200...299).contains(reply.status) else { continue }
        try receive(piece)
        piece = Data()
      }
      guard (200...299).contains(reply.status) else { return try Self.reply(response, piece) }
      if !piece.isEmpty { try receive(piece) }
      return reply
    #endif
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

  private func exchange(_ request: URLRequest) async throws -> (Data, URLResponse) {
    #if canImport(FoundationNetworking)
      if let collector { return try await collector.reply(to: request, over: session) }
    #endif
    do { return try await session.data(for: request) } catch {
      // The system throws `URLError.cancelled` for it.
      try Task.checkCancellation()
      throw error
    }
  }
}
