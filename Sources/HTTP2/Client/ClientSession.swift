import CNghttp2

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A connection on its thread: socket, TLS, nghttp2 session, streams. Used on that thread only.
final class ClientSession {
  let core: ClientCore
  let configuration: HTTP2ConnectionConfiguration
  let pipe: WakePipe
  /// Owned; closed in `tearDown`.
  var descriptor: Int32 = -1
  var channel: TLSChannel?
  /// Owned; deleted in `tearDown`, before the jobs its streams point into.
  var session: OpaquePointer?
  /// Owned; the memory of the session.
  let memory = SessionMemory()
  let output = FrameOutput()
  private let input = UnsafeMutableRawPointer.allocate(
    byteCount: ClientSession.inputSize, alignment: 64)
  private static let inputSize = 64 * 1024
  /// Whether OpenSSL has buffered input, so that there is more to read although the socket is
  /// empty.
  private var hasMoreInput = false

  /// The slot of the reply whose fields arrived last.
  var headerPosition = 0

  /// The clock, read once per turn of the loop.
  var now: UInt64
  var connectDeadline: UInt64 = 0
  var lastReceived: UInt64 = 0
  var pingSentAt: UInt64?

  var streams: StreamTable
  /// Jobs with requests that wait for a stream, oldest first, small ones ahead of large.
  var queue: [BatchJob.Pointer] = []
  /// Every job whose memory is in use.
  var jobs: [BatchJob.Pointer] = []
  /// Jobs finished by a callback; settled when nghttp2 has returned.
  var settled: [BatchJob.Pointer] = []
  /// The time when a stream was last opened or closed, or the queue was empty.
  var lastProgress: UInt64 = 0
  /// The time when a stream last ended with a reply.
  var lastAnswer: UInt64 = 0
  /// Maximum number of open streams: the lower of the peer's limit and ours.
  var streamLimit = 0
  var status = HTTP2ConnectionStatus()
  private var published = HTTP2ConnectionStatus()

  private init(_ core: ClientCore, _ pipe: WakePipe) {
    self.core = core
    self.pipe = pipe
    configuration = core.configuration
    now = core.configuration.monotonicClock()
    streams = StreamTable(capacity: max(1, min(100_000, core.configuration.maxConcurrentStreams)))
  }

  deinit {
    input.deallocate()
    streams.deallocate()
  }

  /// The body of the connection's thread.
  static func run(_ core: ClientCore, _ pipe: WakePipe) {
    blockBrokenPipeSignal()
    let session = ClientSession(core, pipe)
    do throws(HTTP2ConnectionError) {
      try session.connect()
      try session.makeSession()
      while true { try session.turn() }
    } catch {
      session.tearDown(error)
    }
  }

