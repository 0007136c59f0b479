/// One HTTP/2 connection over TLS to one server: batches in, batches out.
///
/// A thread of its own drives nghttp2 and OpenSSL with blocking `poll`; callers meet it at one
/// lock and one pipe per batch. It connects at once, and never again: when `status.isDraining`,
/// make another.
package final class HTTP2Connection: Sendable {
  let core: ClientCore

  /// Starts to connect; failures show in `ready()`, `status` and the replies.
  package init(_ configuration: HTTP2ConnectionConfiguration) {
    core = ClientCore(configuration)
    core.start()
  }

  deinit { core.close() }

  /// What the connection is doing now.
  package var status: HTTP2ConnectionStatus { core.status }

  /// Returns when the TLS handshake is done and the peer's first SETTINGS has arrived.
  package func ready() async throws(HTTP2ConnectionError) {
    try await core.ready()
  }

  /// Sends every request of a batch and returns when each has a reply or a failure.
  ///
  /// Batches of several callers share the connection in the order they came, small ones ahead of
  /// large. A batch larger than the free streams waits for them. Cancelling the task resets what is
  /// open and returns at once.
  package func send(_ batch: HTTP2RequestBatch) async -> HTTP2ReplyBatch {
    await core.send(batch)
  }

  /// Ends the connection; everything in flight or queued returns as `.cancelled`.
  package func close() { core.close() }
}

/// Where a client connection goes and how it behaves.
package struct HTTP2ConnectionConfiguration: Sendable {
  /// Host name or address.
  package var host: String
  package var port: UInt16
  /// Sent as SNI and checked against the peer's certificate; nil means `host`.
  package var serverName: String?
  /// PEM certificates trusted beside the system's store; empty for none.
  package var extraAnchorsPEM: [UInt8] = []
  /// Asked on the connection's thread about each address that the host's name has, in network order
  /// (4 or 16 bytes); addresses it refuses are not connected to. `nil` allows all. What was asked
  /// about is what is connected to: a name that changes its address meanwhile gains nothing.
  package var allowsAddress: (@Sendable ([UInt8]) -> Bool)?
  /// PEM chain, leaf first, shown when the peer asks for a client certificate.
  package var clientCertificatePEM: [UInt8]?
  /// PEM private key of the leaf, unencrypted.
  package var clientKeyPEM: [UInt8]?
  /// Name look-up, TCP, TLS and the peer's first SETTINGS together.
  package var connectTimeout: Duration = .seconds(10)
  /// From sending a request's first byte to the end of its reply.
  package var replyTimeout: Duration = .seconds(30)
  /// How long requests wait while the peer lets no stream open at all; then they are `.refused`.
  package var roomTimeout: Duration = .seconds(10)
  /// From handing a batch over to the last of its requests that is sent; those that a slow or
  /// narrow peer has not let out by then are `.refused`.
  package var batchTimeout: Duration = .seconds(120)
  /// How long nothing may arrive before a PING asks whether the peer is alive.
  package var pingInterval: Duration = .seconds(60)
  /// How long the PING's answer may take before the connection counts as lost.
  package var pingTimeout: Duration = .seconds(15)
  /// How long a connection without requests stays; nil for as long as the peer likes.
  package var idleTimeout: Duration?
  /// Most streams open at once, even when the peer allows more.
  package var maxConcurrentStreams = 1000
  /// Bytes of body kept per reply; the rest is cut and the stream reset.
  package var maxReplyBody = 64 * 1024
  /// Bytes of names and values per reply; more resets the stream.
  package var maxReplyHeader = 16 * 1024
  /// A clock that never steps back, in nanoseconds; tests pass their own.
  package var monotonicClock: @Sendable () -> UInt64 = monotonicNanoseconds
  /// The first stream's id, odd; tests start near the end to see the ids run out.
  package var firstStreamID: Int32 = 1

  package init(host: String, port: UInt16) {
    self.host = host
    self.port = port
  }
}

/// What a pool needs to know of a connection; a snapshot.
package struct HTTP2ConnectionStatus: Sendable, Equatable {
  package enum State: Sendable, Equatable {
    case connecting
    case ready
    /// GOAWAY arrived or the stream ids are used up: open streams end, no new ones start.
    case draining
    case closed
  }

  package var state = State.connecting
  /// Streams open.
  package var inFlight = 0
  /// Requests that wait for a stream.
  package var queued = 0
  /// Streams that have ended with a reply so far.
  package var answered = 0
  /// A request got no reply in time, and nor did any other since it was sent: the peer, or the way
  /// to it, has died without saying so. A later reply takes that back.
  package var isSilent = false
  /// Streams the peer allows at once, as announced last; nil before its SETTINGS arrived.
  package var peerStreamLimit: Int?
  package var goAway: HTTP2GoAway?
  /// Why the connection ended, once it has.
  package var error: HTTP2ConnectionError?

  package init() {}

  package var isDraining: Bool { state == .draining || state == .closed }
}

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
