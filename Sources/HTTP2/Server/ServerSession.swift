import CNghttp2
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// One client connection on its loop: socket, TLS, nghttp2 session, streams. For one thread.
final class ServerSession {
  enum Phase {
    case handshake
    case open
    /// Our side is closed; what still comes in is read and thrown away, so that the client gets
    /// our last bytes rather than a TCP reset.
    case lingering
    case stalled
    case ended
  }

  private static let lingerTime: UInt64 = 2_000_000_000

  unowned let runner: ServerRunner
  let id: UInt64
  let peer: String
  /// Owned; closed in `end`.
  let descriptor: Int32
  private let isAdopted: Bool
  private var channel: TLSChannel?
  /// Owned; deleted in `end`.
  var session: OpaquePointer?
  var connection: HTTP2ServerConnection?
  let output = FrameOutput()
  private(set) var phase: Phase
  /// What a command asked for while nghttp2 may be on the stack; done by `pump`.
  var isAborting = false
  var isClosing = false
  private var isDirty = false
  /// OpenSSL reads ahead, so the socket may be empty while there is more to read.
  private(set) var hasMoreInput = false
  private var acceptedAt: UInt64
  private var lastReceived: UInt64
  private var lingerDeadline: UInt64 = 0

  var table: [ServerStream] = []
  var freePositions: [Int] = []
  var openStreams = 0
  /// Bytes of the requests' bodies that are not complete.
  var unfinishedBodies = 0
  var hasSentSettings = false
  /// The last stream that a GOAWAY of ours lets through.
  var lastAllowedStream = Int32.max
  var announcedLimit: Int
  var initialWindow: Int
  /// RST_STREAM frames received in the current second.
  var resets = 0
  var resetSecond: UInt64 = 0

  init?(_ runner: ServerRunner, _ accepted: ServerLoop.Accepted) {
    self.runner = runner
    id = accepted.id
    peer = accepted.peer
    descriptor = accepted.descriptor
    isAdopted = accepted.isAdopted
    acceptedAt = runner.now
    lastReceived = runner.now
    announcedLimit = runner.core.configuration.maxConcurrentStreams
    initialWindow = runner.core.configuration.initialWindowSize
    phase = accepted.decision == .stall ? .stalled : .handshake
    guard let channel = TLSChannel(runner.core.context, descriptor: descriptor) else {
      // Without this the failing initializer would need every property set; nothing is owned yet.
      return nil
    }
    if case .alert(let alert) = accepted.decision {
      channel.accept(alert: alert)
    } else {
      channel.accept(alert: nil)
    }
    self.channel = channel
  }

  var isEnded: Bool { phase == .ended }

  /// Whether frames that nghttp2 has at hand should no longer be looked at.
  var isDeaf: Bool { isAborting || isClosing || phase != .open }

  /// What the loop's `poll` should wait for.
  var events: Int16 {
    switch phase {
    case .handshake: Int16(channel?.wantsWrite == true ? POLLOUT : POLLIN)
    case .open: Int16(output.isBlocked ? POLLIN | POLLOUT : POLLIN)
    case .lingering: Int16(POLLIN)
    case .stalled, .ended: 0
    }
  }

  func markDirty() {
    guard !isDirty else { return }
    isDirty = true
    runner.markDirty(self)
  }

  /// The socket has something.
  func wake(events: Int32) {
    switch phase {
    case .handshake: handshake()
    case .open:
      if hasMoreInput || events & ~Int32(POLLOUT) != 0 { receive() }
      markDirty()
    case .lingering: discard()
    case .stalled: end(isReset: false)  // only an error or a hang-up wakes a stalled one
    case .ended: break
    }
  }

