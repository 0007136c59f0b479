/// The reason that a request has no complete reply.
package enum HTTP2Failure: Sendable, Equatable {
  /// No connection: name resolution, TCP, TLS or the first SETTINGS failed. Not processed.
  case connectFailed
  /// A TLS alert about our client certificate (or the lack of one). The request was not processed.
  case tlsRejectedCertificate
  /// No reply within the reply timeout; the stream was reset with CANCEL.
  case timedOut
  /// The peer reset the stream with this RST_STREAM code (RFC 9113, section 7), or its reply was
  /// malformed (code 1, PROTOCOL_ERROR).
  case reset(code: UInt32)
  /// Certainly not processed: REFUSED_STREAM, above GOAWAY's last-stream-id, or never sent.
  case refused
  /// The connection ended before the reply; the request may have been processed.
  case connectionLost
  /// The awaiting task was cancelled, or the connection closed by its owner.
  case cancelled
}

/// The outcome of one request: a reply, or the reason why there is none.
package struct HTTP2Reply: Sendable {
  /// The `:status`; 0 when none arrived. Trust it only when `failure` is nil.
  package var status: UInt16 = 0
  /// Whether a byte of the request may have left this process.
  package var wasSent = false
  /// Whether the body was longer than the connection's `maxReplyBody` and is cut there.
  package var isBodyTruncated = false
  /// Nil when the reply is complete.
  package var failure: HTTP2Failure?
  /// In the batch's `bytes`; empty for 2xx unless the batch asked for success bodies.
  package var body = HTTP2ByteRange.empty

  package init() {}

  /// Whether the peer may have acted on the request, so that a resend could be a second delivery.
  package var mayHaveBeenProcessed: Bool {
    switch failure {
    case nil: true
    case .connectFailed, .tlsRejectedCertificate, .refused: false
    case .timedOut, .reset, .connectionLost, .cancelled: wasSent
    }
  }
}

/// The contents of a GOAWAY frame (RFC 9113, section 6.8).
package struct HTTP2GoAway: Sendable, Equatable {
  package var lastStreamID: Int32
  package var code: UInt32
  /// As sent, cut at 4 KiB; APNs puts `{"reason":"…"}` here.
  package var debugData: [UInt8]

  package init(lastStreamID: Int32, code: UInt32, debugData: [UInt8]) {
    self.lastStreamID = lastStreamID
    self.code = code
    self.debugData = debugData
  }
}

/// The replies to a batch, in the order of its requests.
package struct HTTP2ReplyBatch: Sendable {
  /// One per request.
  package internal(set) var replies: [HTTP2Reply]
  /// Bodies and header values; the replies' ranges point in here.
  package internal(set) var bytes: [UInt8] = []
  /// The last GOAWAY received on the connection so far.
  package var goAway: HTTP2GoAway?
  /// The reason that the connection ended, if it has.
  package var connectionError: HTTP2ConnectionError?

  /// One per request and wanted header, request by request; empty when no header was wanted.
  var headerValues: [HTTP2ByteRange] = []
  let wantedHeaders: Int

  init(replies: [HTTP2Reply], wantedHeaders: Int) {
    self.replies = replies
    self.wantedHeaders = wantedHeaders
  }

  /// Empty replies to a batch, to be filled in by models of a connection.
  package init(to batch: HTTP2RequestBatch) {
    self.init(
      replies: Array(repeating: HTTP2Reply(), count: batch.count),
      wantedHeaders: batch.replyHeaders.count)
    headerValues = Array(repeating: .empty, count: batch.count * wantedHeaders)
  }

  /// Sets a reply, with its body.
  ///
  /// - Parameter headers: In the order of the request batch's `replyHeaders`; `nil` for one that the
  ///   reply does not carry.
  package mutating func set(
    _ reply: HTTP2Reply, at index: Int, headers: [String?] = [], body: [UInt8] = []
  ) {
    replies[index] = reply
    replies[index].body = append(body)
    for (place, value) in headers.enumerated() {
      headerValues[index * wantedHeaders + place] = append(Array((value ?? "").utf8))
    }
  }

  private mutating func append(_ new: [UInt8]) -> HTTP2ByteRange {
    defer { bytes += new }
    return HTTP2ByteRange(offset: UInt32(bytes.count), count: UInt32(new.count))
  }

  /// The body of a reply; empty when there is none or it was not kept.
  package func body(of index: Int) -> ArraySlice<UInt8> {
    bytes[replies[index].body.indices]
  }

  /// The value of a wanted header, nil when the reply did not carry it.
  ///
  /// - Parameter header: Its index in the request batch's `replyHeaders`.
  package func value(ofHeader header: Int, in index: Int) -> String? {
    guard !headerValues.isEmpty else { return nil }
    let range = headerValues[index * wantedHeaders + header]
    return range.isEmpty ? nil : String(decoding: bytes[range.indices], as: UTF8.self)
  }
}
