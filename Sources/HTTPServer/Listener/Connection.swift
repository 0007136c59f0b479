import CMicrohttpd
import HTTP2
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// What the server knows of one open connection, whatever it speaks.
final class Connection: Sendable {
  /// Closes all its connections before it ends.
  unowned let engine: Engine
  /// Owned by who serves the connection, who closes it after taking the connection out of the
  /// `HTTPConnections`; used by others only while it stands there, under that table's lock.
  let socket: Int32
  /// Counts from 1 within the listener.
  let number: UInt64
  let peer: SocketAddress
  /// The peer's numeric address.
  let address: String
  /// The client that its connections count for.
  let network: ClientNetwork?
  /// Whether it stands for many clients.
  let isOfProxy: Bool
  /// Clock nanoseconds at which the connection is cut; `.max` while nothing is awaited of the
  /// client.
  let deadline: Atomic<UInt64>
  /// What `deadline` is while nothing of the next request has been seen.
  let idleDeadline: Atomic<UInt64>
  /// Since when it waits for a request, or for the rest of one.
  let idleSince: Atomic<UInt64>
  /// Counts the times that it fell idle.
  private let idlePeriod = Atomic<UInt64>(0)
  /// Requests that have come whole and whose reply has not gone.
  let serving = Atomic<Int>(0)
  /// Whether its HTTP/2 client has been sent away.
  let isLeaving = Atomic<Bool>(false)
  /// Whether it had to make room.
  let isEvicted = Atomic<Bool>(false)
  /// On its way from the acceptor to libmicrohttpd, which closes the socket unasked if it does not
  /// take it: nobody may touch it. Changed under the table's lock.
  let isInTransit = Atomic<Bool>(false)
  /// libmicrohttpd's; set before its first request, used on the connection's own thread only.
  nonisolated(unsafe) var handle: OpaquePointer?
  /// The idle period in which the watchdog last counted bytes, and how many there were. The
  /// watchdog's alone.
  nonisolated(unsafe) private var watched: (period: UInt64, bytes: Int64) = (0, 0)
  private let work = Mutex(Work())

  private struct Work {
    var daemon: Daemon?
    var exchange: Exchange?
    var stream: BodyChannel?
    var link: HTTP2ServerConnection?
    var streams: [Int32: StreamExchange] = [:]
  }

  init(
    engine: Engine, socket: Int32, peer: SocketAddress, isOfProxy: Bool, deadline: UInt64,
    now: UInt64
  ) {
    self.isOfProxy = isOfProxy
    self.engine = engine
    self.socket = socket
    self.peer = peer
    number = engine.lastConnection.add(1, ordering: .relaxed).newValue
    address = peer.host
    network = ClientNetwork(peer)
    self.deadline = Atomic(deadline)
    idleDeadline = Atomic(deadline)
    idleSince = Atomic(now)
  }

  /// From now on the next request is awaited.
  func idle(until deadline: UInt64, since now: UInt64) {
    idlePeriod.add(1, ordering: .relaxed)
    idleSince.store(now, ordering: .relaxed)
    idleDeadline.store(deadline, ordering: .relaxed)
    self.deadline.store(deadline, ordering: .relaxed)
  }

  /// The first line of a request has come; the whole of it must come before `deadline`, or before
  /// the time that has been set when its first byte was seen.
  func requestBegins(until deadline: UInt64) {
    _ = self.deadline.compareExchange(
      expected: idleDeadline.load(ordering: .relaxed), desired: deadline, ordering: .relaxed)
  }

  /// Whether it waits for a request of which nothing has been seen yet.
  private var isIdle: Bool {
    let idle = idleDeadline.load(ordering: .relaxed)
    return idle != .max && deadline.load(ordering: .relaxed) == idle
  }

