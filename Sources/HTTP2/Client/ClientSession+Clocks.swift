import CNghttp2

extension ClientSession {
  /// Acts on every clock that has run out.
  func watchClocks() throws(HTTP2ConnectionError) {
    if status.state == .connecting, now >= connectDeadline {
      throw HTTP2ConnectionError(.connectTimedOut, "\(endpoint) sent no SETTINGS in time")
    }
    let replyTimeout = configuration.replyTimeout.nanoseconds
    while streams.oldest >= 0 {
      let position = Int(streams.oldest)
      let openedAt = streams.slots[position].openedAt
      guard now >= openedAt + replyTimeout else { break }
      if lastAnswer < openedAt { status.isSilent = true }
      abandon(position, .timedOut)
    }
    if waitsForRoom, now >= lastProgress + replyTimeout {
      status.isSilent = true
      failQueue(.timedOut)
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
    if waitsForRoom { deadline = min(deadline, lastProgress + replyTimeout) }
    if let idleTimeout = configuration.idleTimeout, isIdle {
      deadline = min(deadline, lastProgress + idleTimeout.nanoseconds)
    }
    return deadline
  }

  /// Requests wait though no stream is open: the peer allows none.
  private var waitsForRoom: Bool {
    status.state == .ready && streams.count == 0 && !queue.isEmpty
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
