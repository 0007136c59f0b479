/// An HTTP/2 server over TLS: the half of `HTTPServer` for clients that choose it, and the server
/// of the emulator.
///
/// ALPN is `h2`, or left out where the configuration allows that; TLS at least 1.2. A few threads
/// with blocking `poll` carry all connections; loop 0 accepts too, unless the connections come by
/// `adopt`.
package final class HTTP2Server: Sendable {
  private let core: ServerCore

  /// Binds, listens and serves from now on.
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
  ///   - id: What `HTTP2ServerConnection.id` is; unique within the server.
  package func adopt(_ descriptor: Int32, peer: String, id: UInt64) {
    core.adopt(descriptor, peer: peer, id: id)
  }

  /// Shows new connections another certificate; those there are keep theirs.
  ///
  /// - Throws: When it cannot be used; the present one stays then.
  package func replaceIdentity(
    certificatePEM: [UInt8], keyPEM: [UInt8]
  ) throws(HTTP2ServerError) {
    try core.replaceIdentity(certificatePEM: certificatePEM, keyPEM: keyPEM)
  }

  /// The port in use, real even when 0 was asked for; 0 without a listening socket.
  package var port: UInt16 { core.port }

  /// The connections open now.
  package var connections: [HTTP2ServerConnection] { core.connections }

  /// Closes the listening socket: connects are refused, open connections stay. Does not wait.
  package func stopListening() { core.stopListening() }

  /// Opens the listening socket again on the same port.
  package func resumeListening() throws(HTTP2ServerError) { try core.resumeListening() }

  /// Has the threads look at the configuration's clock again: for tests, which move it by hand.
  func lookAtClock() { for loop in core.loops { loop.pipe.wake() } }

  /// Closes everything and returns when the threads have ended; safe to call again.
  package func stop() async { await core.stopAndWait() }
}

/// Where a server listens and what it allows.
package struct HTTP2ServerConfiguration: Sendable {
  package enum ClientCertificates: Sendable {
    case ignored
    /// Asked for; the handshake succeeds without one, and with one that does not verify.
    case optional
    /// The handshake fails without one.
    case required
  }

  /// An address or a name that has one; nil opens no socket, all connections come by
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
  /// Whether a client must offer `h2` by ALPN (RFC 9113, section 3.3). Without it, one that offers
  /// nothing is taken to speak HTTP/2; one that offers only others is refused all the same.
  package var requiresALPN = true
  /// Event-loop threads; connections are spread over them.
  package var threads = 1
  /// Announced and enforced from the start; see `HTTP2ServerConnection.updateSettings`.
  package var maxConcurrentStreams = 1000
  /// Streams above this are refused whatever was announced; nil enforces what was announced.
  package var enforcedStreams: Int?
  /// Announced INITIAL_WINDOW_SIZE, in bytes.
  package var initialWindowSize = 65_535
  /// Bytes of names and values in a request's header block, and 32 for each field (RFC 9113,
  /// section 6.5.2). A request above it is shown with its `excess`; a block of four times as much,
  /// or one that takes twice as much on the wire, ends the connection.
  package var maxHeader = 16 * 1024
  /// Bytes of a request's body.
  package var maxBody = 64 * 1024
  /// Bytes of a body that are read and thrown away once its request is refused or answered: many
  /// clients look for the reply only when they have sent everything. Beyond it the stream is reset
  /// with NO_ERROR, when the reply has gone.
  package var maxDiscarded = 1024 * 1024
  /// Bytes that the bodies of one connection's unanswered requests may take together; the request
  /// that goes beyond is reset with REFUSED_STREAM, so that its client may send it again.
  package var maxHeldBodies = 64 * 1024 * 1024
  /// What connections share for that; `nil` leaves each its own limit.
  package var bodyBudget: BodyBudget?
  /// Connections above this are closed on accept.
  package var maxConnections = 10_000
  /// Streams that a client may reset, or use so that the server has to reset them, per second and
  /// at once; GOAWAY ENHANCE_YOUR_CALM above it.
  package var maxResetsPerSecond = 100
  /// Frames that bring no request forward, per second and at once: PING, SETTINGS, PRIORITY,
  /// WINDOW_UPDATE, CONTINUATION, unknown and empty ones, and streams above the limit. Four come
  /// free with each request, two with each DATA frame sent. GOAWAY ENHANCE_YOUR_CALM above it.
  package var maxControlFramesPerSecond = 1000
  /// TCP accept to the end of the client's preface: TLS handshake and first SETTINGS.
  package var handshakeTimeout: Duration = .seconds(10)
  /// From a request's first byte to its last; the stream is reset with CANCEL above it. As long may
  /// a single frame take.
  package var requestTimeout: Duration = .seconds(60)
  /// How long a client may take to read a reply; the stream is reset with CANCEL above it, or the
  /// connection ended when the client reads nothing at all.
  package var replyTimeout: Duration = .seconds(60)
  /// How long a connection may stay without a request, PINGs or not; then it is closed by GOAWAY.
  /// One with requests under way that has been silent as long gets a PING, and as much time to
  /// answer it. Nil forever.
  package var idleTimeout: Duration? = .seconds(3600)
  /// A clock that never steps back, in nanoseconds; tests pass their own.
  package var monotonicClock: @Sendable () -> UInt64 = monotonicNanoseconds

  package init(host: String?, port: UInt16, certificatePEM: [UInt8], keyPEM: [UInt8]) {
    self.host = host
    self.port = port
    self.certificatePEM = certificatePEM
    self.keyPEM = keyPEM
  }
}

/// Why a server could not start.
package struct HTTP2ServerError: Error, Sendable, Equatable, CustomStringConvertible {
  package enum Kind: Sendable, Equatable {
    /// The address is in use, not ours, or needs more rights.
    case address
    /// The certificate or key cannot be used.
    case certificate
  }

  package let kind: Kind
  /// For a person: what failed, where, and why.
  package let description: String

  init(_ kind: Kind, _ description: String) {
    self.kind = kind
    self.description = description
  }
}
