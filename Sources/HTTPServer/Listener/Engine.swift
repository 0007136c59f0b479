import CMicrohttpd
import Dispatch
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The running server behind a listener: owns the libmicrohttpd daemons, the listening socket, the
/// watchdog's timer and the queue of requests.
///
/// libmicrohttpd's threads read and write sockets and call `Engine+Callbacks.swift`; handlers run
/// as tasks; the watchdog cuts connections that let the server wait.
final class Engine: Sendable {
  enum Phase: Int, AtomicRepresentable {
    case running
    /// No new connections; what has begun is finished, replies say `Connection: close`.
    case draining
    /// Nothing may be suspended any more.
    case closing
  }

  let configuration: HTTPConfiguration
  let handler: any HTTPHandler
  let host: String
  let port: UInt16
  let connections = ConnectionTable()
  /// Whether it speaks TLS.
  var isSecure: Bool { configuration.tls != nil }

  /// Monotonic nanoseconds at the watchdog's last round: precise enough for time limits, and free.
  let now = Atomic<UInt64>(DispatchTime.now().uptimeNanoseconds)
  let phase = Atomic<Phase>(.running)
  let lastConnection = Atomic<UInt64>(0)
  /// Requests between their first line and the end of their reply.
  let activeRequests = Atomic<Int>(0)

  let listeningSocket: Int32
  let queue = Mutex(RequestQueue())
  private let resources = Mutex(Resources())

  /// What stops: the daemons, the timer, and who waits.
  private struct Resources: @unchecked Sendable {  // guarded by the Mutex around it
    /// Takes the new connections.
    var daemon: Daemon?
    /// Those with an earlier certificate that still have connections.
    var retired: [Daemon] = []
    var watchdog: (any DispatchSourceTimer)?
    var drained: CheckedContinuation<Void, Never>?
    var drainDeadline = UInt64.max
    var stopping: Task<Void, Never>?
  }

  /// A request taken out of its exchange: the connection's thread and the handler's share nothing.
  struct PendingRequest {
    let exchange: Exchange
    let request: HTTPRequest
  }

  /// Requests that have a handler, and those that wait for one.
  struct RequestQueue {
    var running = 0
    var waiting: [PendingRequest] = []
    /// Where in `waiting` the next one stands.
    var next = 0
  }

  init(_ configuration: HTTPConfiguration, handler: any HTTPHandler) throws(HTTPListenerError) {
    let socket = try ListeningSocket(host: configuration.host, port: configuration.port)
    self.configuration = configuration
    self.handler = handler
    (host, port, listeningSocket) = (socket.host, socket.port, socket.number)

    guard let daemon = Daemon(engine: self, listening: listeningSocket, identity: configuration.tls)
    else {
      let error = refusal(of: configuration.tls)
      close(listeningSocket)
      throw error
    }
    resources.withLock { $0.daemon = daemon }
    startWatchdog()
  }

  private func refusal(of identity: TLSIdentity?) -> HTTPListenerError {
    let reason = errno
    // The library says nothing about a certificate but no; of what is short the system speaks.
    if identity != nil, ![EMFILE, ENFILE, ENOMEM, EAGAIN].contains(reason) {
      return .certificateRefused(host: host, port: port)
    }
    return .system(host: host, port: port, reason: String(cString: strerror(reason)))
  }

  // MARK: certificate

  /// Serves new connections with another certificate; those there are finish with theirs.
  ///
  /// - Throws: When the certificate will not do; the present one stays.
  func replaceIdentity(_ identity: TLSIdentity) throws(HTTPListenerError) {
    precondition(configuration.tls != nil, "a listener does not turn from HTTP to HTTPS")
    guard let next = Daemon(engine: self, listening: listeningSocket, identity: identity) else {
      throw refusal(of: identity)
    }
    let (old, earlier) = resources.withLock { resources -> (Daemon?, [Daemon]) in
      guard resources.stopping == nil, let old = resources.daemon else { return (nil, []) }
      defer { resources.retired.append(old) }
      resources.daemon = next
      return (old, resources.retired)
    }
    guard let old else {
      // The server is stopping; nobody needs the new daemon, and it has served nobody.
      next.retire(at: now.load(ordering: .relaxed))
      next.stop()
      return
    }
    old.retire(at: DispatchTime.now().uptimeNanoseconds)
    // A stream may last for ever, a daemon may not: anyone who listens since the certificate before
    // the last has to connect again.
    for connection in connections.all where earlier.contains(where: { $0 === connection.daemon }) {
      connection.stream?.fail(.stopping)
    }
  }

