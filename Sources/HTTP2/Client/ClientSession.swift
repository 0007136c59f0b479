#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A connection on its thread: socket, TLS, frames, streams. Used on that thread only.
///
/// Run-time checks of exclusive access would cost a tenth of a push: they are off for what each push
/// touches.
final class ClientSession {
  let core: ClientCore
  let configuration: HTTP2ConnectionConfiguration
  let pipe: WakePipe
  /// Owned; closed in `tearDown`.
  var descriptor: Int32 = -1
  var channel: TLSChannel?
  let output = FrameOutput()
  /// Owned; freed in `deinit`.
  @exclusivity(unchecked) var reader = FrameReader()
  @exclusivity(unchecked) var encoder = FieldEncoder()
  let decoder: ReplyDecoder
  /// Whether OpenSSL has buffered input, so that there is more to read although the socket is
  /// empty.
  private var hasMoreInput = false

  /// A header block of which more is to come.
  @exclusivity(unchecked) var block: PartialBlock?
  @exclusivity(unchecked) var nextStream: Int32
  /// Number of bytes of bodies that the peer takes, on the connection and on a new stream.
  @exclusivity(unchecked) var window = ClientSession.initialWindow
  @exclusivity(unchecked) var streamWindow = ClientSession.initialWindow
  /// Number of bytes of DATA for which the peer has got no new window yet.
  @exclusivity(unchecked) var received = 0
  /// The slots whose bodies go on, oldest first.
  @exclusivity(unchecked) var waitingBodies = SlotQueue()

  /// The clock, read once per turn of the loop.
  @exclusivity(unchecked) var now: UInt64
  var connectDeadline: UInt64 = 0
  var lastReceived: UInt64 = 0
  var pingSentAt: UInt64?

  @exclusivity(unchecked) var streams: StreamTable
  /// Jobs with requests that wait for a stream, oldest first, small ones ahead of large.
  @exclusivity(unchecked) var queue: [BatchJob.Pointer] = []
  /// Every job whose memory is in use.
  var jobs: [BatchJob.Pointer] = []
  /// Jobs whose requests all have an outcome; their callers are resumed at the end of the turn.
  @exclusivity(unchecked) var settled: [BatchJob.Pointer] = []
  /// The time when a stream was last opened or closed, the limit of streams rose, or the queue was
  /// empty.
  @exclusivity(unchecked) var lastProgress: UInt64 = 0
  /// The time when a stream last ended with a reply.
  @exclusivity(unchecked) var lastAnswer: UInt64 = 0
  /// Maximum number of open streams: the lower of the peer's limit and ours.
  @exclusivity(unchecked) var streamLimit = 0
  @exclusivity(unchecked) var status = HTTP2ConnectionStatus()
  private var published = HTTP2ConnectionStatus()

  fileprivate init(_ core: ClientCore, _ pipe: WakePipe, _ decoder: ReplyDecoder) {
    self.decoder = decoder
    nextStream = core.configuration.firstStreamID
    self.core = core
    self.pipe = pipe
    configuration = core.configuration
    now = core.configuration.monotonicClock()
    streams = StreamTable(capacity: max(1, min(100_000, core.configuration.maxConcurrentStreams)))
  }

  deinit {
    reader.deallocate()
    streams.deallocate()
  }

  /// The body of the connection's thread.
  static func run(_ core: ClientCore, _ pipe: WakePipe) {
    blockBrokenPipeSignal()
    guard let decoder = ReplyDecoder() else {
      let reason = "cannot connect to \(core.configuration.host): out of memory"
      return core.finish(HTTP2ConnectionError(.connect, reason), goAway: nil)
    }
    let session = ClientSession(core, pipe, decoder)
    do throws(HTTP2ConnectionError) {
      try session.connect()
      session.begin()
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
        sendBodies()
        openStreams()
      }
      switch output.flush(to: channel) {
      case .more: continue
      case .drained:
        if !canSendBody, !canOpenStream { return }
      case .blocked: return
      case .failed:
        // The peer's last message, an alert or GOAWAY, is more specific than the failed write.
        try receive()
        throw lost(channel.failure)
      }
    }
  }

  /// Reads the available input and handles its frames.
  private func receive() throws(HTTP2ConnectionError) {
    guard let channel else { return }
    hasMoreInput = false
    // Bounded, so that a fast peer cannot delay the mailbox and the timeouts.
    for _ in 0..<64 {
      let room = reader.room()
      guard let start = room.baseAddress else { return }
      let count = channel.read(into: start, count: room.count)
      if count == 0 { return }
      guard count > 0 else { throw lost(channel.failure) }
      lastReceived = now
      reader.didRead(count)
      try handleFrames()
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
    if status.state == .draining && streams.count == 0 && output.isEmpty {
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
    for position in streams.openSlots { end(position, streamFailure(after: error)) }
    for job in queue { job.pointee.failUnsent(ClientCore.unsentFailure(after: error)) }
    if [.closed, .idle, .drained].contains(error.kind) { endConnection(.noError) }
    if let channel { _ = output.flush(to: channel) }
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

/// A client's session without a socket, for tests and the fuzzer.
final class DetachedClientSession {
  let session: ClientSession
  private let job: BatchJob.Pointer

  /// - Parameter batch: The requests that it sends as soon as it may.
  init?(_ configuration: HTTP2ConnectionConfiguration, sending batch: HTTP2RequestBatch) {
    let core = ClientCore(configuration)
    guard let pipe = core.pipe, let decoder = ReplyDecoder() else { return nil }
    session = ClientSession(core, pipe, decoder)
    session.begin()
    job = BatchJob.make(PendingBatch(batch), deadline: .max)
    session.jobs = [job]
    session.queue = [job]
  }

  deinit { BatchJob.destroy(job) }

  /// The replies and failures so far.
  var replies: [HTTP2Reply] {
    Array(UnsafeBufferPointer(start: job.pointee.replies, count: job.pointee.count))
  }
  /// Number of requests that have neither.
  var remaining: Int { job.pointee.remaining }

  /// Takes bytes of the peer.
  /// - Returns: The client's bytes, and the reason why the connection has ended.
  func exchange(_ bytes: ArraySlice<UInt8>) -> (sent: [UInt8], error: HTTP2ConnectionError?) {
    var (rest, sent, failure) = (bytes, [UInt8](), HTTP2ConnectionError?.none)
    repeat {
      let room = session.reader.room()
      let part = rest.prefix(room.count)
      room.copyBytes(from: part)
      session.reader.didRead(part.count)
      rest = rest.dropFirst(part.count)
      do throws(HTTP2ConnectionError) { try session.handleFrames() } catch { failure = error }
    } while !rest.isEmpty && failure == nil
    repeat {
      if failure == nil {
        session.sendBodies()
        session.openStreams()
      }
      sent += session.output.take()
    } while failure == nil && (session.canSendBody || session.canOpenStream)
    return (sent, failure)
  }
}
