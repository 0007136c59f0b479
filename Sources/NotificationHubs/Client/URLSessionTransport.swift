public import Foundation

#if canImport(FoundationNetworking)
  public import FoundationNetworking
#endif

/// Sends over `URLSession`, which keeps connections open between requests.
public struct URLSessionTransport: StreamingTransport {
  /// A session of its own for hub traffic: no cookies, no cache.
  public static let shared = URLSessionTransport()

  private let session: URLSession
  #if canImport(FoundationNetworking)
    /// The delegate of ``session``; `nil` when the session is the caller's.
    private let collector: ReplyCollector?
  #endif
  private let timeout: TimeInterval

  /// - Parameters:
  ///   - session: `nil` makes an ephemeral one. On Linux a session of your own needs a delegate that
  ///     answers authentication challenges: without one FoundationNetworking never ends a request
  ///     whose reply is 401 with `WWW-Authenticate: Basic`.
  ///   - timeout: How long a connection may be silent, in seconds.
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

  public func send(_ request: TransportRequest) async throws -> TransportReply {
    let (body, reply) = try await exchange(outgoing(request))
    return try Self.reply(reply, body)
  }

  /// On Linux a session of the caller's own hands the body on in one piece, at its end.
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
        // Whole lines, so that an event is handed on when it is there.
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
      // The system calls it `URLError.cancelled`.
      try Task.checkCancellation()
      throw error
    }
  }
}
