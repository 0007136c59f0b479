/// A request, read whole.
package struct HTTPRequest: Sendable {
  package var method: HTTPMethod
  package var target: HTTPTarget
  package var headers: HTTPHeaders
  /// The body, chunks joined, at most `HTTPConfiguration.maxBodyBytes`; empty if there is none.
  package var body: [UInt8]
  /// The peer's numeric address without port: `127.0.0.1`, `::1`; empty if unknown.
  package var remoteAddress: String
  /// Whether it came over TLS.
  package var isSecure: Bool
  /// The connection's number, counted by the listener from 1; 0 for a request made by hand.
  package var connection: UInt64

  /// A request made by hand, for handlers tested without a socket.
  package init(
    method: HTTPMethod, target: HTTPTarget, headers: HTTPHeaders = [:], body: [UInt8] = [],
    remoteAddress: String = "", isSecure: Bool = false, connection: UInt64 = 0
  ) {
    self.method = method
    self.target = target
    self.headers = headers
    self.body = body
    self.remoteAddress = remoteAddress
    self.isSecure = isSecure
    self.connection = connection
  }
}
