import CMicrohttpd
import Foundation
import HTTP2
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The running server behind a listener: owns the acceptor, the libmicrohttpd daemons, the HTTP/2
/// server, the listening socket, the watchdog and the request queue.
///
/// The acceptor passes each connection to one of the two servers. libmicrohttpd's threads read and
/// write sockets and call `Engine+Callbacks.swift`, those of the HTTP/2 server `HTTP2Front`;
/// handlers run as tasks; the watchdog cuts connections that exceed their time limits.
final class Engine: Sendable {
  enum Phase: Int, AtomicRepresentable {
    case running
    /// No new connections are accepted; requests in progress are completed, and replies say
    /// `Connection: close`.
    case draining
    /// No connection may be suspended any more.
    case closing
  }

  let configuration: HTTPConfiguration
  let handler: any HTTPHandler
  let host: String
  let port: UInt16
  let connections: HTTPConnections
  /// Whether it serves TLS.
  var isSecure: Bool { configuration.tls != nil }
  /// Whether a client's hello determines the protocol.
  var choosesProtocol: Bool { http2 != nil }

  /// The clock at the watchdog's last round: precise enough for time limits, and free.
  let now: Atomic<UInt64>
  let phase = Atomic<Phase>(.running)
  let date = HTTPDate()
  let lastConnection = Atomic<UInt64>(0)
  /// The number of requests between their first line and the end of their reply.
  let activeRequests = Atomic<Int>(0)

  let listeningSocket: Int32
  /// The HTTP/2 server; `nil` without HTTP/2.
  let http2: HTTP2Front?
  /// Connections in transit to libmicrohttpd, by socket.
  let inTransit = Mutex<[Int32: Connection]>([:])
  let queue = Mutex(RequestQueue())
  private let resources = Mutex(Resources())
  private let watchdog: Watchdog
  /// Whether the watchdog sleeps because there is no connection. Changed under the lock of
  /// `resources`.
  private let rests = Atomic<Bool>(false)

  /// The resources that a stop ends: the daemons, and waiting callers.
  private struct Resources: @unchecked Sendable {  // guarded by the Mutex around it
    /// The daemon for new connections.
    var daemon: Daemon?
    /// The daemons with earlier certificates that still have connections.
    var retired: [Daemon] = []
    var acceptor: Acceptor?
    /// Whether the watchdog must end.
    var isOver = false
    var drained: CheckedContinuation<Void, Never>?
    var drainDeadline = UInt64.max
    /// Whether to wait for the HTTP/2 connections too, not only for requests.
    var awaitsConnections = false
    var stopping: Task<Void, Never>?
  }

  /// The maximum number of handlers that start on the threads of connections.
  private static let maxImmediate = 64

  init(_ configuration: HTTPConfiguration, handler: any HTTPHandler) throws(HTTPListenerError) {
    let socket = try ListeningSocket(host: configuration.host, port: configuration.port)
    self.configuration = configuration
    self.handler = handler
    (host, port, listeningSocket) = (socket.host, socket.port, socket.number)
    connections = configuration.connections ?? HTTPConnections()
    now = Atomic(configuration.clock.now())
    guard let watchdog = Watchdog() else {
      let reason = String(cString: strerror(errno))
      Socket.close(socket.number)
      throw .system(host: socket.host, port: socket.port, reason: reason)
    }
    self.watchdog = watchdog
    do throws(HTTPListenerError) {
      http2 = try configuration.offersHTTP2 ? HTTP2Front(configuration, socket) : nil
    } catch {
      Socket.close(socket.number)
      throw error
    }
    // In this order: an acceptor has no thread before it starts, and a daemon has to be stopped.
    guard let acceptor = Acceptor(engine: self),
      let daemon = Daemon(engine: self, identity: configuration.tls)
    else {
      let error = refusal(of: configuration.tls)
      Socket.close(listeningSocket)
      throw error
    }
    resources.withLock { resources in
      resources.daemon = daemon
      resources.acceptor = acceptor
    }
    startWatchdog()
    acceptor.start()
  }

  /// Returns the daemon for new connections, counting one more; `nil` once the server stops.
  func takeDaemon() -> Daemon? {
    resources.withLock { resources in
      resources.daemon?.openConnections.add(1, ordering: .sequentiallyConsistent)
      return resources.daemon
    }
  }

  private func refusal(of identity: TLSIdentity?) -> HTTPListenerError {
    let reason = errno
    // The library reports a bad certificate only as a failure; shortages are visible in `errno`.
    if identity != nil, ![EMFILE, ENFILE, ENOMEM, EAGAIN].contains(reason) {
      return .certificateRefused(host: host, port: port)
    }
    return .system(host: host, port: port, reason: String(cString: strerror(reason)))
  }

  // MARK: certificate