  /// Frees the retired daemons whose last connection is closed.
  private func releaseRetired(at now: UInt64) {
    let done = resources.withLock { resources -> [Daemon] in
      guard resources.stopping == nil, !resources.retired.isEmpty else { return [] }
      // A connection that was being accepted at the moment of retirement is counted within this
      // time.
      let latest = now &- 1_000_000_000
      let done = resources.retired.filter {
        $0.openConnections.load(ordering: .sequentiallyConsistent) == 0
          && $0.retiredAt.load(ordering: .sequentiallyConsistent) < latest
      }
      resources.retired.removeAll { daemon in done.contains { $0 === daemon } }
      return done
    }
    guard !done.isEmpty else { return }
    DispatchQueue(label: "HTTPServer.retire").async { [self] in
      withExtendedLifetime(self) { for daemon in done { daemon.stop() } }
    }
  }

  /// When a connection that falls idle now has been so for too long. Exact: it also says when that
  /// time has begun, and which bytes came before.
  var idleDeadline: UInt64 {
    deadline(configuration.idleTimeout, from: DispatchTime.now().uptimeNanoseconds)
  }

  /// When a limit that starts to run now is over.
  func deadline(_ limit: Duration) -> UInt64 {
    deadline(limit, from: now.load(ordering: .relaxed))
  }

  private func deadline(_ limit: Duration, from start: UInt64) -> UInt64 {
    let (seconds, attoseconds) = limit.components
    let nanoseconds = Double(seconds) * 1e9 + Double(attoseconds) / 1e9
    let end = Double(start) + max(0, nanoseconds)
    return UInt64(exactly: end.rounded()) ?? .max
  }

  // MARK: handlers

