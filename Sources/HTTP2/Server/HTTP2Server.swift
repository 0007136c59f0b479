/// An HTTP/2 server over TLS: the half of `HTTPServer` for clients that choose it, and the server
/// of the emulator.
///
/// ALPN is `h2`, or absent where the configuration allows that; TLS is at least 1.2. A few threads
/// with blocking `poll` serve all connections; loop 0 also accepts them, unless they come by
/// `adopt`.
package final class HTTP2Server: Sendable {
  private let core: ServerCore

  /// Binds, listens and starts to serve.
  package init(
    _ configuration: HTTP2ServerConfiguration, handler: any HTTP2ServerHandler
  ) throws(HTTP2ServerError) {
    core = try ServerCore(configuration, handler: handler)
    core.start()
  }

  deinit { core.stop() }

  /// Serves a connection that was accepted elsewhere, from its first byte of TLS on.
  ///
  /// - Parameters:
  ///   - descriptor: Owned by the server from here on, which closes it after
  ///     `HTTP2ServerHandler.socketClosed(id:)`.
  ///   - peer: The client's numeric address.
  ///   - id: The value of `HTTP2ServerConnection.id`; unique within the server.
  package func adopt(_ descriptor: Int32, peer: String, id: UInt64) {
    core.adopt(descriptor, peer: peer, id: id)
  }

  /// Presents another certificate to new connections; existing ones are unaffected.
  ///
  /// - Throws: When it cannot be used; the current one is kept.
  package func replaceIdentity(
    certificatePEM: [UInt8], keyPEM: [UInt8]
  ) throws(HTTP2ServerError) {
    try core.replaceIdentity(certificatePEM: certificatePEM, keyPEM: keyPEM)
  }

  /// The bound port, also when 0 was requested; 0 without a listening socket.
  package var port: UInt16 { core.port }

  /// The connections open now.
  package var connections: [HTTP2ServerConnection] { core.connections }

  /// Closes the listening socket: connects are refused, open connections are kept. Does not wait.
  package func stopListening() { core.stopListening() }

  /// Opens the listening socket again on the same port.
  package func resumeListening() throws(HTTP2ServerError) { try core.resumeListening() }

  /// Makes the threads read the configuration's clock again: for tests, which move it by hand.
  func lookAtClock() { for loop in core.loops { loop.pipe.wake() } }

  /// Closes everything and returns when the threads have ended; safe to call again.
  package func stop() async { await core.stopAndWait() }
}

/// The address and the limits of a server.
package struct HTTP2ServerConfiguration: Sendable {
  package enum ClientCertificates: Sendable {
    case ignored
    /// Requested; the handshake succeeds without one, and with one that does not verify.
    case optional
    /// The handshake fails without one.
    case required
  }

  /// An address or a name that resolves to one; nil opens no socket, and all connections come by
  /// `HTTP2Server.adopt`.
  package var host: String?
  /// 0 picks a free port.
  package var port: UInt16
  /// PEM chain, leaf first.
  package var certificatePEM: [UInt8]
  /// PEM private key, unencrypted.
  package var keyPEM: [UInt8]
  package var clientCertificates = ClientCertificates.optional
  /// PEM certificates that client certificates are verified against; empty verifies none.
  package var clientAnchorsPEM: [UInt8] = []
  /// Whether a client must offer `h2` by ALPN (RFC 9113, section 3.3). Otherwise, one that offers
  /// nothing is assumed to speak HTTP/2; one that offers only other protocols is still refused.
  package var requiresALPN = true
  /// Number of event-loop threads; connections are distributed over them.
  package var threads = 1
  /// Announced and enforced from the start; see `HTTP2ServerConnection.updateSettings`.
  package var maxConcurrentStreams = 1000
  /// Streams above this are refused whatever was announced; nil enforces the announced limit.
  package var enforcedStreams: Int?
  /// Announced INITIAL_WINDOW_SIZE, in bytes.
  package var initialWindowSize = 65_535
  /// Maximum bytes of names and values in a request's header block, plus 32 for each field (RFC
  /// 9113, section 6.5.2). A request above it is delivered with its `excess`; a block of four times
  /// as much, or one that takes twice as much on the wire, ends the connection.
  package var maxHeader = 16 * 1024
  /// Maximum bytes of a request's body.
  package var maxBody = 64 * 1024
  /// Maximum bytes of a body that are read and discarded once its request is refused or has a
  /// reply: many clients read the reply only when they have sent everything. Beyond it the stream
  /// is reset with NO_ERROR, after the reply.
  package var maxDiscarded = 1024 * 1024
  /// Maximum bytes of the bodies of one connection's unanswered requests together; the request that
  /// exceeds it is reset with REFUSED_STREAM, so that its client may send it again.
  package var maxHeldBodies = 64 * 1024 * 1024
  /// The budget that connections share for bodies; `nil` leaves each its own limit.
  package var bodyBudget: BodyBudget?
  /// Connections above this are closed on accept.
  package var maxConnections = 10_000
  /// Maximum number of streams that a client resets, or causes the server to reset, per second and
  /// at once; above it GOAWAY ENHANCE_YOUR_CALM.
  package var maxResetsPerSecond = 100
  /// Maximum number of frames that do not advance any request, per second and at once: PING,
  /// SETTINGS, PRIORITY, WINDOW_UPDATE, CONTINUATION, unknown and empty ones, and streams above the
  /// limit. Four are free with each request, two with each DATA frame sent. Above it GOAWAY
  /// ENHANCE_YOUR_CALM.
  package var maxControlFramesPerSecond = 1000
  /// Limit from TCP accept to the end of the client's preface: TLS handshake and first SETTINGS.
  package var handshakeTimeout: Duration = .seconds(10)
  /// Limit from a request's first byte to its last; above it the stream is reset with CANCEL. The
  /// same limit applies to a single frame.
  package var requestTimeout: Duration = .seconds(60)
  /// Time in which a client must read a reply; above it the stream is reset with CANCEL, or the
  /// connection ended when the client reads nothing at all.
  package var replyTimeout: Duration = .seconds(60)
  /// Time after which a connection without a request is closed by GOAWAY, regardless of PINGs. One
  /// with requests in flight that has been silent as long gets a PING, and as much time to reply.
  /// Nil means forever.
  package var idleTimeout: Duration? = .seconds(3600)
  /// A monotonic clock, in nanoseconds; tests pass their own.
  package var monotonicClock: @Sendable () -> UInt64 = monotonicNanoseconds

  package init(host: String?, port: UInt16, certificatePEM: [UInt8], keyPEM: [UInt8]) {
    self.host = host
    self.port = port
    self.certificatePEM = certificatePEM
    self.keyPEM = keyPEM
  }
}

/// The reason that a server could not start.
package struct HTTP2ServerError: Error, Sendable, Equatable, CustomStringConvertible {
  package enum Kind: Sendable, Equatable {
    /// The address is in use, not local, or requires more privileges.
    case address
    /// The certificate or key cannot be used.
    case certificate
  }

  package let kind: Kind
  /// A description for people: the failure, the address, and the reason.
  package let description: String

  init(_ kind: Kind, _ description: String) {
    self.kind = kind
    self.description = description
  }
}
