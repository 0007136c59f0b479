public import Foundation
import Wire

/// Sends a client's requests. ``URLSessionTransport`` is the default; implement your own for a
/// private certificate authority or for tests.
public protocol HTTPTransport: Sendable {
  /// Sends the request and returns the reply, whatever its status.
  ///
  /// - Throws: An error if there is no reply, which makes the client retry; `CancellationError` if
  ///   the task is cancelled.
  func send(_ request: TransportRequest) async throws -> TransportReply
}

/// One HTTP request.
public struct TransportRequest: Hashable, Sendable {
  /// The HTTP method, such as `GET`.
  public var method: String
  /// The whole URL, including the query.
  public var url: URL
  /// The header fields by name.
  public var headers: [String: String]
  /// The body; `nil` for none.
  public var body: Data?
  /// Whether redirects to addresses with https are followed. Only for a request without
  /// credentials, which would go to the other host, too. Otherwise a redirect is the reply.
  public var followsRedirects = false

  /// Creates a request.
  public init(method: String, url: URL, headers: [String: String] = [:], body: Data? = nil) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
  }
}

/// One HTTP reply.
public struct TransportReply: Hashable, Sendable {
  /// The status code.
  public var status: Int
  /// The header fields by name, in lower case.
  public let headers: [String: String]
  /// The body; empty if there is none.
  public var body: Data

  /// Creates a reply.
  ///
  /// - Parameter headers: Names in any letter case.
  public init(status: Int, headers: [String: String] = [:], body: Data = Data()) {
    self.status = status
    self.headers = Dictionary(
      headers.map { ($0.key.lowercased(), $0.value) }, uniquingKeysWith: { first, _ in first })
    self.body = body
  }

  /// The value of the header field with that name, in any letter case.
  public func header(_ name: String) -> String? { headers[name.lowercased()] }

  /// The delay of the header `Retry-After` in seconds, which is a number or a date (RFC 9110,
  /// section 10.2.3). A date counts from that of the reply: the clock of a device may be wrong.
  package var retryAfter: Int? {
    guard let value = header(WireName.retryAfter)?.trimmingBlanks else { return nil }
    if let seconds = Int(value) { return seconds }
    guard let end = WireDate.parseHTTP(value) else { return nil }
    let start =
      header("Date").flatMap { WireDate.parseHTTP($0.trimmingBlanks) }
      ?? Int(Date().timeIntervalSince1970)
    return max(end - start, 0)
  }
}