  /// One turn of the loop; throws when the connection has ended.
  private func turn() throws(HTTP2ConnectionError) {
    try takeMail()
    try watchClocks()
    try pump()
    publish()
    settle()
    try checkEnd()

    var descriptors = [
      pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: pipe.readEnd, events: Int16(POLLIN), revents: 0),
    ]
    if output.isBlocked { descriptors[0].events |= Int16(POLLOUT) }
    let timeout = hasMoreInput ? 0 : pollTimeout(until: nextDeadline(), from: now)
    let ready = poll(&descriptors, 2, timeout)
    now = configuration.monotonicClock()
    guard ready > 0 || hasMoreInput else { return }
    if descriptors[1].revents != 0 { pipe.drain() }
    if hasMoreInput || descriptors[0].revents & ~Int16(POLLOUT) != 0 { try receive() }
  }

  /// Opens streams and writes frames until there is nothing to do or the socket is full.
  private func pump() throws(HTTP2ConnectionError) {
    guard let channel else { return }
    while true {
      if !output.isBlocked {
        try openStreams()
        guard output.gather(from: session) else {
          throw HTTP2ConnectionError(.protocolViolation, "\(endpoint): nghttp2 cannot send")
        }
      }
      switch output.flush(to: channel) {
      case .more: continue
      case .drained:
        // Gathering may have closed streams and so made room for others.
        if output.isEmpty, !canOpenStream { return }
      case .blocked: return
      case .failed:
        // The peer's last message, an alert or GOAWAY, is more specific than the failed write.
        try receive()
        throw lost(channel.failure)
      }
    }
  }

  /// Reads the available input and passes it to nghttp2.
  private func receive() throws(HTTP2ConnectionError) {
    guard let channel else { return }
    hasMoreInput = false
    // Bounded, so that a fast peer cannot delay the mailbox and the timeouts.
    for _ in 0..<64 {
      let count = channel.read(into: input, count: Self.inputSize)
      if count == 0 { return }
      guard count > 0 else { throw lost(channel.failure) }
      lastReceived = now
      let used = nghttp2_session_mem_recv(
        session, input.assumingMemoryBound(to: UInt8.self), count)
      guard used >= 0 else {
        let reason = String(cString: nghttp2_strerror(Int32(clamping: used)))
        throw HTTP2ConnectionError(.protocolViolation, "\(endpoint) broke HTTP/2: \(reason)")
      }
    }
    hasMoreInput = true
  }

  private func takeMail() throws(HTTP2ConnectionError) {
    let mail = core.collect()
    if mail.isClosing { throw HTTP2ConnectionError(.closed, "\(endpoint): closed by its owner") }
    for pending in mail.batches { accept(pending) }
    for pending in mail.cancellations { cancel(pending) }
  }

  /// Ends the connection when nothing more can arrive on it.
  private func checkEnd() throws(HTTP2ConnectionError) {
    if let code = output.goAwayCode {
      throw HTTP2ConnectionError(
        .protocolViolation, "\(endpoint) broke HTTP/2 (error code \(code))")
    }
    let isSilent =
      nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0
    if isSilent || (status.state == .draining && streams.count == 0 && output.isEmpty) {
      throw HTTP2ConnectionError(.drained, "\(endpoint) takes no more requests on this connection")
    }
  }

  private func publish() {
    status.inFlight = streams.count
    status.queued = queue.reduce(0) { $0 + $1.pointee.count - $1.pointee.next }
    guard status != published else { return }
    published = status
    core.publish(status)
  }

  /// Ends the connection: every stream and every request fails, then everything is freed.
  private func tearDown(_ error: HTTP2ConnectionError) {
    status.error = error
    status.state = .closed
    let open = streams  // a copy: `fail` changes the table
    open.forEachOpen { fail($0, after: error) }
    for job in queue { job.pointee.failUnsent(ClientCore.unsentFailure(after: error)) }
    if let session {
      if error.kind == .closed || error.kind == .idle || error.kind == .drained {
        nghttp2_session_terminate_session(session, NGHTTP2_NO_ERROR.rawValue)
        if let channel, !output.isBlocked, output.gather(from: session) {
          _ = output.flush(to: channel)
        }
      }
      nghttp2_session_del(session)
    }
    memory.destroy()
    channel?.closeNotify()
    channel = nil
    if descriptor >= 0 { close(descriptor) }
    // Done first, so that a caller with a reply does not find the connection still open.
    core.finish(error, goAway: status.goAway)
    for job in jobs {
      job.pointee.resume(status: status)
      BatchJob.destroy(job)
    }
  }

  /// Host and port, for error messages.
  var endpoint: String { "\(configuration.host):\(configuration.port)" }

  /// The connection error for a failed read or write.
  private func lost(_ failure: TLSChannel.Failure?) -> HTTP2ConnectionError {
    let reason = failure?.reason ?? "the connection broke"
    if let alert = failure?.alert, TLSAlert.isAboutCertificate(alert) {
      return HTTP2ConnectionError(
        .tlsRejectedCertificate, "\(endpoint) refused the client certificate: \(reason)")
    }
    if status.state == .draining && streams.count == 0 {
      return HTTP2ConnectionError(.drained, "\(endpoint) takes no more requests")
    }
    if status.state == .connecting {
      return HTTP2ConnectionError(.connect, "\(endpoint) ended the connection: \(reason)")
    }
    return HTTP2ConnectionError(.lost, "lost the connection to \(endpoint): \(reason)")
  }
}
