import Foundation
package import HTTP2

/// The address and the limits of a listener. Limits apply per connection unless stated otherwise.
package struct HTTPConfiguration: Sendable {
  /// A numeric IPv4 or IPv6 address, or `localhost`; `0.0.0.0` and `::` mean all interfaces.
  package var host = "127.0.0.1"
  /// The port; 0 picks a free one, which `HTTPListener.port` returns.
  package var port: UInt16 = 0
  /// The certificate for TLS in place of plain HTTP; `HTTPListener.replaceIdentity` changes it
  /// while the server runs.
  package var tls: TLSIdentity?
  /// Whether a TLS client that offers `h2` by ALPN is served HTTP/2; any other gets HTTP/1.1.
  package var offersHTTP2 = true
  /// The number of threads that move bytes and start handlers; by default one per processor, 2 to
  /// 16.
  package var threads = min(max(ProcessInfo.processInfo.activeProcessorCount, 2), 16)

  /// The maximum size of target, header names and values together; beyond it the reply is 431.
  package var maxHeaderBytes = 16 * 1024
  /// The maximum number of body bytes, without chunk framing; beyond it the reply is 413, at once
  /// if `Content-Length` shows it.
  package var maxBodyBytes = 1024 * 1024
  /// The memory for request bodies of all connections. A connection that exceeds its share gets
  /// 429, or its stream is reset with REFUSED_STREAM.
  package var bodyBudget = BodyBudget.process
  /// The number of excess body bytes that are read and discarded, so that a client that writes
  /// before it reads still sees the 413; beyond it the connection is cut, or the HTTP/2 stream
  /// reset.
  package var maxDiscardedBytes = 1024 * 1024

  /// The maximum number of concurrent requests on an HTTP/2 connection.
  package var maxStreams = 100
  /// The maximum number of open connections. To admit one more, connections without a complete
  /// request in progress are closed: those of the address with the most, longest idle first.
  package var maxConnections = 4096
  /// The table in which they are counted together with those of other listeners; `nil` for a
  /// separate one.
  package var connections: HTTPConnections?
  /// The maximum number of open connections per IPv4 address or IPv6 /64 network; further ones are
  /// closed at once. 0 means no limit.
  package var maxConnectionsPerAddress = 0
  /// Whether that limit applies to this machine's own addresses too, from which a proxy connects.
  package var limitsLoopback = true
  /// Proxies that represent many clients, so that `maxConnectionsPerAddress` does not apply to
  /// them.
  package var trustedProxies = TrustedProxies()
  /// The maximum number of handlers running at once over all connections; further requests wait in
  /// order of arrival.
  package var maxConcurrentRequests = 1024

  /// The maximum time that a connection may wait for the first byte of its (next) request.
  package var idleTimeout = Duration.seconds(60)
  /// The maximum time from the first byte of a request to its last. If the system does not report
  /// the first byte, the time starts with the end of the first line.
  package var requestReadTimeout = Duration.seconds(30)
  /// The maximum time for the client to read a reply that is not a stream.
  package var responseWriteTimeout = Duration.seconds(60)
  /// The maximum time that one write of a stream may wait for the client to read.
  package var streamStallTimeout = Duration.seconds(5)

  /// The clock for time limits.
  package var clock = HTTPClock.system

  /// The observer of all connections.
  package var observer: (any HTTPConnectionObserver)?

  package init() {}
}

/// An observer of connections; called on the threads that serve them, so it must not block.
package protocol HTTPConnectionObserver: Sendable {
  /// Called when a connection is accepted, before anything is read, TLS included.
  ///
  /// - Parameter number: The number as in `HTTPRequest.connection`.
  /// - Returns: The way to end it at once; `nil` serves it.
  func connectionOpened(_ number: UInt64) -> HTTPCut?
  /// Called once for each opened connection when it has ended.
  func connectionClosed(_ number: UInt64)
}

/// The identity that a server presents to its clients: a certificate with its chain, and the
/// private key.
package struct TLSIdentity: Sendable, Equatable, CustomStringConvertible,
  CustomDebugStringConvertible
{
  /// The certificates in PEM: the server's own first, then its issuers in order.
  package let certificatePEM: String
  /// The unencrypted private key in PEM. Secret.
  package let privateKeyPEM: String

  package init(certificatePEM: String, privateKeyPEM: String) {
    self.certificatePEM = certificatePEM
    self.privateKeyPEM = privateKeyPEM
  }

  package var description: String { "a TLS identity" }
  package var debugDescription: String { description }
}
