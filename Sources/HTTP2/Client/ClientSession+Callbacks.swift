import CNghttp2

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// What nghttp2 calls. The context is the session, which outlives its nghttp2 handle.
extension ClientSession {
  @inline(__always)
  private static func from(_ context: UnsafeMutableRawPointer?) -> ClientSession {
    // nghttp2 hands back the pointer that `makeSession` gave it.
    Unmanaged<ClientSession>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue()
  }

  /// The slot that a stream's user data names; -1 for a stream that is not ours.
  @inline(__always)
  private static func position(_ session: OpaquePointer?, _ stream: Int32) -> Int {
    Int(bitPattern: nghttp2_session_get_stream_user_data(session, stream)) - 1
  }

  func installCallbacks(_ callbacks: OpaquePointer?) {
    nghttp2_session_callbacks_set_on_header_callback(callbacks, Self.onHeader)
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Self.onData)
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, Self.onBeginFrame)
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Self.onFrame)
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Self.onStreamClose)
  }

  /// Copies the next part of a request's body.
  static let readBody: nghttp2_data_source_read_callback = {
    _, _, buffer, room, flags, source, context in
    guard let buffer, let flags, let source else {
      return Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue)
    }
    let slot = ClientSession.from(context).streams.slots + Int(source.pointee.fd)
    guard let job = slot.pointee.job else {
      return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
    }
    let count = min(room, Int(slot.pointee.bodyEnd - slot.pointee.bodyNext))
    memcpy(buffer, job.pointee.bytes + Int(slot.pointee.bodyNext), count)
    slot.pointee.bodyNext += UInt32(truncatingIfNeeded: count)
    if slot.pointee.bodyNext == slot.pointee.bodyEnd {
      flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue
    }
    return count
  }

  private static let onHeader: nghttp2_on_header_callback = {
    session, frame, name, nameCount, value, valueCount, _, context in
    guard let frame, let name, let value else { return 0 }
    let client = ClientSession.from(context)
    let stream = frame.pointee.hd.stream_id
    // The fields of a reply come one after the other: only the first looks its stream up.
    var slot = client.streams.slots + client.headerPosition
    if slot.pointee.stream != stream || slot.pointee.job == nil {
      let position = ClientSession.position(session, stream)
      guard position >= 0 else { return 0 }
      client.headerPosition = position
      slot = client.streams.slots + position
    }
    slot.pointee.headerBytes &+= UInt32(truncatingIfNeeded: nameCount + valueCount)
    guard Int(slot.pointee.headerBytes) <= client.configuration.maxReplyHeader else {
      return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
    }
    if nameCount == 7, name[0] == 0x3A {  // ":status", three digits as nghttp2 has checked
      guard valueCount == 3 else { return 0 }
      slot.pointee.status =
        UInt16(value[0] &- 48) * 100 + UInt16(value[1] &- 48) * 10 + UInt16(value[2] &- 48)
    } else if let job = slot.pointee.job, !job.pointee.wanted.isEmpty {
      job.pointee.keepIfWanted(
        UnsafeBufferPointer(start: name, count: nameCount),
        UnsafeBufferPointer(start: value, count: valueCount), request: Int(slot.pointee.request))
    }
    return 0
  }

  private static let onData: nghttp2_on_data_chunk_recv_callback = {
    session, _, stream, data, count, context in
    let position = ClientSession.position(session, stream)
    guard position >= 0, let data else { return 0 }
    let client = ClientSession.from(context)
    let slot = client.streams.slots + position
    guard let job = slot.pointee.job, !slot.pointee.isAnswered, !slot.pointee.isTruncated else {
      return 0
    }
    if (200..<300).contains(slot.pointee.status) && !job.pointee.keepsSuccessBodies { return 0 }
    let room = client.configuration.maxReplyBody - client.streams.bodies[position].count
    client.streams.bodies[position].append(
      contentsOf: UnsafeBufferPointer(start: data, count: max(0, min(room, count))))
    if count > room {
      slot.pointee.isTruncated = true
      nghttp2_submit_rst_stream(
        session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream, NGHTTP2_CANCEL.rawValue)
    }
    return 0
  }

  /// Tells a reset in the middle of a reply from one after its end, which is no failure. It must
  /// look before nghttp2 does, because a reset closes the peer's side too.
  private static let onBeginFrame: nghttp2_on_begin_frame_callback = { session, header, context in
    guard let header, UInt32(header.pointee.type) == NGHTTP2_RST_STREAM.rawValue,
      nghttp2_session_get_stream_remote_close(session, header.pointee.stream_id) == 0
    else { return 0 }
    let position = ClientSession.position(session, header.pointee.stream_id)
    if position >= 0 { ClientSession.from(context).streams.slots[position].isCutShort = true }
    return 0
  }

  private static let onFrame: nghttp2_on_frame_recv_callback = { _, frame, context in
    guard let frame else { return 0 }
    switch UInt32(frame.pointee.hd.type) {
    case NGHTTP2_SETTINGS.rawValue:
      if UInt32(frame.pointee.hd.flags) & NGHTTP2_FLAG_ACK.rawValue == 0 {
        ClientSession.from(context).obeySettings()
      }
    case NGHTTP2_GOAWAY.rawValue:
      ClientSession.from(context).note(frame.pointee.goaway)
    case NGHTTP2_PING.rawValue:
      if UInt32(frame.pointee.hd.flags) & NGHTTP2_FLAG_ACK.rawValue != 0 {
        ClientSession.from(context).pingSentAt = nil
      }
    default: break
    }
    return 0
  }

  private static let onStreamClose: nghttp2_on_stream_close_callback = {
    session, stream, code, context in
    let position = ClientSession.position(session, stream)
    guard position >= 0 else { return 0 }
    ClientSession.from(context).complete(position, code: code)
    return 0
  }

  /// Reads the stream limit from SETTINGS that just arrived; the first makes the connection ready.
  private func obeySettings() {
    let limit = nghttp2_session_get_remote_settings(
      session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
    status.peerStreamLimit = Int(limit)
    streamLimit = min(Int(limit), configuration.maxConcurrentStreams)
    if status.state == .connecting { status.state = .ready }
    lastProgress = now
  }

  private func note(_ frame: nghttp2_goaway) {
    let kept = UnsafeBufferPointer(
      start: frame.opaque_data, count: min(4096, frame.opaque_data_len))
    status.goAway = HTTP2GoAway(
      lastStreamID: frame.last_stream_id, code: frame.error_code, debugData: Array(kept))
    beginDraining()
  }
}
