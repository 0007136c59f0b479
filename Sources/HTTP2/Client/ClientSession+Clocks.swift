import CNghttp2

extension ClientSession {
  /// Acts on every clock that has run out.
  func watchClocks() throws(HTTP2ConnectionError) {
    if status.state == .connecting, now >= connectDeadline {
      throw HTTP2ConnectionError(.connectTimedOut, "\(endpoint) sent no SETTINGS in time")
    }
    // The clock of a request that nghttp2 still holds back does not run.
    streams.forEachYoungest {
      guard !isSent($0) else { return false }
      streams.slots[$0].openedAt = now
      return true
    }
    let replyTimeout = configuration.replyTimeout.nanoseconds
    while streams.oldest >= 0 {
      let position = Int(streams.oldest)
      let openedAt = streams.slots[position].openedAt
      guard now >= openedAt + replyTimeout else { break }
      if lastAnswer < openedAt { status.isSilent = true }
      abandon(position, .timedOut)
    }
    if waitsForRoom, now >= lastProgress + configuration.roomTimeout.nanoseconds {
      status.isSilent = true
      abandonUnsent(.refused) { _ in true }
      failQueue(.refused)
    }
    for job in jobs where now >= job.pointee.deadline {
      job.pointee.deadline = .max
      abandonUnsent(.refused) { $0 == job }
      job.pointee.failUnsent(.refused)
      queue.removeAll { $0 == job }
      settled.append(job)
    }
    try watchPeer()
    if let idleTimeout = configuration.idleTimeout, isIdle,
      now >= lastProgress + idleTimeout.nanoseconds
    {
      throw HTTP2ConnectionError(.idle, "\(endpoint): closed after the idle time")
    }
  }

  /// When the next clock runs out.
  func nextDeadline() -> UInt64? {
    var deadline =
      pingSentAt.map { $0 + configuration.pingTimeout.nanoseconds }
      ?? lastReceived + configuration.pingInterval.nanoseconds
    if status.state == .connecting { deadline = min(deadline, connectDeadline) }
    let replyTimeout = configuration.replyTimeout.nanoseconds
    if streams.oldest >= 0 {
      deadline = min(deadline, streams.slots[Int(streams.oldest)].openedAt + replyTimeout)
    }
    if waitsForRoom {
      deadline = min(deadline, lastProgress + configuration.roomTimeout.nanoseconds)
    }
    for job in jobs { deadline = min(deadline, job.pointee.deadline) }
    if let idleTimeout = configuration.idleTimeout, isIdle {
      deadline = min(deadline, lastProgress + idleTimeout.nanoseconds)
    }
    return deadline
  }

  /// Requests wait though none is under way: the peer allows no stream.
  private var waitsForRoom: Bool {
    guard status.state == .ready else { return false }
    return streams.oldest >= 0
      ? !isSent(Int(streams.oldest)) : streams.count == 0 && !queue.isEmpty
  }

  private var isIdle: Bool {
    status.state == .ready && streams.count == 0 && queue.isEmpty
  }

  /// Asks a silent peer whether it lives, and gives up on one that does not answer.
  private func watchPeer() throws(HTTP2ConnectionError) {
    if let sent = pingSentAt {
      guard now < sent + configuration.pingTimeout.nanoseconds else {
        throw HTTP2ConnectionError(.pingTimedOut, "\(endpoint) does not answer a PING")
      }
    } else if now >= lastReceived + configuration.pingInterval.nanoseconds {
      nghttp2_submit_ping(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil)
      pingSentAt = now
    }
  }
}
