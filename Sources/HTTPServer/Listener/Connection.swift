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

/// The state of an open connection of either protocol.
final class Connection: Sendable {
  /// The engine, which closes all its connections before it ends.
  unowned let engine: Engine
  /// The socket. It belongs to the server of the connection, which closes it after removing the
  /// connection from the `HTTPConnections`; others use it only while the connection is in that
  /// table, under its lock.
  let socket: Int32
  /// The number, counted from 1 within the listener.
  let number: UInt64
  let peer: SocketAddress
  /// The peer's numeric address.
  let address: String
  /// The network that its connections count toward.
  let network: ClientNetwork?
  /// Whether the peer is a trusted proxy, which represents many clients.
  let isOfProxy: Bool
  /// The clock time in nanoseconds at which the connection is cut; `.max` while nothing is expected
  /// of the client.
  let deadline: Atomic<UInt64>
  /// The value of `deadline` while no byte of the next request has been seen.
  let idleDeadline: Atomic<UInt64>
  /// The time since which it has waited for a request or the rest of one.
  let idleSince: Atomic<UInt64>
  /// The number of times that it became idle.
  private let idlePeriod = Atomic<UInt64>(0)
  /// The number of requests received completely whose reply is not sent.
  let serving = Atomic<Int>(0)
  /// Whether its HTTP/2 client has been sent GOAWAY.
  let isLeaving = Atomic<Bool>(false)
  /// Whether it was evicted to make room.
  let isEvicted = Atomic<Bool>(false)
  /// Whether it is in transit from the acceptor to libmicrohttpd, which closes the socket by itself
  /// on failure, so nothing else may use it. Changed under the table's lock.
  let isInTransit = Atomic<Bool>(false)
  /// libmicrohttpd's handle; set before its first request, used only on the connection's own
  /// thread.
  nonisolated(unsafe) var handle: OpaquePointer?
  /// The idle period in which the watchdog last counted bytes, and their number. Used only by the
  /// watchdog.
  nonisolated(unsafe) private var watched: (period: UInt64, bytes: Int64) = (0, 0)
  private let work = Mutex(Work())

  private struct Work {
    var worker: DaemonWorker?
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

  /// Marks the connection as waiting for its next request.
  func idle(until deadline: UInt64, since now: UInt64) {
    idlePeriod.add(1, ordering: .relaxed)
    idleSince.store(now, ordering: .relaxed)
    idleDeadline.store(deadline, ordering: .relaxed)
    self.deadline.store(deadline, ordering: .relaxed)
  }

  /// Records that the first line of a request has been read; the rest must arrive before
  /// `deadline`, or before the time set when its first byte was seen.
  func requestBegins(until deadline: UInt64) {
    _ = self.deadline.compareExchange(
      expected: idleDeadline.load(ordering: .relaxed), desired: deadline, ordering: .relaxed)
  }

  /// Whether it waits for a request of which no byte has been seen.
  private var isIdle: Bool {
    let idle = idleDeadline.load(ordering: .relaxed)
    return idle != .max && deadline.load(ordering: .relaxed) == idle
  }

  /// Sets the request's time limit if bytes of it have arrived since the connection became idle.
  ///
  /// libmicrohttpd silently consumes them until a whole line is there, so the system is asked.
  /// Bytes that arrived between the last reply and the watchdog's next round are only noticed when
  /// another one follows.
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

  /// The thread that serves it, once it is libmicrohttpd's.
  var worker: DaemonWorker? {
    get { work.withLock { $0.worker } }
    set { work.withLock { $0.worker = newValue } }
  }

  /// The HTTP/1.1 request being served, if any.
  var exchange: Exchange? {
    get { work.withLock { $0.exchange } }
    set { work.withLock { $0.exchange = newValue } }
  }

  /// The streamed reply being written, if any.
  var stream: BodyChannel? {
    get { work.withLock { $0.stream } }
    set { work.withLock { $0.stream = newValue } }
  }

  /// Its HTTP/2 session, once the handshake is done.
  var link: HTTP2ServerConnection? {
    get { work.withLock { $0.link } }
    set { work.withLock { $0.link = newValue } }
  }

  /// The HTTP/2 requests in progress.
  var streams: [StreamExchange] { work.withLock { Array($0.streams.values) } }

  func addStream(_ stream: StreamExchange) {
    work.withLock { $0.streams[stream.number] = stream }
  }

  func stream(_ number: Int32) -> StreamExchange? { work.withLock { $0.streams[number] } }

  /// - Returns: The stream, and whether it was the last one.
  func removeStream(_ number: Int32) -> (StreamExchange, isLast: Bool)? {
    work.withLock { work in
      work.streams.removeValue(forKey: number).map { ($0, work.streams.isEmpty) }
    }
  }

  /// Removes the request and the stream.
  func clear() {
    work.withLock { work in
      work.exchange = nil
      work.stream = nil
    }
  }

  /// Makes the server of the connection see its end and close it. Call under the table's lock.
  func cut() {
    guard !isInTransit.load(ordering: .relaxed) else { return }
    _ = shutdown(socket, Int32(SHUT_RDWR))
  }

  /// Ends the connection on its own thread, which then closes it.
  func end(_ cut: HTTPCut) {
    if cut == .reset {
      // Linux resets a connection on connect with AF_UNSPEC; elsewhere closing it does so.
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

  /// Whether the peer has closed its side; never blocks, and consumes nothing from the socket.
  var isPeerGone: Bool {
    var byte: UInt8 = 0
    let count = recv(socket, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
    // The remaining bytes of a TLS connection are its closing messages, which only libmicrohttpd
    // can read.
    if count > 0 { return hasHungUp }
    return count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
  }
}

extension Connection {
  /// Whether the peer has closed its side, even if bytes remain before that end.
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