  private func handshake() {
    guard let channel else { return }
    let result = channel.handshake()
    if result == 0 { return }
    let isAgreed = channel.speaksH2 || !runner.core.configuration.requiresALPN
    guard result > 0, isAgreed else {
      linger()
      return
    }
    let connection = HTTP2ServerConnection(
      id: id, peerCertificate: channel.peerCertificate, remoteAddress: peer, loop: runner.loop)
    guard makeSession() else {
      end(isReset: true)
      return
    }
    phase = .open
    lastReceived = runner.now
    self.connection = connection
    connection.session = self
    runner.core.opened(connection)
    runner.core.handler.connectionOpened(connection)
    sendSettings()
    // The client's first bytes may have come with the end of the handshake.
    receive()
    markDirty()
  }

  private func receive() {
    guard let channel else { return }
    hasMoreInput = false
    // Bounded, so that one client cannot keep the others waiting.
    for _ in 0..<16 {
      guard !isDeaf else { return }
      let count = channel.read(into: runner.input, count: ServerRunner.inputSize)
      if count == 0 { return }
      guard count > 0 else {
        // The client has gone or closed its side; a half-open client gets nothing more.
        isClosing = true
        return
      }
      lastReceived = runner.now
      let used = nghttp2_session_mem_recv(
        session, runner.input.assumingMemoryBound(to: UInt8.self), count)
      // Garbage: nghttp2 has queued a GOAWAY unless it was no HTTP/2 at all.
      if used < 0 { isClosing = true }
    }
    hasMoreInput = true
  }

  /// Writes what is queued and does what commands asked for.
  func pump() {
    isDirty = false
    guard phase == .open, let channel else { return }
    if isAborting {
      end(isReset: true)
      return
    }
    while true {
      if !output.isBlocked, !output.gather(from: session) {
        end(isReset: true)
        return
      }
      switch output.flush(to: channel) {
      case .more: continue
      case .blocked: return
      case .failed:
        end(isReset: false)
        return
      case .drained:
        let isDone =
          nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0
        if isClosing || isDone {
          linger()
        } else if openStreams == 0 {
          output.release()
        }
        return
      }
    }
  }

  func stall() {
    phase = .stalled
    hasMoreInput = false
  }

  /// Closes our side and waits a little for the client's.
  private func linger() {
    reportClosed()
    channel?.closeNotify()
    Socket.shutdownWriting(descriptor)
    phase = .lingering
    hasMoreInput = false
    lingerDeadline = runner.now + Self.lingerTime
    discard()
  }

  private func discard() {
    for _ in 0..<16 {
      let count = recv(descriptor, runner.input, ServerRunner.inputSize, 0)
      if count > 0 { continue }
      if count < 0, errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR { return }
      end(isReset: false)
      return
    }
  }

  func watchClocks(_ now: UInt64) {
    let configuration = runner.core.configuration
    switch phase {
    case .handshake:
      if now >= acceptedAt + configuration.handshakeTimeout.nanoseconds { end(isReset: false) }
    case .open:
      if let idle = configuration.idleTimeout, now >= lastReceived + idle.nanoseconds {
        isClosing = true
        markDirty()
      }
    case .lingering:
      if now >= lingerDeadline { end(isReset: false) }
    case .stalled, .ended: break
    }
  }

  /// Tells the handler, once, that the connection and its streams have ended.
  private func reportClosed() {
    guard let connection else { return }
    self.connection = nil
    connection.session = nil
    runner.core.closed(connection)
    for stream in table where stream.isLive {
      stream.isLive = false
      guard stream.isShown else { continue }
      runner.core.handler.streamClosed(stream.id, code: NGHTTP2_CANCEL.rawValue, on: connection)
    }
    connection.openStreamCount.store(0, ordering: .relaxed)
    runner.core.handler.connectionClosed(connection)
  }

  /// Frees everything; the loop drops the session afterwards.
  func end(isReset: Bool) {
    guard phase != .ended else { return }
    reportClosed()
    phase = .ended
    hasMoreInput = false
    if isReset { Socket.setReset(descriptor) }
    nghttp2_session_del(session)
    session = nil
    channel = nil
    if isAdopted { runner.core.handler.socketClosed(id: id) }
    Socket.close(descriptor)
    runner.core.socketCount.subtract(1, ordering: .relaxed)
    markDirty()
  }
}
