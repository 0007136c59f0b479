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
    /// Our side is closed; further input is read and discarded, so that the client gets our last
    /// bytes rather than a TCP reset.
    case lingering
    case stalled
    case ended
  }

  /// Maximum number of frames queued for a client that does not read; above it nothing more is read
  /// from it.
  private static let maxQueuedFrames = 1000

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
  /// Commands received while nghttp2 may be on the stack; executed by `pump`.
  var isAborting = false
  var isClosing = false
  /// The violation for which the client is disconnected; GOAWAY is being sent and nothing more is
  /// read.
  private(set) var violation: FrameWatch.Violation?
  var watch: FrameWatch
  private var isDirty = false
  /// Whether OpenSSL has buffered input, so that there is more to read although the socket is
  /// empty.
  private var hasReadAhead = false
  var clocks: ServerClocks

  var table: [ServerStream] = []
  var freePositions: [Int] = []
  var openStreams = 0
  /// Bytes of the bodies of requests without a reply.
  private(set) var heldBodies = 0
  /// The same by sender, with the claims for more than the minimum.
  private var bodies: [String?: (held: Int, claim: BodyBudget.Claim?)] = [:]
  var hasSentSettings = false
  /// The last stream that our GOAWAY allows.
  var lastAllowedStream = Int32.max
  var announcedLimit: Int
  var initialWindow: Int
  /// The last stream that the client opened, or tried to.
  var highestStream: Int32 = 0
  /// The last streams that we have reset, in a ring: the client may not have known it yet.
  var recentResets: [Int32] = []
  var nextReset = 0
  /// Bytes of the header block that is being read, as `maxHeader` counts them.
  var blockBytes = 0

  init?(_ runner: ServerRunner, _ accepted: ServerLoop.Accepted) {
    self.runner = runner
    id = accepted.id
    peer = accepted.peer
    descriptor = accepted.descriptor
    isAdopted = accepted.isAdopted
    clocks = ServerClocks(acceptedAt: runner.now)
    watch = FrameWatch(runner.core.configuration)
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

  /// Accounts for the next bytes of a stream's body.
  /// - Returns: `false` where there is no room for them.
  func hold(_ count: Int, of stream: ServerStream) -> Bool {
    let configuration = runner.core.configuration
    guard heldBodies + count <= configuration.maxHeldBodies else { return false }
    if let budget = configuration.bodyBudget {
      var own = bodies[stream.sender] ?? (0, nil)
      own.held += count
      if own.held > BodyBudget.least {
        own.claim = own.claim ?? BodyBudget.Claim(on: budget, of: stream.sender)
        guard own.held <= own.claim?.share ?? .max else { return false }
      }
      bodies[stream.sender] = own
    }
    heldBodies += count
    stream.held += count
    return true
  }

  /// Stops counting the stream's body: it has its reply, was discarded, or is complete.
  func release(_ stream: ServerStream) {
    guard stream.held > 0 else { return }
    heldBodies -= stream.held
    if var own = bodies[stream.sender] {
      own.held -= stream.held
      if own.held <= BodyBudget.least { own.claim = nil }
      bodies[stream.sender] = own.held > 0 ? own : nil
    }
    stream.held = 0
  }

  /// Whether frames that nghttp2 holds are ignored.
  var isDeaf: Bool { isAborting || isClosing || violation != nil || phase != .open }

  /// Whether the client does not read the output that it causes: until it does, it is not read
  /// either.
  private var isCongested: Bool {
    output.isBlocked && nghttp2_session_get_outbound_queue_size(session) > Self.maxQueuedFrames
  }

  /// Whether there is input that `poll` does not report.
  var hasMoreInput: Bool { hasReadAhead && !isCongested }

  /// The events that the loop's `poll` should wait for.
  var events: Int16 {
    switch phase {
    case .handshake: Int16(channel?.wantsWrite == true ? POLLOUT : POLLIN)
    case .open:
      Int16(isCongested ? POLLOUT : output.isBlocked ? POLLIN | POLLOUT : POLLIN)
    case .lingering: Int16(POLLIN)
    case .stalled, .ended: 0
    }
  }

  func markDirty() {
    guard !isDirty else { return }
    isDirty = true
    runner.markDirty(self)
  }

  /// Handles events of the socket.
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
    open(peerCertificate: channel.peerCertificate)
    // The client's first bytes may have arrived with the end of the handshake.
    receive()
  }

  /// Begins HTTP/2 on a channel that is ready for it.
  func open(peerCertificate: HTTP2PeerCertificate?) {
    let connection = HTTP2ServerConnection(
      id: id, peerCertificate: peerCertificate, remoteAddress: peer, loop: runner.loop)
    guard makeSession() else {
      end(isReset: true)
      return
    }
    phase = .open
    clocks.opened(at: runner.now)
    self.connection = connection
    connection.session = self
    runner.core.opened(connection)
    runner.core.handler.connectionOpened(connection)
    sendSettings()
    markDirty()
  }

  private func receive() {
    guard let channel else { return }
    hasReadAhead = false
    // Bounded, so that one client cannot keep the others waiting.
    for _ in 0..<16 {
      guard !isDeaf else { return }
      guard !isCongested else { break }
      let count = channel.read(into: runner.input, count: ServerRunner.inputSize)
      if count == 0 { return }
      guard count > 0 else {
        // The client has gone or closed its side; a half-open client gets nothing more.
        isClosing = true
        return
      }
      read(UnsafeRawBufferPointer(start: runner.input, count: count))
    }
    hasReadAhead = true
  }

  /// Processes decrypted input from the client.
  func read(_ bytes: UnsafeRawBufferPointer) {
    clocks.received(at: runner.now)
    do throws(FrameWatch.Violation) {
      try watch.read(bytes, at: runner.now)
    } catch {
      return refuse(error)
    }
    let used = nghttp2_session_mem_recv(
      session, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
    if used == Int(NGHTTP2_ERR_FLOODED.rawValue) { refuse(.controlFrames) }
    // Malformed input: nghttp2 has queued a GOAWAY unless it was not HTTP/2 at all.
    if used < 0, violation == nil { isClosing = true }
  }

  /// Ends the connection of a client that broke one of our rules.
  func refuse(_ violation: FrameWatch.Violation) {
    guard self.violation == nil else { return }
    self.violation = violation
    connection?.setViolation(violation.rawValue)
    nghttp2_session_terminate_session(session, violation.code)
    markDirty()
  }

  /// Writes the queued output and executes pending commands.
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
      case .blocked:
        clocks.blocked(at: runner.now, written: output.written)
        // A client in violation need not be waited for.
        if violation != nil { end(isReset: true) }
        return
      case .failed:
        end(isReset: false)
        return
      case .drained:
        clocks.drained()
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
    hasReadAhead = false
  }

  /// Closes our side and waits a little for the client's.
  private func linger() {
    reportClosed()
    channel?.closeNotify()
    Socket.shutdownWriting(descriptor)
    phase = .lingering
    hasReadAhead = false
    clocks.lingers(from: runner.now)
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

  /// Tells the handler, once, that the connection and its streams have ended.
  private func reportClosed() {
    guard let connection else { return }
    self.connection = nil
    connection.session = nil
    runner.core.closed(connection)
    for stream in table where stream.isLive {
      stream.isLive = false
      release(stream)
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
    hasReadAhead = false
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
