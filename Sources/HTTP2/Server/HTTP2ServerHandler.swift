package import Synchronization

/// The handler of a server's connections and requests.
///
/// Every method runs on the connection's loop thread and must not block; replies may be given
/// immediately, or later from any thread.
package protocol HTTP2ServerHandler: Sendable {
  /// A TCP connection was accepted, before TLS; the result determines how to proceed. Default:
  /// `.proceed`.
  func connectionAccepted(id: UInt64) -> HTTP2AcceptDecision
  /// The TLS handshake is done and the client's certificate, if any, is known. Default: nothing.
  func connectionOpened(_ connection: HTTP2ServerConnection)
  /// The header block is complete, the body is not (`request.body` is empty). Not called for a
  /// request without a body. If a reply is given here, `received` is not called. Default: nothing.
  ///
  /// - Returns: The sender whose part of `bodyBudget` the body counts for; `nil` for
  ///   unauthenticated ones.
  func receivedHeaders(
    _ request: HTTP2ServerRequest, on connection: HTTP2ServerConnection
  ) -> String?
  /// The request is complete, or exceeds a limit (`request.excess`); reply to it once.
  func received(_ request: HTTP2ServerRequest, on connection: HTTP2ServerConnection)
  /// A stream that was passed to the handler ended; `code` is 0 when it ended normally, else the
  /// RST_STREAM code of either side. Default: nothing.
  func streamClosed(_ stream: Int32, code: UInt32, on connection: HTTP2ServerConnection)
  /// The connection ended; called once for each that was opened. Default: nothing.
  func connectionClosed(_ connection: HTTP2ServerConnection)
  /// An adopted socket is about to be closed, whether or not its handshake was completed; called
  /// once for each. When the server is stopping, it is called on the thread that calls `adopt`.
  /// Default: nothing.
  func socketClosed(id: UInt64)
}

extension HTTP2ServerHandler {
  package func connectionAccepted(id: UInt64) -> HTTP2AcceptDecision { .proceed }
  package func connectionOpened(_ connection: HTTP2ServerConnection) {}
  package func receivedHeaders(
    _ request: HTTP2ServerRequest, on connection: HTTP2ServerConnection
  ) -> String? { nil }
  package func streamClosed(_ stream: Int32, code: UInt32, on connection: HTTP2ServerConnection) {}
  package func connectionClosed(_ connection: HTTP2ServerConnection) {}
  package func socketClosed(id: UInt64) {}
}

/// The treatment of a TCP connection that was just accepted.
package enum HTTP2AcceptDecision: Sendable, Equatable {
  case proceed
  /// TCP reset.
  case reset
  /// An orderly close without any TLS byte.
  case close
  /// The connection stays open without any reply.
  case stall
  /// The handshake fails with this TLS alert (RFC 8446, section 6), such as 45 certificate_expired.
  case alert(UInt8)
}

/// A request as the server received it.
package struct HTTP2ServerRequest: Sendable {
  /// The limit of the server that the request exceeds.
  package enum Excess: Sendable {
    /// The header block is over `maxHeader`; further fields are missing.
    case header
    /// The body is over `maxBody`; it is missing.
    case body
  }

  package let stream: Int32
  /// `:method` and the other pseudo-header fields, names with their colon.
  package let pseudoFields: HTTP2FieldList
  /// The other fields in the order of the wire, duplicates included.
  package let fields: HTTP2FieldList
  package let body: [UInt8]
  /// Nil for a request within the limits. Reply with 413 (or 431); the rest of the request is
  /// discarded.
  package let excess: Excess?

  /// A request built by the caller, for handlers that also serve other transports.
  package init(
    stream: Int32, pseudoFields: HTTP2FieldList, fields: HTTP2FieldList, body: [UInt8] = [],
    excess: Excess? = nil
  ) {
    self.stream = stream
    self.pseudoFields = pseudoFields
    self.fields = fields
    self.body = body
    self.excess = excess
  }

  package var method: String { pseudoFields.first(":method") ?? "" }
  package var path: String { pseudoFields.first(":path") ?? "" }
  package var authority: String { pseudoFields.first(":authority") ?? "" }
}

/// A reply to a request.
package struct HTTP2ServerResponse: Sendable {
  /// 200 to 599.
  package var status: Int
  package var fields: HTTP2FieldList
  package var body: [UInt8]
  /// The source of a streamed body, in place of `body`.
  package var source: (any HTTP2BodySource)?
  /// Sends only this many bytes of the body under the full `content-length`, then resets the
  /// stream with INTERNAL_ERROR: a fault. Nil sends all.
  package var truncatedBody: Int?

  package init(
    status: Int, fields: HTTP2FieldList = HTTP2FieldList(), body: [UInt8] = [],
    truncatedBody: Int? = nil, source: (any HTTP2BodySource)? = nil
  ) {
    self.source = source
    self.status = status
    self.fields = fields
    self.body = body
    self.truncatedBody = truncatedBody
  }
}