  /// Serves new connections with another certificate; existing ones keep theirs.
  ///
  /// - Throws: An error if the certificate is unusable; the present one stays.
  func replaceIdentity(_ identity: TLSIdentity) throws(HTTPListenerError) {
    precondition(configuration.tls != nil, "a listener does not turn from HTTP to HTTPS")
    guard let next = Daemon(engine: self, identity: identity) else { throw refusal(of: identity) }
    do throws(HTTPListenerError) {
      try http2?.replaceIdentity(identity)
    } catch {
      next.stop()
      throw error
    }
    let (old, earlier) = resources.withLock { resources -> (Daemon?, [Daemon]) in
      guard resources.stopping == nil, let old = resources.daemon else { return (nil, []) }
      defer { resources.retired.append(old) }
      old.isRetired.store(true, ordering: .relaxed)
      resources.daemon = next
      return (old, resources.retired)
    }
    wakeWatchdog()
    guard old != nil else {
      // The server is stopping and does not need the new daemon, which has served nothing.
      next.stop()
      return
    }
    // A stream may be endless, but a daemon must end: the streams of the certificate before the
    // previous one are cut, and their clients reconnect.
    for connection in connections.all(of: self)
    where earlier.contains(where: { $0 === connection.worker?.daemon }) {
      connection.stream?.fail(.stopping)
    }
  }

  /// Frees the retired daemons whose last connection has closed.
  private func releaseRetired() {
    let done = resources.withLock { resources -> [Daemon] in
      guard resources.stopping == nil, !resources.retired.isEmpty else { return [] }
      let done = resources.retired.filter {
        $0.openConnections.load(ordering: .sequentiallyConsistent) == 0
      }
      resources.retired.removeAll { daemon in done.contains { $0 === daemon } }
      return done
    }
    guard !done.isEmpty else { return }
    Thread.detachNewThread { [self] in
      withExtendedLifetime(self) { for daemon in done { daemon.stop() } }
    }
  }

  /// The time at which a connection that becomes idle now exceeds the limit.
  var idleDeadline: UInt64 { deadline(configuration.idleTimeout) }

  /// The time at which a limit that starts now expires.
  func deadline(_ limit: Duration) -> UInt64 {
    HTTPClock.deadline(limit, from: now.load(ordering: .relaxed))
  }

  // MARK: handlers

