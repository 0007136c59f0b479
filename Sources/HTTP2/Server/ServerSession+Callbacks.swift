import CNghttp2
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Callbacks for nghttp2. The context is the session, which outlives its nghttp2 handle.
extension ServerSession {
  @inline(__always)
  private static func from(_ context: UnsafeMutableRawPointer?) -> ServerSession {
    // nghttp2 hands back the pointer that `makeSession` gave it.
    Unmanaged<ServerSession>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue()
  }

  /// The request that a stream carries; nil for a refused stream.
  @inline(__always)
  private func stream(_ id: Int32) -> ServerStream? {
    let position = Int(bitPattern: nghttp2_session_get_stream_user_data(session, id)) - 1
    return position >= 0 ? table[position] : nil
  }

  /// Makes the nghttp2 session.
  func makeSession() -> Bool {
    var options: OpaquePointer?
    var callbacks: OpaquePointer?
    defer {
      nghttp2_option_del(options)
      nghttp2_session_callbacks_del(callbacks)
    }
    guard nghttp2_option_new(&options) == 0, nghttp2_session_callbacks_new(&callbacks) == 0 else {
      return false
    }
    // Closed streams are kept for priorities only, and without a limit known to nghttp2.
    nghttp2_option_set_no_closed_streams(options, 1)
    // Replies to PINGs and SETTINGS that are queued for a client that does not read.
    nghttp2_option_set_max_outbound_ack(options, 100)
    // A blank at the end of a value, as in `bearer ` without a token, is left to the handler.
    nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(options, 1)
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, Self.onBeginFrame)
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, Self.onBeginHeaders)
    nghttp2_session_callbacks_set_on_header_callback(callbacks, Self.onHeader)
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Self.onData)
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Self.onFrame)
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, Self.onFrameSent)
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Self.onStreamClose)
    let context = Unmanaged.passUnretained(self).toOpaque()
    return nghttp2_session_server_new2(&session, callbacks, context, options) == 0
  }

  /// Detects HEADERS on a closed stream, which nghttp2 would read without effect.
  private static let onBeginFrame: nghttp2_on_begin_frame_callback = { session, header, context in
    guard let id = header?.pointee.stream_id,
      UInt32(header?.pointee.type ?? 0) == NGHTTP2_HEADERS.rawValue
    else { return 0 }
    let server = ServerSession.from(context)
    guard !server.isDeaf else { return NGHTTP2_ERR_CALLBACK_FAILURE.rawValue }
    guard id % 2 == 1, id <= server.highestStream,
      nghttp2_session_get_stream_local_close(session, id) < 0
    else { return 0 }
    do throws(FrameWatch.Violation) {
      guard server.recentResets.contains(id) else { throw .closedStream }
      try server.watch.countControlFrame(at: server.runner.now)
      return 0
    } catch {
      server.refuse(error)
      return NGHTTP2_ERR_CALLBACK_FAILURE.rawValue
    }
  }

  private static let onBeginHeaders: nghttp2_on_begin_headers_callback = {
    session, frame, context in
    guard let frame else { return 0 }
    let server = ServerSession.from(context)
    if server.isDeaf { return NGHTTP2_ERR_CALLBACK_FAILURE.rawValue }
    server.blockBytes = 0
    guard frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST else { return 0 }
    let id = frame.pointee.hd.stream_id
    server.highestStream = max(server.highestStream, id)
    // nghttp2 closes such a stream when it sends the GOAWAY; the client sends it elsewhere.
    guard id <= server.lastAllowedStream else { return 0 }
    guard server.openStreams < server.enforcedLimit else {
      do throws(FrameWatch.Violation) {
        try server.watch.countControlFrame(at: server.runner.now)
      } catch {
        server.refuse(error)
        return NGHTTP2_ERR_CALLBACK_FAILURE.rawValue
      }
      nghttp2_submit_rst_stream(
        session, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, NGHTTP2_REFUSED_STREAM.rawValue)
      return 0
    }
    let stream: ServerStream
    if let position = server.freePositions.popLast() {
      stream = server.table[position]
    } else {
      stream = ServerStream(position: server.table.count)
      server.table.append(stream)
    }
    let configuration = server.runner.core.configuration
    stream.begin(id, deadline: server.runner.now + configuration.requestTimeout.nanoseconds)
    server.openStreams += 1
    server.connection?.openStreamCount.store(server.openStreams, ordering: .relaxed)
    nghttp2_session_set_stream_user_data(
      session, id, UnsafeMutableRawPointer(bitPattern: stream.position + 1))
    return 0
  }

  private static let onHeader: nghttp2_on_header_callback = {
    _, frame, name, nameCount, value, valueCount, _, context in
    guard let frame, let name, let value else { return 0 }
    let server = ServerSession.from(context)
    // HPACK's output from a few bytes costs time even if nobody uses it.
    server.blockBytes += nameCount + valueCount + 32
    let limit = server.runner.core.configuration.maxHeader
    guard server.blockBytes <= 4 * limit else {
      server.refuse(.headerBlock)
      return NGHTTP2_ERR_CALLBACK_FAILURE.rawValue
    }
    guard let stream = server.stream(frame.pointee.hd.stream_id), !stream.isDelivered else {
      return 0
    }
    stream.headerBytes += nameCount + valueCount + 32
    // Trailers count, and are not used here; a field among them must not be taken for one of the
    // head (RFC 9110, section 6.5.1).
    guard frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST else {
      if stream.headerBytes > limit { stream.excess = .header }
      return 0
    }
    guard stream.headerBytes <= limit else {
      stream.excess = .header
      return 0
    }
    let nameBytes = UnsafeBufferPointer(start: name, count: nameCount)
    let valueBytes = UnsafeBufferPointer(start: value, count: valueCount)
    if nameBytes.first == 0x3A {  // ":"
      stream.pseudoFields.append(name: nameBytes, value: valueBytes)
    } else {
      stream.fields.append(name: nameBytes, value: valueBytes)
    }
    return 0
  }

  private static let onData: nghttp2_on_data_chunk_recv_callback = {
    session, _, id, data, count, context in
    let server = ServerSession.from(context)
    guard !server.isDeaf else { return NGHTTP2_ERR_CALLBACK_FAILURE.rawValue }
    guard let data, let stream = server.stream(id) else { return 0 }
    guard !stream.isDelivered else {
      stream.discarded += count
      server.limitDiscarding(stream)
      return 0
    }
    let configuration = server.runner.core.configuration
    guard stream.body.count + count <= configuration.maxBody else {
      stream.excess = .body
      stream.discarded = stream.body.count + count
      server.release(stream)
      stream.body = []
      server.deliver(stream)
      return 0
    }
    guard server.hold(count, of: stream) else {
      server.release(stream)
      stream.body = []
      stream.isDelivered = true  // and what still comes is thrown away
      server.reset(stream, NGHTTP2_REFUSED_STREAM.rawValue)
      return 0
    }
    stream.body.append(contentsOf: UnsafeBufferPointer(start: data, count: count))
    return 0
  }

  private static let onFrame: nghttp2_on_frame_recv_callback = { _, frame, context in
    guard let frame else { return 0 }
    let server = ServerSession.from(context)
    guard !server.isDeaf else { return NGHTTP2_ERR_CALLBACK_FAILURE.rawValue }
    let header = frame.pointee.hd
    switch UInt32(header.type) {
    case NGHTTP2_HEADERS.rawValue, NGHTTP2_DATA.rawValue:
      guard let stream = server.stream(header.stream_id) else { return 0 }
      if UInt32(header.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0 {
        stream.isComplete = true
        let isWritten = stream.isAnswered && stream.source == nil
        stream.deadline =
          isWritten
          ? server.runner.now + server.runner.core.configuration.replyTimeout.nanoseconds : .max
        server.watch.noteRequest()
        server.deliver(stream)
      } else if UInt32(header.type) == NGHTTP2_HEADERS.rawValue {
        server.headersArrived(stream)
      }
    default: break
    }
    return 0
  }

  private static let onFrameSent: nghttp2_on_frame_send_callback = { session, frame, context in
    guard let frame else { return 0 }
    let header = frame.pointee.hd
    let server = ServerSession.from(context)
    switch UInt32(header.type) {
    case NGHTTP2_RST_STREAM.rawValue: server.noteReset(header.stream_id)
    case NGHTTP2_DATA.rawValue, NGHTTP2_HEADERS.rawValue:
      if UInt32(header.type) == NGHTTP2_DATA.rawValue {
        server.watch.noteSent(dataLength: header.length)
      }
      guard UInt32(header.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0,
        let stream = server.stream(header.stream_id), !stream.isComplete
      else { return 0 }
      stream.isReplied = true
      server.limitDiscarding(stream)
    default: break
    }
    return 0
  }

  /// Ends a stream whose reply was sent before its request was complete, when enough of the rest
  /// has been discarded (RFC 9113, section 8.1). nghttp2 opens the windows meanwhile.
  private func limitDiscarding(_ stream: ServerStream) {
    // A client that does not read the reply is given no more than twice as much.
    let limit = runner.core.configuration.maxDiscarded * (stream.isReplied ? 1 : 2)
    guard stream.isAnswered, !stream.isComplete, !stream.isResetByUs, stream.discarded > limit
    else { return }
    reset(stream, NGHTTP2_NO_ERROR.rawValue)
  }

  private static let onStreamClose: nghttp2_on_stream_close_callback = { _, id, code, context in
    let server = ServerSession.from(context)
    guard let stream = server.stream(id), stream.isLive else { return 0 }
    server.release(stream)
    stream.end()
    server.freePositions.append(stream.position)
    server.openStreams -= 1
    if server.openStreams == 0 { server.clocks.becameIdle(at: server.runner.now) }
    if let connection = server.connection {
      connection.openStreamCount.store(server.openStreams, ordering: .relaxed)
      if stream.isShown {
        server.runner.core.handler.streamClosed(id, code: code, on: connection)
      }
    }
    return 0
  }

  /// Copies the next part of a reply's body.
  static let readReply: nghttp2_data_source_read_callback = {
    _, _, buffer, room, flags, source, context in
    guard let buffer, let flags, let source else {
      return Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue)
    }
    let stream = ServerSession.from(context).table[Int(source.pointee.fd)]
    if let source = stream.source {
      switch source.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: room)) {
      case .bytes(let count): return count
      case .later: return Int(NGHTTP2_ERR_DEFERRED.rawValue)
      case .failed: return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
      case .end:
        flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue
        return 0
      }
    }
    let end = stream.replyCut ?? stream.reply.count
    let count = min(room, end - stream.replyNext)
    if count == 0, stream.replyCut != nil {
      return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)  // RST_STREAM INTERNAL_ERROR
    }
    stream.reply.withUnsafeBufferPointer {
      if let base = $0.baseAddress { memcpy(buffer, base + stream.replyNext, count) }
    }
    stream.replyNext += count
    if stream.replyNext == end, stream.replyCut == nil {
      flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue
    }
    return count
  }

  private func headersArrived(_ stream: ServerStream) {
    guard stream.excess == nil else {
      deliver(stream)
      return
    }
    guard let connection, !stream.isDelivered, stream.id <= lastAllowedStream else { return }
    stream.isShown = true
    stream.sender = runner.core.handler.receivedHeaders(stream.request, on: connection)
  }

  private func deliver(_ stream: ServerStream) {
    guard let connection, !stream.isDelivered, stream.id <= lastAllowedStream else { return }
    stream.isShown = true
    stream.isDelivered = true
    runner.core.handler.received(stream.request, on: connection)
  }

  private static let resetMemory = 100

  /// A reset that we sent because the client broke a rule counts as if the client had sent it: the
  /// stream's work may be in progress nevertheless.
  private func noteReset(_ id: Int32) {
    if recentResets.count < Self.resetMemory {
      recentResets.append(id)
    } else {
      recentResets[nextReset] = id
      nextReset = (nextReset + 1) % Self.resetMemory
    }
    if let stream = stream(id), stream.isResetByUs { return }
    // Refused ones were counted when they arrived; nghttp2 does not know them here.
    guard nghttp2_session_get_stream_user_data(session, id) != nil else { return }
    do throws(FrameWatch.Violation) {
      try watch.countReset(at: runner.now)
    } catch {
      refuse(error)
    }
  }
}