/// The source of a streamed reply body.
package protocol HTTP2BodySource: AnyObject, Sendable {
  /// Copies available bytes; called on the connection's loop whenever the client has room for more.
  /// Must not block.
  func read(into buffer: UnsafeMutableRawBufferPointer) -> HTTP2BodyPart
}

package enum HTTP2BodyPart: Sendable, Equatable {
  /// The number of bytes, more than 0.
  case bytes(Int)
  /// No bytes yet; `HTTP2ServerConnection.resume` triggers the next call.
  case later
  case end
  /// The stream is reset with INTERNAL_ERROR, so that the client detects the missing rest.
  case failed
}

/// The client's certificate in the TLS handshake.
package struct HTTP2PeerCertificate: Sendable, Equatable {
  /// The leaf certificate, DER.
  package let der: [UInt8]
  /// Whether it chains to the server's `clientAnchorsPEM` and is within its validity period.
  package let isVerified: Bool
}

/// One client connection of a server. Every method may be called from any thread; its effect takes
/// place on the connection's loop, in the order of the calls, and is dropped when the connection
/// has ended.
package final class HTTP2ServerConnection: Sendable {
  /// Unique within the server, counting from 1.
  package let id: UInt64
  package let openedAt = ContinuousClock.now
  /// Nil when the client presented none.
  package let peerCertificate: HTTP2PeerCertificate?
  /// The client's numeric address.
  package let remoteAddress: String
  /// Storage for the handler's data about this connection.
  package let attachment = Mutex<(any Sendable)?>(nil)

  private let reason = Mutex<String?>(nil)
  let openStreamCount = Atomic<Int>(0)
  let loop: ServerLoop
  /// Used on the loop's thread only; nil once the connection has ended.
  nonisolated(unsafe) var session: ServerSession?

  init(
    id: UInt64, peerCertificate: HTTP2PeerCertificate?, remoteAddress: String, loop: ServerLoop
  ) {
    self.id = id
    self.peerCertificate = peerCertificate
    self.remoteAddress = remoteAddress
    self.loop = loop
  }

  /// Number of open streams.
  package var openStreams: Int { openStreamCount.load(ordering: .relaxed) }

  /// The client's violation for which the connection was ended, in words for the log; nil when
  /// there was none.
  package var violation: String? { reason.withLock { $0 } }

  func setViolation(_ text: String) { reason.withLock { $0 = text } }

  /// Sends a reply on a stream; a second reply, or one to a stream that has ended, is dropped.
  package func respond(_ response: HTTP2ServerResponse, to stream: Int32) {
    loop.perform(.respond(response, stream), on: self)
  }

  /// Tells the client to continue with a body that it holds back (RFC 9110, section 10.1.1).
  package func sendContinue(to stream: Int32) {
    loop.perform(.sendContinue(stream), on: self)
  }

  /// Makes the stream's `HTTP2BodySource` be read again after it returned `.later`.
  package func resume(_ stream: Int32) { loop.perform(.resume(stream), on: self) }

  /// Resets a stream with an RST_STREAM code.
  package func reset(_ stream: Int32, code: UInt32) {
    loop.perform(.reset(stream, code), on: self)
  }

  /// Announces new SETTINGS; the stream limit is enforced at once: a stream above it is reset with
  /// REFUSED_STREAM and not passed to the handler. Nil leaves a value unchanged.
  package func updateSettings(maxConcurrentStreams: Int? = nil, initialWindowSize: Int? = nil) {
    loop.perform(.settings(maxConcurrentStreams, initialWindowSize), on: self)
  }

  /// Sends GOAWAY; streams above `lastStreamID` end and new ones are ignored, those at or below it
  /// can still get a reply. When the last stream has ended, the connection ends.
  package func goAway(lastStreamID: Int32, code: UInt32, debugData: [UInt8] = []) {
    loop.perform(.goAway(lastStreamID, code, debugData), on: self)
  }

  /// Sends GOAWAY for streams after those received so far. When the last of them has ended, the
  /// connection ends.
  package func shutDown() { loop.perform(.shutDown, on: self) }

  /// Resets the TCP connection immediately.
  package func abort() { loop.perform(.abort, on: self) }

  /// Sends the queued data, then TLS close_notify and FIN.
  package func close() { loop.perform(.close, on: self) }

  /// Stops reading and writing, PING replies included; the socket stays open.
  package func stall() { loop.perform(.stall, on: self) }
}