  /// Has a request answered, at once or in its turn.
  ///
  /// A handler starts on the connection's own thread and leaves it at its first suspension: one
  /// that never suspends costs no switch of threads, and its answer is there on return.
  func submit(_ exchange: Exchange) {
    let work = PendingRequest(exchange: exchange, request: exchange.takeRequest())
    let starts = queue.withLock { queue in
      guard queue.running < max(1, configuration.maxConcurrentRequests) else {
        queue.waiting.append(work)
        return false
      }
      queue.running += 1
      return true
    }
    guard starts else { return }
    #if compiler(>=6.2)
      if #available(macOS 26, iOS 26, *) {
        Task.immediate { await serve(work) }
        return
      }
    #endif
    Task { await serve(work) }
  }

  /// Answers one request, then starts the one that has waited longest.
  private func serve(_ work: PendingRequest) async {
    work.exchange.answer(await handler.respond(to: work.request))
    let next = queue.withLock { queue -> PendingRequest? in
      guard queue.next < queue.waiting.count else {
        queue.waiting.removeAll(keepingCapacity: true)
        queue.next = 0
        queue.running -= 1
        return nil
      }
      defer { queue.next += 1 }
      return queue.waiting[queue.next]
    }
    if let next { Task { await serve(next) } }
  }

  // MARK: watchdog

  /// A timer that looks at every connection, often enough for the shortest limit.
  private func startWatchdog() {
    let limits = [
      configuration.idleTimeout, configuration.requestReadTimeout,
      configuration.responseWriteTimeout, configuration.streamStallTimeout,
    ]
    let shortest = (limits.min() ?? .seconds(1)) / 4
    let period = min(max(shortest, .milliseconds(5)), .milliseconds(250))
    let timer = DispatchSource.makeTimerSource(
      queue: DispatchQueue(label: "HTTPServer.watchdog", qos: .utility))
    let nanoseconds = Int(period.components.attoseconds / 1_000_000_000)
    timer.schedule(deadline: .now(), repeating: .nanoseconds(nanoseconds))
    timer.setEventHandler { [weak self] in self?.watch() }
    resources.withLock { $0.watchdog = timer }
    timer.activate()
  }

  private func watch() {
    let now = DispatchTime.now().uptimeNanoseconds
    self.now.store(now, ordering: .relaxed)
    var failed: [(BodyChannel, HTTPWriteError)] = []
    var stalled: Set<ObjectIdentifier> = []
    let idleTimeout = deadline(configuration.idleTimeout) - now
    let requestDeadline = deadline(configuration.requestReadTimeout)
    connections.visit { connection in
      if let stream = connection.stream {
        if stream.isStalled(at: now) {
          failed.append((stream, .stalled))
          stalled.insert(ObjectIdentifier(connection))
        } else if stream.isIdle, connection.isPeerGone {
          failed.append((stream, .clientGone))
        }
      } else if connection.deadline.load(ordering: .relaxed) <= now {
        connection.cut()
      } else {
        connection.watchFirstByte(
          at: now, idleTimeout: idleTimeout, requestUntil: requestDeadline)
      }
    }
    // Cancelling a task runs code of the handler's, which must not meet our lock.
    for (stream, error) in failed { stream.fail(error) }
    // Only now: its writer hears of the stall, not of the cut.
    if !stalled.isEmpty {
      connections.visit { if stalled.contains(ObjectIdentifier($0)) { $0.cut() } }
    }
    makeRoom()
    releaseRetired(at: now)
    endDrainIfDone(at: now)
  }

  /// Lets `stop` go on once no request is active or its limit is over.
  func endDrainIfDone(at now: UInt64) {
    let drained = resources.withLock { resources in
      guard
        activeRequests.load(ordering: .sequentiallyConsistent) == 0
          || resources.drainDeadline <= now
      else { return nil as CheckedContinuation<Void, Never>? }
      defer { resources.drained = nil }
      return resources.drained
    }
    drained?.resume()
  }

  // MARK: stop

  func stop(within limit: Duration) async {
    let stopping = resources.withLock { resources in
      if let stopping = resources.stopping { return stopping }
      let stopping = Task { await self.performStop(within: limit) }
      resources.stopping = stopping
      return stopping
    }
    await stopping.value
  }

  private func performStop(within limit: Duration) async {
    let (daemon, retired) = resources.withLock { resources in
      defer {
        resources.daemon = nil
        resources.retired = []
      }
      return (resources.daemon, resources.retired)
    }
    guard let daemon else { return }
    phase.store(.draining, ordering: .sequentiallyConsistent)
    daemon.retire(at: DispatchTime.now().uptimeNanoseconds)
    // The socket must outlive the daemon's threads, but need not take connections any longer.
    _ = shutdown(listeningSocket, Int32(SHUT_RDWR))
    for connection in connections.all { connection.stream?.fail(.stopping) }

    now.store(DispatchTime.now().uptimeNanoseconds, ordering: .relaxed)
    let end = deadline(limit)
    await withCheckedContinuation { continuation in
      resources.withLock { resources in
        resources.drained = continuation
        resources.drainDeadline = end
      }
      endDrainIfDone(at: now.load(ordering: .relaxed))
    }

    // From here on nothing is suspended; what is, wakes up. Only then may the daemon stop.
    phase.store(.closing, ordering: .sequentiallyConsistent)
    for connection in connections.all {
      connection.stream?.fail(.stopping)
      connection.exchange?.answer(
        handler.reject(.serviceUnavailable, request: HTTPRequest(method: .get, target: "/")))
    }
    await withCheckedContinuation { continuation in
      DispatchQueue(label: "HTTPServer.stop").async {
        for daemon in retired + [daemon] { daemon.stop() }
        continuation.resume()
      }
    }
    close(listeningSocket)
    resources.withLock { resources in
      resources.watchdog?.cancel()
      resources.watchdog = nil
    }
  }
}
