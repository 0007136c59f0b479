/// Why a client connection could not be made or has ended.
package struct HTTP2ConnectionError: Error, Sendable, Equatable, CustomStringConvertible {
  package enum Kind: Sendable, Equatable {
    /// The host name has no address.
    case lookup
    /// The host name has addresses, and the configuration allows none of them.
    case refusedAddress
    /// TCP: refused, unreachable, or ended by the peer before the connection was ready.
    case connect
    /// Connecting took longer than the connect timeout.
    case connectTimedOut
    /// The TLS handshake failed for another reason than those below.
    case tls
    /// The peer's certificate is not trusted, expired, or for another host.
    case untrustedPeer
    /// The peer refused our client certificate, or the lack of one.
    case tlsRejectedCertificate
    /// The peer did not choose `h2` by ALPN; its operator has to offer it, or the address is wrong.
    case wrongProtocol
    /// The configuration's certificate, key or anchors cannot be used.
    case configuration
    /// The peer broke the HTTP/2 protocol.
    case protocolViolation
    /// No answer to a PING.
    case pingTimedOut
    /// The peer closed or reset the connection.
    case lost
    /// The peer sent GOAWAY and its last streams have ended, or the stream ids are used up.
    case drained
    /// Closed after the configured idle time.
    case idle
    /// Closed by `close()`.
    case closed
    /// The task that waited in `ready()` was cancelled; the connection goes on.
    case cancelled
  }

  package let kind: Kind
  /// For a person: what failed, at which host, and why.
  package let reason: String

  package init(_ kind: Kind, _ reason: String) {
    self.kind = kind
    self.reason = reason
  }

  package var description: String { reason }
}