  /// Sets the request's time limit if bytes of it have come since the connection fell idle.
  ///
  /// libmicrohttpd takes them from the socket without a word until a whole line is there, so the
  /// system is asked. What came between the last reply and the watchdog's next round is not
  /// noticed before a byte follows it.
  func watchFirstByte(requestUntil deadline: UInt64) {
    let period = idlePeriod.load(ordering: .relaxed)
    let idle = idleDeadline.load(ordering: .relaxed)
    guard isIdle else { return }
    let received = mhd_bytes_received(socket)
    guard received >= 0 else { return }
    guard watched.period == period else {
      watched = (period, received)
      return
    }
    guard received > watched.bytes else { return }
    _ = self.deadline.compareExchange(expected: idle, desired: deadline, ordering: .relaxed)
  }

  /// The daemon that serves it, if one does.
  var daemon: Daemon? {
    get { work.withLock { $0.daemon } }
    set { work.withLock { $0.daemon = newValue } }
  }

  /// The HTTP/1.1 request being served, if any.
  var exchange: Exchange? {
    get { work.withLock { $0.exchange } }
    set { work.withLock { $0.exchange = newValue } }
  }

  /// The streamed reply to it being written, if any.
  var stream: BodyChannel? {
    get { work.withLock { $0.stream } }
    set { work.withLock { $0.stream = newValue } }
  }

  /// Its HTTP/2 session, once the handshake is done.
  var link: HTTP2ServerConnection? {
    get { work.withLock { $0.link } }
    set { work.withLock { $0.link = newValue } }
  }

  /// The HTTP/2 requests under way.
  var streams: [StreamExchange] { work.withLock { Array($0.streams.values) } }

  func addStream(_ stream: StreamExchange) {
    work.withLock { $0.streams[stream.number] = stream }
  }

  func stream(_ number: Int32) -> StreamExchange? { work.withLock { $0.streams[number] } }

  /// - Returns: The stream, and whether it was the last.
  func removeStream(_ number: Int32) -> (StreamExchange, isLast: Bool)? {
    work.withLock { work in
      work.streams.removeValue(forKey: number).map { ($0, work.streams.isEmpty) }
    }
  }

  /// Forgets request and stream.
  func clear() {
    work.withLock { work in
      work.exchange = nil
      work.stream = nil
    }
  }

  /// Makes who serves it see the end of the connection and close it; under the table's lock.
  func cut() {
    guard !isInTransit.load(ordering: .relaxed) else { return }
    _ = shutdown(socket, Int32(SHUT_RDWR))
  }

  /// Ends the connection on its own thread, which closes it next.
  func end(_ cut: HTTPCut) {
    if cut == .reset {
      // Linux resets a connection that is told to have no peer; elsewhere closing it does so.
      var linger = linger(l_onoff: 1, l_linger: 0)
      _ = setsockopt(
        socket, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
      #if os(Linux)
        var nobody = sockaddr()
        nobody.sa_family = sa_family_t(AF_UNSPEC)
        _ = connect(socket, &nobody, socklen_t(MemoryLayout.size(ofValue: nobody)))
      #endif
    }
    _ = shutdown(socket, Int32(SHUT_RDWR))
  }

  /// Whether the peer has closed its side; never blocks, takes nothing from the socket.
  var isPeerGone: Bool {
    var byte: UInt8 = 0
    let count = recv(socket, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
    // What is left of a TLS connection is its last words, which only libmicrohttpd can read.
    if count > 0 { return hasHungUp }
    return count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
  }
}

extension Connection {
  /// Whether the peer has ended its side, bytes before that end aside.
  private var hasHungUp: Bool {
    #if canImport(Darwin)
      let hangUp = Int16(POLLHUP)  // Darwin reports the end of the peer's side as this
    #else
      let hangUp = Int16(0x2000)  // POLLRDHUP, which glibc's headers hide
    #endif
    var entry = pollfd(fd: socket, events: hangUp, revents: 0)
    return poll(&entry, 1, 0) > 0 && entry.revents & (hangUp | Int16(POLLHUP)) != 0
  }
}
