import Foundation
package import HTTP2

/// Where a listener listens and what it bears. Limits hold per connection unless said otherwise.
package struct HTTPConfiguration: Sendable {
  /// A numeric IPv4 or IPv6 address, or `localhost`; `0.0.0.0` and `::` mean all interfaces.
  package var host = "127.0.0.1"
  /// 0 takes a free port; `HTTPListener.port` then says which.
  package var port: UInt16 = 0
  /// Speaks TLS with this certificate in place of plain HTTP; `HTTPListener.replaceIdentity`
  /// changes it while the server runs.
  package var tls: TLSIdentity?
  /// Whether a TLS client that offers `h2` by ALPN is served HTTP/2; any other gets HTTP/1.1.
  package var offersHTTP2 = true
  /// Threads that move bytes and start handlers; by default one for each processor, 2 to 16.
  package var threads = min(max(ProcessInfo.processInfo.activeProcessorCount, 2), 16)

  /// Target, header names and values together; more is 431.
  package var maxHeaderBytes = 16 * 1024
  /// Body bytes, chunks joined; more is 413, at once if `Content-Length` says so.
  package var maxBodyBytes = 1024 * 1024
  /// What bodies of requests may take over all connections; a connection that goes beyond its share
  /// is answered 429, or its stream reset with REFUSED_STREAM.
  package var bodyBudget = BodyBudget.process
  /// How much of a body beyond the limit is read and thrown away, so that a client that writes
  /// before it reads still sees its 413; after that the connection is cut, or the stream of HTTP/2
  /// reset.
  package var maxDiscardedBytes = 1024 * 1024

  /// Requests at a time on one HTTP/2 connection.
  package var maxStreams = 100
  /// Open connections in all. For one more, others are closed that have no whole request under way:
  /// those of the address that has most, the longest without one first.
  package var maxConnections = 4096
  /// Counts them together with those of the other listeners that have the same table.
  package var connections: HTTPConnections?
  /// Open connections of one IPv4 address or IPv6 network of 64 bits; more are closed at once. 0
  /// means no limit.
  package var maxConnectionsPerAddress = 0
  /// Whether that limit holds for this machine's own addresses too, from which a proxy connects.
  package var limitsLoopback = true
  /// Stand for many clients, so `maxConnectionsPerAddress` does not count them.
  package var trustedProxies = TrustedProxies()
  /// Handlers running at once over all connections; more requests wait in order of arrival.
  package var maxConcurrentRequests = 1024

  /// How long a connection may wait for the first byte of its (next) request.
  package var idleTimeout = Duration.seconds(60)
  /// How long a request may take from its first byte to its last. Where the system does not tell
  /// of the first byte, the time starts with the end of the first line.
  package var requestReadTimeout = Duration.seconds(30)
  /// How long the client may take to read a reply that is not a stream.
  package var responseWriteTimeout = Duration.seconds(60)
  /// How long one write of a stream may wait for the client to read.
  package var streamStallTimeout = Duration.seconds(5)

  /// What the limits of time are counted by.
  package var clock = HTTPClock.system

  /// Notified of every connection.
  package var observer: (any HTTPConnectionObserver)?

  package init() {}
}

/// Told when connections come and go; called on the threads that serve them, so it must not block.
package protocol HTTPConnectionObserver: Sendable {
  /// A connection was accepted; nothing has been read yet, TLS included.
  ///
  /// - Parameter number: As in `HTTPRequest.connection`.
  /// - Returns: How to end it at once; `nil` serves it.
  func connectionOpened(_ number: UInt64) -> HTTPCut?
  /// The connection has ended; called once for each that was opened.
  func connectionClosed(_ number: UInt64)
}

/// What a server shows its clients to prove who it is: a certificate with its chain, and the
/// private key.
package struct TLSIdentity: Sendable, Equatable, CustomStringConvertible,
  CustomDebugStringConvertible
{
  /// PEM; the server's own certificate first, then its issuers in order.
  package let certificatePEM: String
  /// PEM, not encrypted. Secret.
  package let privateKeyPEM: String

  package init(certificatePEM: String, privateKeyPEM: String) {
    self.certificatePEM = certificatePEM
    self.privateKeyPEM = privateKeyPEM
  }

  package var description: String { "a TLS identity" }
  package var debugDescription: String { description }
}
