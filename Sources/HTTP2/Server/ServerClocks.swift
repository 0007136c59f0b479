import CNghttp2

/// The starting times of a server connection's time limits. A pure value: it is told the time and
/// the events, and returns the action that is due.
struct ServerClocks: Sendable {
  /// Time during which input is still read and discarded after our side was closed.
  static let lingerTime: UInt64 = 2_000_000_000

  private let acceptedAt: UInt64
  private var lastReceived: UInt64
  /// The time when the last stream ended, or the connection opened.
  private var idleSince: UInt64
  private var pingedAt: UInt64?
  /// The time since which the client has not read any of the pending output.
  private var blockedSince: UInt64?
  private var writtenWhenBlocked: UInt64 = 0
  private var lingersSince: UInt64 = 0

  enum Due: Equatable, Sendable {
    /// The connection is freed at once.
    case end
    /// The connection is closed with GOAWAY.
    case goAway
    case ping
  }

  init(acceptedAt: UInt64) {
    self.acceptedAt = acceptedAt
    lastReceived = acceptedAt
    idleSince = acceptedAt
  }

  mutating func opened(at now: UInt64) { (lastReceived, idleSince) = (now, now) }
  mutating func received(at now: UInt64) { (lastReceived, pingedAt) = (now, nil) }
  mutating func becameIdle(at now: UInt64) { idleSince = now }
  mutating func lingers(from now: UInt64) { lingersSince = now }
  mutating func drained() { blockedSince = nil }

  mutating func blocked(at now: UInt64, written: UInt64) {
    guard blockedSince == nil || written != writtenWhenBlocked else { return }
    (blockedSince, writtenWhenBlocked) = (now, written)
  }

  /// The action due for a connection in its handshake.
  func dueInHandshake(at now: UInt64, _ limits: HTTP2ServerConfiguration) -> Due? {
    now >= acceptedAt + limits.handshakeTimeout.nanoseconds ? .end : nil
  }

  func dueWhileLingering(at now: UInt64) -> Due? {
    now >= lingersSince + Self.lingerTime ? .end : nil
  }

  /// The action due for an open connection; its streams have deadlines of their own.
  mutating func due(
    at now: UInt64, openStreams: Int, watch: FrameWatch, _ limits: HTTP2ServerConfiguration
  ) -> Due? {
    if !watch.hasSettings, let due = dueInHandshake(at: now, limits) { return due }
    if let since = watch.incompleteSince, now >= since + limits.requestTimeout.nanoseconds {
      return .goAway
    }
    if let blockedSince, now >= blockedSince + limits.replyTimeout.nanoseconds { return .end }
    guard let idle = limits.idleTimeout?.nanoseconds else { return nil }
    if openStreams == 0 { return now >= idleSince + idle ? .goAway : nil }
    if let pingedAt { return now >= pingedAt + idle ? .end : nil }
    guard now >= lastReceived + idle else { return nil }
    pingedAt = now
    return .ping
  }
}

extension ServerSession {
  /// Handles every expired time limit.
  func watchClocks(_ now: UInt64) {
    let limits = runner.core.configuration
    let due: ServerClocks.Due? =
      switch phase {
      case .handshake: clocks.dueInHandshake(at: now, limits)
      case .open: clocks.due(at: now, openStreams: openStreams, watch: watch, limits)
      case .lingering: clocks.dueWhileLingering(at: now)
      case .stalled, .ended: nil
      }
    switch due {
    case .end: return end(isReset: phase == .open)
    case .goAway:
      nghttp2_session_terminate_session(session, NGHTTP2_NO_ERROR.rawValue)
      markDirty()
    case .ping:
      nghttp2_submit_ping(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil)
      markDirty()
    case nil: break
    }
    if phase == .open, openStreams > 0 { endLateStreams(now) }
  }

  private func endLateStreams(_ now: UInt64) {
    for stream in table where stream.isLive && now >= stream.deadline {
      // A reset would be queued behind output that the client does not read.
      if output.isBlocked { return end(isReset: true) }
      stream.deadline = .max
      let code = stream.isReplied ? NGHTTP2_NO_ERROR : NGHTTP2_CANCEL
      reset(stream, code.rawValue)
      markDirty()
      guard !stream.isComplete else { continue }
      release(stream)
      stream.body = []
      stream.isDelivered = true  // never to be
      do throws(FrameWatch.Violation) {
        try watch.countReset(at: now)
      } catch {
        return refuse(error)
      }
    }
  }
}
