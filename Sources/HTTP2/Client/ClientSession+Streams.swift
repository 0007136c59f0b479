import CNghttp2

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

extension ClientSession {
  // MARK: Jobs

  /// Takes a batch from the mailbox.
  func accept(_ pending: PendingBatch) {
    guard status.state != .draining else {
      pending.fail(.refused, status: status)
      return
    }
    if queue.isEmpty { lastProgress = now }
    let job = BatchJob.make(
      pending, deadline: now + configuration.batchTimeout.nanoseconds)
    jobs.append(job)
    // A few requests need not wait for the streams of thousands.
    let isSmall = job.pointee.count <= Self.smallBatch
    let place = isSmall ? queue.firstIndex { $0.pointee.count > Self.smallBatch } : nil
    queue.insert(job, at: place ?? queue.endIndex)
  }

  /// Maximum number of requests of a batch that goes ahead of larger ones.
  private static let smallBatch = 32

  /// Cancels a batch: its caller is resumed at once, its streams are reset.
  func cancel(_ pending: PendingBatch) {
    guard
      let job = jobs.first(where: { $0.pointee.pending.takeUnretainedValue() === pending }),
      job.pointee.remaining > 0
    else { return }
    queue.removeAll { $0 == job }
    job.pointee.failUnsent(.cancelled)
    let open = streams  // a copy: `abandon` changes the table
    open.forEachOpen {
      if open.slots[$0].job == job { abandon($0, .cancelled) }
    }
    settled.append(job)
  }

  /// Resumes and frees the jobs that callbacks finished.
  func settle() {
    guard !settled.isEmpty else { return }
    let finished = settled
    settled.removeAll(keepingCapacity: true)
    for job in finished where jobs.contains(job) {
      if job.pointee.remaining == 0 { job.pointee.resume(status: status) }
      if job.pointee.remaining == 0, job.pointee.openStreams == 0 {
        jobs.removeAll { $0 == job }
        BatchJob.destroy(job)
      }
    }
  }

  /// Fails every request without a stream.
  func failQueue(_ failure: HTTP2Failure) {
    for job in queue {
      job.pointee.failUnsent(failure)
      settled.append(job)
    }
    queue.removeAll()
  }

  // MARK: Streams

  /// Whether a request waits and a stream may be opened for it.
  var canOpenStream: Bool {
    !queue.isEmpty && status.state == .ready && streams.count < streamLimit && !streams.isFull
  }

  /// Opens streams for waiting requests in the order of the queue, about as many as one write
  /// holds.
  func openStreams() throws(HTTP2ConnectionError) {
    var budget = 64
    while budget > 0, canOpenStream, let job = queue.first {
      let index = job.pointee.next
      let request = job.pointee.requests[index]
      let (pairs, count) = job.pointee.pairs(of: request)
      var slot = StreamTable.Slot()
      slot.job = job
      slot.openedAt = now
      slot.request = Int32(truncatingIfNeeded: index)
      slot.bodyNext = request.body.offset
      slot.bodyEnd = request.body.offset + request.body.count
      let position = streams.open(slot)
      let userData = UnsafeMutableRawPointer(bitPattern: position + 1)
      let stream: Int32
      if request.body.isEmpty {
        stream = nghttp2_submit_request(session, nil, pairs, count, nil, userData)
      } else {
        var body = nghttp2_data_provider(
          source: nghttp2_data_source(fd: Int32(truncatingIfNeeded: position)),
          read_callback: Self.readBody)
        stream = nghttp2_submit_request(session, nil, pairs, count, &body, userData)
      }
      guard stream > 0 else {
        streams.close(position)
        try refuseNewStreams(stream)
        return
      }
      streams.slots[position].stream = stream
      job.pointee.next = index + 1
      job.pointee.openStreams += 1
      if index + 1 == job.pointee.count { queue.removeFirst() }
      lastProgress = now
      budget -= 1
    }
  }

  private func refuseNewStreams(_ code: Int32) throws(HTTP2ConnectionError) {
    guard code == NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE.rawValue else {
      let reason = String(cString: nghttp2_strerror(code))
      throw HTTP2ConnectionError(.protocolViolation, "\(endpoint): cannot open a stream: \(reason)")
    }
    beginDraining()
  }

  /// Opens no new streams from here on; waiting requests are refused.
  func beginDraining() {
    status.state = .draining
    failQueue(.refused)
  }

