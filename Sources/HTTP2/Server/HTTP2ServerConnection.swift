package import Synchronization

/// What a client showed of itself in the TLS handshake.
package struct HTTP2PeerCertificate: Sendable, Equatable {
  /// The leaf certificate, DER.
  package let der: [UInt8]
  /// Whether it chains to the server's `clientAnchorsPEM` and is within its dates.
  package let isVerified: Bool
}

/// One client connection of a server. Every method may be called from any thread; what it asks
/// for happens on the connection's loop, in the order asked, and is dropped when it has ended.
package final class HTTP2ServerConnection: Sendable {
  /// Unique within the server, counting from 1.
  package let id: UInt64
  package let openedAt = ContinuousClock.now
  /// Nil when the client showed none.
  package let peerCertificate: HTTP2PeerCertificate?
  /// The client's numeric address.
  package let remoteAddress: String
  /// For the handler to keep what it knows of this connection.
  package let attachment = Mutex<(any Sendable)?>(nil)

  private let reason = Mutex<String?>(nil)
  let openStreamCount = Atomic<Int>(0)
  let loop: ServerLoop
  /// Touched on the loop's thread only; nil once the connection has ended.
  nonisolated(unsafe) var session: ServerSession?

  init(
    id: UInt64, peerCertificate: HTTP2PeerCertificate?, remoteAddress: String, loop: ServerLoop
  ) {
    self.id = id
    self.peerCertificate = peerCertificate
    self.remoteAddress = remoteAddress
    self.loop = loop
  }

  /// Streams open now.
  package var openStreams: Int { openStreamCount.load(ordering: .relaxed) }

  /// What the client did that the connection was ended for, in words for the log; nil when it kept
  /// the rules.
  package var violation: String? { reason.withLock { $0 } }

  func setViolation(_ text: String) { reason.withLock { $0 = text } }

  /// Answers a stream; a second answer, or one to a stream that has ended, is dropped.
  package func respond(_ response: HTTP2ServerResponse, to stream: Int32) {
    loop.perform(.respond(response, stream), on: self)
  }

  /// Tells the client to go on with a body that it holds back (RFC 9110, section 10.1.1).
  package func sendContinue(to stream: Int32) {
    loop.perform(.sendContinue(stream), on: self)
  }

  /// Has the stream's `HTTP2BodySource` asked again after it said `.later`.
  package func resume(_ stream: Int32) { loop.perform(.resume(stream), on: self) }

  /// Resets a stream with an RST_STREAM code.
  package func reset(_ stream: Int32, code: UInt32) {
    loop.perform(.reset(stream, code), on: self)
  }

  /// Announces new SETTINGS; the stream limit is enforced at once: a stream above it is reset with
  /// REFUSED_STREAM and not shown to the handler. Nil leaves a value as it is.
  package func updateSettings(maxConcurrentStreams: Int? = nil, initialWindowSize: Int? = nil) {
    loop.perform(.settings(maxConcurrentStreams, initialWindowSize), on: self)
  }

  /// Sends GOAWAY; streams above `lastStreamID` end and new ones are ignored, those at or below
  /// can still be answered. When the last stream has ended, so does the connection.
  package func goAway(lastStreamID: Int32, code: UInt32, debugData: [UInt8] = []) {
    loop.perform(.goAway(lastStreamID, code, debugData), on: self)
  }

  /// Sends GOAWAY for the streams after those seen so far. When the last of them has ended, so
  /// does the connection.
  package func shutDown() { loop.perform(.shutDown, on: self) }

  /// TCP reset, now.
  package func abort() { loop.perform(.abort, on: self) }

  /// Sends what is queued, then TLS close_notify and FIN.
  package func close() { loop.perform(.close, on: self) }

  /// Stops reading and writing, PING answers included; the socket stays open.
  package func stall() { loop.perform(.stall, on: self) }
}