  /// Runs the handler for a request, at once or in its turn.
  ///
  /// While there are few handlers, one starts on the connection's own thread and leaves it at its
  /// first suspension: a handler that never suspends costs no thread switch, and its reply is
  /// available on return. If there are many, that thread only reads, so that no connection waits
  /// for others' handlers.
  func submit(_ request: HTTPRequest, of owner: any RequestOwner) {
    let work = PendingRequest(owner: owner, request: request)
    let running = queue.withLock { queue in
      queue.begin(work, limit: configuration.maxConcurrentRequests) ? queue.running : nil
    }
    guard let running else { return }
    #if compiler(>=6.2)
      if running <= Self.maxImmediate, #available(macOS 26, iOS 26, *) {
        owner.runs(in: Task.immediate { await serve(work) })
        return
      }
    #endif
    owner.runs(in: Task { await serve(work) })
  }

  /// Removes a queued request whose reply is no longer wanted.
  ///
  /// - Returns: Whether it was queued.
  func withdraw(_ owner: any RequestOwner) -> Bool {
    // Its body is freed outside of the lock.
    queue.withLock { $0.count > 0 ? $0.remove(owner) : nil } != nil
  }

  /// Handles one request, then starts the next.
  private func serve(_ work: PendingRequest) async {
    var handler = handler
    while let next = handler.next(for: work.request) { handler = next }
    work.owner.answer(await handler.respond(to: work.request))
    if let next = queue.withLock({ $0.next() }) {
      next.owner.runs(in: Task { await serve(next) })
    }
  }

  // MARK: watchdog

  /// Checks every connection, often enough for the shortest limit.
  private func startWatchdog() {
    let limits = [
      configuration.idleTimeout, configuration.requestReadTimeout,
      configuration.responseWriteTimeout, configuration.streamStallTimeout,
    ]
    let shortest = (limits.min() ?? .seconds(1)) / 4
    let period = min(max(shortest, .milliseconds(5)), .milliseconds(250))
    let milliseconds = Int32(period / .milliseconds(1))
    watchdog.start { [weak self] in
      guard let self, !self.resources.withLock({ $0.isOver }) else { return nil }
      self.watch()
      return self.rests.load(ordering: .sequentiallyConsistent) ? -1 : milliseconds
    }
  }

  /// Lets the watchdog sleep while there is nothing to check, so that an idle server wakes no
  /// processor.
  private func restIfIdle() {
    guard isIdle else { return }
    let rested = resources.withLock { resources in
      guard !resources.isOver, resources.retired.isEmpty else { return false }
      rests.store(true, ordering: .sequentiallyConsistent)
      return true
    }
    // Work may have begun in the meantime without noticing that it sleeps.
    if rested, !isIdle { wakeWatchdog() }
  }

  private var isIdle: Bool {
    guard phase.load(ordering: .sequentiallyConsistent) == .running else { return false }
    var isEmpty = true
    connections.visit(self) { _ in isEmpty = false }
    return isEmpty
  }

  /// Makes the watchdog check again, and updates the time from which limits are counted. Must be
  /// called whenever work begins that the watchdog has to check.
  func wakeWatchdog() {
    guard rests.load(ordering: .sequentiallyConsistent) else { return }
    resources.withLock { _ in
      guard rests.exchange(false, ordering: .sequentiallyConsistent) else { return }
      now.store(configuration.clock.now(), ordering: .relaxed)
      watchdog.wake()
    }
  }

  private func watch() {
    let now = configuration.clock.now()
    self.now.store(now, ordering: .relaxed)
    var failed: [(BodyChannel, HTTPWriteError)] = []
    var stalled: Set<ObjectIdentifier> = []
    var expired: [Connection] = []
    var left: [Exchange] = []
    let requestDeadline = deadline(configuration.requestReadTimeout)
    connections.visit(self) { connection in
      if connection.link != nil {
        expired.append(connection)
      } else if let stream = connection.stream {
        if stream.isStalled(at: now) {
          failed.append((stream, .stalled))
          stalled.insert(ObjectIdentifier(connection))
        } else if stream.isIdle, connection.isPeerGone {
          failed.append((stream, .clientGone))
        }
      } else if connection.deadline.load(ordering: .relaxed) <= now {
        connection.cut()
      } else if let exchange = connection.exchange, exchange.hasLeft(at: now) {
        left.append(exchange)
      } else {
        connection.watchFirstByte(requestUntil: requestDeadline)
      }
    }
    // Cancelling a task runs code of the handler, which must not happen under our lock.
    for (stream, error) in failed { stream.fail(error) }
    for exchange in left {
      if withdraw(exchange) { exchange.answer(unheard) } else { exchange.cancel() }
    }
    // Only after the streams have failed, so that the writer sees the stall, not the cut.
    if !stalled.isEmpty {
      connections.visit(self) { if stalled.contains(ObjectIdentifier($0)) { $0.cut() } }
    }
    for connection in expired { http2?.watch(connection, at: now) }
    releaseRetired()
    endDrainIfDone()
    restIfIdle()
  }

  /// The reply to a request that reaches no handler.
  private var unheard: HTTPResponse {
    handler.reject(.serviceUnavailable, request: HTTPRequest(method: .get, target: "/"))
  }

  /// Lets `stop` continue once no request is active or its limit has expired.
  func endDrainIfDone() {
    let drained = resources.withLock { resources in
      let isDrained =
        activeRequests.load(ordering: .sequentiallyConsistent) == 0
        && (!resources.awaitsConnections || http2?.isEmpty != false)
      guard isDrained || resources.drainDeadline <= HTTPClock.system.now() else {
        return nil as CheckedContinuation<Void, Never>?
      }
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
    let (daemon, retired, acceptor) = resources.withLock { resources in
      defer {
        resources.daemon = nil
        resources.retired = []
        resources.acceptor = nil
      }
      return (resources.daemon, resources.retired, resources.acceptor)
    }
    guard let daemon, let acceptor else { return }
    phase.store(.draining, ordering: .sequentiallyConsistent)
    wakeWatchdog()
    // The acceptor may be waiting on the socket, so it must not be closed yet.
    _ = shutdown(listeningSocket, Int32(SHUT_RDWR))
    await acceptor.stop()
    Socket.close(listeningSocket)
    for connection in connections.all(of: self) {
      connection.stream?.fail(.stopping)
      http2?.drain(connection)
    }
    await drained(within: limit, awaitsConnections: false)

    // From here on nothing is suspended, and suspended connections wake up. Only then may the
    // daemon stop.
    phase.store(.closing, ordering: .sequentiallyConsistent)
    let refusal = unheard
    for connection in connections.all(of: self) {
      connection.stream?.fail(.stopping)
      connection.exchange?.answer(refusal)
      for stream in connection.streams { stream.answer(refusal) }
      connection.link?.close()
    }
    // A moment for the last bytes: data that a client sends to a closed socket would discard them.
    await drained(within: .milliseconds(500), awaitsConnections: true)
    await http2?.stop()
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        for daemon in retired + [daemon] { daemon.stop() }
        continuation.resume()
      }
    }
    // libmicrohttpd does not report the end of connections that it had not begun to read.
    let unseen = inTransit.withLock { connections in
      defer { connections = [:] }
      return Array(connections.values)
    }
    for connection in unseen { forget(connection) }
    resources.withLock { $0.isOver = true }
    watchdog.wake()
  }

  /// Returns when no request is active and, if requested, no HTTP/2 connection is open, or when the
  /// limit has expired.
  private func drained(within limit: Duration, awaitsConnections: Bool) async {
    // The limit is in the caller's time, independent of the clock for clients.
    let end = HTTPClock.deadline(limit, from: HTTPClock.system.now())
    await withCheckedContinuation { continuation in
      resources.withLock { resources in
        resources.drained = continuation
        resources.drainDeadline = end
        resources.awaitsConnections = awaitsConnections
      }
      endDrainIfDone()
    }
  }
}
