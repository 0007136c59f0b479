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
    for position in streams.openSlots where streams.slots[position].job == job {
      abandon(position, .cancelled)
    }
    settled.append(job)
  }

  /// Resumes and frees the jobs whose requests all have an outcome.
  func settle() {
    guard !settled.isEmpty else { return }
    let finished = settled
    settled.removeAll(keepingCapacity: true)
    for job in finished where jobs.contains(job) {
      guard job.pointee.remaining == 0 else { continue }
      job.pointee.resume(status: status)
      jobs.removeAll { $0 == job }
      BatchJob.destroy(job)
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

  /// Whether a request waits and a stream may be opened for it. One with a body waits for the
  /// connection's window; that of its stream may be granted once the peer has seen its fields.
  var canOpenStream: Bool {
    guard status.state == .ready, streams.count < streamLimit, !streams.isFull,
      let job = queue.first
    else { return false }
    return window > 0 || job.pointee.requests[job.pointee.next].body.isEmpty
  }

  /// Opens streams for waiting requests in the order of the queue, as many as one write holds.
  func openStreams() {
    while !output.isFull, canOpenStream, let job = queue.first {
      guard nextStream > 0 else { return beginDraining() }
      let index = job.pointee.next
      let request = job.pointee.requests[index]
      var slot = StreamTable.Slot()
      slot.job = job
      slot.openedAt = now
      slot.stream = nextStream
      slot.request = Int32(truncatingIfNeeded: index)
      slot.bodyNext = request.body.offset
      slot.bodyEnd = request.body.offset + request.body.count
      slot.window = streamWindow
      // The last one is 2^31 - 1; after it the number is negative.
      nextStream &+= 2
      sendHeaders(of: request, job, slot.stream)
      let position = streams.open(slot)
      if slot.hasBodyLeft { sendBody(position) }
      job.pointee.next = index + 1
      if index + 1 == job.pointee.count { queue.removeFirst() }
      lastProgress = now
    }
  }

  /// Opens no new streams from here on; waiting requests are refused.
  func beginDraining() {
    status.state = .draining
    failQueue(.refused)
  }

  /// Ends a stream with its reply. The peer may have answered before the whole body was sent; the
  /// rest is for nobody (RFC 9113, section 8.1).
  func complete(_ position: Int) {
    if streams.slots[position].hasBodyLeft {
      sendReset(streams.slots[position].stream, .cancel)
    }
    status.answered &+= 1
    status.isSilent = false
    lastAnswer = now
    end(position, nil)
  }

  /// Fails a stream, and resets it.
  func abandon(_ position: Int, _ failure: HTTP2Failure) {
    sendReset(streams.slots[position].stream, .cancel)
    end(position, failure)
  }

  /// The failure of the streams of a connection that has ended.
  func streamFailure(after error: HTTP2ConnectionError) -> HTTP2Failure {
    error.kind == .closed ? .cancelled : .connectionLost
  }

  /// Ends a stream: its request has its reply or failure, and whatever else comes for it is ignored.
  func end(_ position: Int, _ failure: HTTP2Failure?, isTruncated: Bool = false) {
    let slot = streams.slots + position
    guard let job = slot.pointee.job else { return }
    let reply = job.pointee.replies + Int(slot.pointee.request)
    reply.pointee.status = slot.pointee.status
    reply.pointee.wasSent = true
    reply.pointee.failure = failure
    reply.pointee.isBodyTruncated = isTruncated
    if !streams.bodies[position].isEmpty {
      reply.pointee.body = streams.bodies[position].withUnsafeBufferPointer {
        job.pointee.keep($0)
      }
      streams.bodies[position].removeAll(keepingCapacity: true)
    }
    streams.close(position)
    job.pointee.remaining -= 1
    lastProgress = now
    if job.pointee.remaining == 0 { settled.append(job) }
  }
}
