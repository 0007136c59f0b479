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

/// The running server behind a listener: owns the libmicrohttpd daemon, the listening socket, the
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

  /// Monotonic nanoseconds at the watchdog's last round: precise enough for time limits, and free.
  let now = Atomic<UInt64>(DispatchTime.now().uptimeNanoseconds)
  let phase = Atomic<Phase>(.running)
  /// Requests between their first line and the end of their reply.
  let activeRequests = Atomic<Int>(0)

  private let listeningSocket: Int32
  let queue = Mutex(RequestQueue())
  private let resources = Mutex(Resources())

  /// What stops: the daemon (owned; freed by `MHD_stop_daemon`), the timer, and who waits.
  private struct Resources: @unchecked Sendable {  // guarded by the Mutex around it
    var daemon: OpaquePointer?
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

    let connectionLimit = UInt32(clamping: max(1, configuration.maxConnections))
    // The pool holds the request's head and a reply's; twice the limit lets us, and not the
    // library, refuse heads that are over it.
    let pool = max(32 * 1024, 2 * configuration.maxHeaderBytes + 8 * 1024)
    guard
      let daemon = mhd_start(
        listeningSocket, min(UInt32(clamping: max(2, configuration.threads)), connectionLimit),
        connectionLimit, UInt32(clamping: configuration.maxConnectionsPerAddress), pool,
        Self.access, Self.targetSeen, Self.completed, Self.connectionChanged,
        Unmanaged.passUnretained(self).toOpaque())
    else {
      let reason = String(cString: strerror(errno))
      close(listeningSocket)
      throw .system(host: host, port: port, reason: reason)
    }
    resources.withLock { $0.daemon = daemon }
    startWatchdog()
  }

  /// When a limit that starts to run now is over.
  func deadline(_ limit: Duration) -> UInt64 {
    let (seconds, attoseconds) = limit.components
    let nanoseconds = Double(seconds) * 1e9 + Double(attoseconds) / 1e9
    let end = Double(now.load(ordering: .relaxed)) + max(0, nanoseconds)
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
    connections.visit { connection in
      if let stream = connection.stream {
        if stream.isStalled(at: now) {
          failed.append((stream, .stalled))
          connection.cut()
        } else if stream.isIdle, connection.isPeerGone {
          failed.append((stream, .clientGone))
        }
      } else if connection.deadline.load(ordering: .relaxed) <= now {
        connection.cut()
      }
    }
    // Cancelling a task runs code of the handler's, which must not meet our lock.
    for (stream, error) in failed { stream.fail(error) }
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
    let daemon = resources.withLock { resources in
      defer { resources.daemon = nil }
      return resources.daemon
    }
    guard let daemon else { return }
    phase.store(.draining, ordering: .sequentiallyConsistent)
    MHD_quiesce_daemon(daemon)
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
      let daemon = UInt(bitPattern: daemon)
      DispatchQueue(label: "HTTPServer.stop").async {
        MHD_stop_daemon(OpaquePointer(bitPattern: daemon))
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