  /// Fills in the reply of a stream that ended.
  func complete(_ position: Int, code: UInt32) {
    let slot = streams.slots + position
    guard let job = slot.pointee.job else { return }
    if !slot.pointee.isAnswered { answer(position, job, code) }
    streams.bodies[position].removeAll(keepingCapacity: true)
    streams.close(position)
    job.pointee.openStreams -= 1
    lastProgress = now
    if job.pointee.remaining == 0 { settled.append(job) }
  }

  @inline(__always)
  private func answer(_ position: Int, _ job: BatchJob.Pointer, _ code: UInt32) {
    let slot = streams.slots + position
    let reply = job.pointee.replies + Int(slot.pointee.request)
    let wasSent = slot.pointee.stream <= output.lastHeadersStream
    reply.pointee.status = slot.pointee.status
    reply.pointee.wasSent = wasSent
    if !streams.bodies[position].isEmpty {
      reply.pointee.body = streams.bodies[position].withUnsafeBufferPointer {
        job.pointee.keep($0)
      }
    }
    job.pointee.remaining -= 1
    if code == 0 && slot.pointee.status != 0 && !slot.pointee.isCutShort {
      status.answered &+= 1
      status.isSilent = false
      lastAnswer = now
      return
    }
    if slot.pointee.isTruncated {
      reply.pointee.isBodyTruncated = true
    } else if code == NGHTTP2_REFUSED_STREAM.rawValue || !wasSent {
      reply.pointee.failure = .refused
    } else {
      // A stream that ended normally without a status violates the protocol.
      let isUnfinished = code == 0 && !slot.pointee.isCutShort
      reply.pointee.failure = .reset(code: isUnfinished ? NGHTTP2_PROTOCOL_ERROR.rawValue : code)
    }
  }

  /// Whether a byte of a stream may have left this process.
  func isSent(_ position: Int) -> Bool {
    streams.slots[position].stream <= output.lastHeadersStream
  }

  /// Fails the streams that nghttp2 holds back because of the peer's limit.
  func abandonUnsent(_ failure: HTTP2Failure, where isMeant: (BatchJob.Pointer) -> Bool) {
    var unsent: [Int] = []
    streams.forEachYoungest {
      guard !isSent($0) else { return false }
      if let job = streams.slots[$0].job, isMeant(job) { unsent.append($0) }
      return true
    }
    for position in unsent { abandon(position, failure) }
  }

  /// Fails a stream that has not ended, and resets it.
  func abandon(_ position: Int, _ failure: HTTP2Failure) {
    let slot = streams.slots + position
    guard let job = slot.pointee.job, !slot.pointee.isAnswered else { return }
    fail(position, job, failure)
    nghttp2_submit_rst_stream(
      session, UInt8(NGHTTP2_FLAG_NONE.rawValue), slot.pointee.stream, NGHTTP2_CANCEL.rawValue)
    if job.pointee.remaining == 0 { settled.append(job) }
  }

  /// Fails a stream whose connection has ended.
  func fail(_ position: Int, after error: HTTP2ConnectionError) {
    let slot = streams.slots + position
    guard let job = slot.pointee.job, !slot.pointee.isAnswered else { return }
    let wasSent = slot.pointee.stream <= output.lastHeadersStream
    let lost: HTTP2Failure = error.kind == .closed ? .cancelled : .connectionLost
    fail(position, job, wasSent ? lost : ClientCore.unsentFailure(after: error))
  }

  private func fail(_ position: Int, _ job: BatchJob.Pointer, _ failure: HTTP2Failure) {
    let slot = streams.slots + position
    let reply = job.pointee.replies + Int(slot.pointee.request)
    reply.pointee.status = slot.pointee.status
    reply.pointee.wasSent = slot.pointee.stream <= output.lastHeadersStream
    reply.pointee.failure = failure
    job.pointee.remaining -= 1
    streams.answer(position)
  }
}

/// Callbacks for nghttp2. The context is the session, which outlives its nghttp2 handle.
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
    // The fields of a reply arrive one after the other: only the first looks up its stream.
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

  /// Distinguishes a reset in the middle of a reply from one after its end, which is not a failure.
  /// It must check before nghttp2 does, because a reset closes the peer's side too.
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

  /// Applies the stream limit in newly received SETTINGS; the first make the connection ready.
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
