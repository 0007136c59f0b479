import CNghttp2

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

  /// So many requests go ahead of larger batches.
  private static let smallBatch = 32

  /// Gives a batch up: its caller is answered at once, its streams are reset.
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

  /// Answers every request without a stream.
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

  /// Opens streams for waiting requests in the order of the queue, about as many as one write holds.
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

  /// No new streams from here on; what waits is refused.
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
      // A stream that ended well without a status broke the protocol.
      let isUnfinished = code == 0 && !slot.pointee.isCutShort
      reply.pointee.failure = .reset(code: isUnfinished ? NGHTTP2_PROTOCOL_ERROR.rawValue : code)
    }
  }

  /// Whether a byte of a stream may have left this process.
  func isSent(_ position: Int) -> Bool {
    streams.slots[position].stream <= output.lastHeadersStream
  }

  /// Answers for the streams that nghttp2 holds back, because the peer lets no more through.
  func abandonUnsent(_ failure: HTTP2Failure, where isMeant: (BatchJob.Pointer) -> Bool) {
    var unsent: [Int] = []
    streams.forEachYoungest {
      guard !isSent($0) else { return false }
      if let job = streams.slots[$0].job, isMeant(job) { unsent.append($0) }
      return true
    }
    for position in unsent { abandon(position, failure) }
  }

  /// Answers for a stream that has not ended and resets it.
  func abandon(_ position: Int, _ failure: HTTP2Failure) {
    let slot = streams.slots + position
    guard let job = slot.pointee.job, !slot.pointee.isAnswered else { return }
    fail(position, job, failure)
    nghttp2_submit_rst_stream(
      session, UInt8(NGHTTP2_FLAG_NONE.rawValue), slot.pointee.stream, NGHTTP2_CANCEL.rawValue)
    if job.pointee.remaining == 0 { settled.append(job) }
  }

  /// Answers for a stream whose connection has ended.
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
