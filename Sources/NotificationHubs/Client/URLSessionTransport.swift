public import Foundation

#if canImport(FoundationNetworking)
  public import FoundationNetworking
#endif

/// Sends over `URLSession`, which keeps connections open between requests.
public struct URLSessionTransport: HTTPTransport {
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
    var outgoing = URLRequest(url: request.url, timeoutInterval: timeout)
    outgoing.httpMethod = request.method
    outgoing.httpBody = request.body
    for (name, value) in request.headers { outgoing.setValue(value, forHTTPHeaderField: name) }
    let (body, reply) = try await exchange(outgoing)
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
    return try await session.data(for: request)
  }
}
