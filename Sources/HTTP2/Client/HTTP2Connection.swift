/// One HTTP/2 connection over TLS to one server: batches in, batches out.
///
/// A thread of its own drives frames and OpenSSL with blocking `poll`; callers meet it at one
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

  /// The current status.
  package var status: HTTP2ConnectionStatus { core.status }

  /// Returns when the TLS handshake is done and the peer's first SETTINGS has arrived.
  package func ready() async throws(HTTP2ConnectionError) {
    try await core.ready()
  }

  /// Sends every request of a batch and returns when each has a reply or a failure.
  ///
  /// Batches of several callers share the connection in the order of arrival, small ones ahead of
  /// large ones. A batch larger than the free streams waits for them. Cancelling the task resets
  /// its open streams and returns at once.
  package func send(_ batch: HTTP2RequestBatch) async -> HTTP2ReplyBatch {
    await core.send(batch)
  }

  /// Ends the connection; everything in flight or queued returns as `.cancelled`.
  package func close() { core.close() }
}

/// The peer and the limits of a client connection.
package struct HTTP2ConnectionConfiguration: Sendable {
  /// Host name or address.
  package var host: String
  package var port: UInt16
  /// Sent as SNI and checked against the peer's certificate; nil means `host`.
  package var serverName: String?
  /// PEM certificates trusted beside the system's store; empty for none.
  package var extraAnchorsPEM: [UInt8] = []
  /// Called on the connection's thread for each address of the host, in network order (4 or 16
  /// bytes); addresses that it rejects are not connected to. `nil` allows all. The checked address
  /// is exactly the one connected to, so that a name that changes its address meanwhile gains
  /// nothing.
  package var allowsAddress: (@Sendable ([UInt8]) -> Bool)?
  /// PEM chain, leaf first, sent when the peer asks for a client certificate.
  package var clientCertificatePEM: [UInt8]?
  /// PEM private key of the leaf, unencrypted.
  package var clientKeyPEM: [UInt8]?
  /// Limit for name resolution, TCP, TLS and the peer's first SETTINGS together.
  package var connectTimeout: Duration = .seconds(10)
  /// Limit from sending a request's first byte to the end of its reply.
  package var replyTimeout: Duration = .seconds(30)
  /// Time for which requests wait while the peer allows no stream; then they are `.refused`.
  package var roomTimeout: Duration = .seconds(10)
  /// Limit from handing a batch over to sending the last of its requests; those that a slow or
  /// restrictive peer has not admitted by then are `.refused`.
  package var batchTimeout: Duration = .seconds(120)
  /// Time without incoming data after which a PING checks whether the peer is alive.
  package var pingInterval: Duration = .seconds(60)
  /// Time limit for the reply to the PING, after which the connection counts as lost.
  package var pingTimeout: Duration = .seconds(15)
  /// Time after which a connection without requests is closed; nil leaves that to the peer.
  package var idleTimeout: Duration?
  /// Maximum number of open streams, even when the peer allows more.
  package var maxConcurrentStreams = 1000
  /// Maximum number of body bytes kept per reply; beyond it the body is truncated and the stream
  /// reset.
  package var maxReplyBody = 64 * 1024
  /// Maximum bytes of names and values per reply; more resets the stream.
  package var maxReplyHeader = 16 * 1024
  /// A monotonic clock, in nanoseconds; tests pass their own.
  package var monotonicClock: @Sendable () -> UInt64 = monotonicNanoseconds
  /// The first stream's id, odd; tests start near the end to exhaust the ids.
  package var firstStreamID: Int32 = 1

  package init(host: String, port: UInt16) {
    self.host = host
    self.port = port
  }
}

/// The status of a connection, as pools need it; a snapshot.
package struct HTTP2ConnectionStatus: Sendable, Equatable {
  package enum State: Sendable, Equatable {
    case connecting
    case ready
    /// GOAWAY arrived or the stream ids are used up: open streams continue, no new ones start.
    case draining
    case closed
  }

  package var state = State.connecting
  /// Number of open streams.
  package var inFlight = 0
  /// Number of requests that wait for a stream.
  package var queued = 0
  /// Number of streams that have ended with a reply so far.
  package var answered = 0
  /// Whether a request timed out and no other has had a reply since it was sent: the peer, or the
  /// path to it, is presumably dead. A later reply clears this.
  package var isSilent = false
  /// The peer's current stream limit; nil before its SETTINGS arrived.
  package var peerStreamLimit: Int?
  package var goAway: HTTP2GoAway?
  /// The reason that the connection ended, once it has.
  package var error: HTTP2ConnectionError?

  package init() {}

  package var isDraining: Bool { state == .draining || state == .closed }
}

/// The reason that a client connection could not be established or has ended.
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
    /// The TLS handshake failed for a reason other than those below.
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
    /// The peer did not reply to a PING.
    case pingTimedOut
    /// The peer closed or reset the connection.
    case lost
    /// The peer sent GOAWAY and its last streams have ended, or the stream ids are used up.
    case drained
    /// The connection was closed after the configured idle time.
    case idle
    /// The connection was closed by `close()`.
    case closed
    /// The task that waited in `ready()` was cancelled; the connection is unaffected.
    case cancelled
  }

  package let kind: Kind
  /// A description for people: the failure, the host, and the reason.
  package let reason: String

  package init(_ kind: Kind, _ reason: String) {
    self.kind = kind
    self.reason = reason
  }

  package var description: String { reason }
}
