import CMicrohttpd
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// What the server knows of one open connection.
final class Connection: Sendable {
  /// Closes all its connections before it ends.
  unowned let daemon: Daemon
  /// libmicrohttpd's; used on the connection's own thread only.
  nonisolated(unsafe) let handle: OpaquePointer
  /// Owned by libmicrohttpd, which closes it after it has reported the connection closed; used
  /// only while the connection stands in the server's `ConnectionTable`, under that table's lock.
  let socket: Int32
  /// Counts from 1 within the listener.
  let number: UInt64
  /// The peer's numeric address.
  let address: String
  /// Whom its connections are counted for.
  let network: ClientNetwork?
  /// Monotonic nanoseconds at which the connection is cut; `.max` while nothing is awaited of the
  /// client.
  let deadline: Atomic<UInt64>
  /// What `deadline` is while nothing of the next request has been seen.
  let idleDeadline: Atomic<UInt64>
  private let work = Mutex(Work())

  private struct Work {
    var exchange: Exchange?
    var stream: BodyChannel?
  }

  init(daemon: Daemon, handle: OpaquePointer, peer: SocketAddress?, idleUntil deadline: UInt64) {
    self.daemon = daemon
    self.handle = handle
    socket = mhd_socket(handle)
    number = daemon.engine.lastConnection.add(1, ordering: .relaxed).newValue
    address = peer?.host ?? ""
    network = peer.flatMap(ClientNetwork.init)
    self.deadline = Atomic(deadline)
    idleDeadline = Atomic(deadline)
  }

  /// From now on the next request is awaited.
  func idle(until deadline: UInt64) {
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
  var isIdle: Bool {
    let idle = idleDeadline.load(ordering: .relaxed)
    return idle != .max && deadline.load(ordering: .relaxed) == idle
  }

  /// Sets the request's time limit if bytes of it have come since the connection fell idle.
  ///
  /// libmicrohttpd takes them from the socket without a word until a whole line is there, so the
  /// system is asked.
  func watchFirstByte(at now: UInt64, idleTimeout: UInt64, requestUntil deadline: UInt64) {
    let idle = idleDeadline.load(ordering: .relaxed)
    guard isIdle, idle >= idleTimeout else { return }
    let quiet = mhd_quiet_milliseconds(socket)
    guard quiet >= 0, case let idleSince = idle - idleTimeout, now > idleSince else { return }
    // The system counts coarsely; a byte right after the last reply waits for the one behind it.
    let slack: UInt64 = 20_000_000
    guard UInt64(quiet) * 1_000_000 + slack < now - idleSince else { return }
    _ = self.deadline.compareExchange(expected: idle, desired: deadline, ordering: .relaxed)
  }

  /// The request being served, if any.
  var exchange: Exchange? {
    get { work.withLock { $0.exchange } }
    set { work.withLock { $0.exchange = newValue } }
  }

  /// The streamed reply being written, if any.
  var stream: BodyChannel? {
    get { work.withLock { $0.stream } }
    set { work.withLock { $0.stream = newValue } }
  }

  /// Forgets request and stream.
  func clear() {
    work.withLock { $0 = Work() }
  }

  /// Makes libmicrohttpd see the end of the connection and close it.
  func cut() {
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
    self.cut()
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

/// All open connections. What is done with a socket is done under the table's lock: libmicrohttpd
/// closes the socket only after `remove` has returned, so its number cannot have been given to
/// someone else meanwhile.
final class ConnectionTable: Sendable {
  private struct Content {
    var connections: [ObjectIdentifier: Connection] = [:]
    var counts: [ClientNetwork: Int] = [:]
  }

  private let content = Mutex(Content())

  func add(_ connection: Connection) {
    content.withLock { content in
      content.connections[ObjectIdentifier(connection)] = connection
      if let network = connection.network { content.counts[network, default: 0] += 1 }
    }
  }

  func remove(_ connection: Connection) {
    content.withLock { content in
      guard content.connections.removeValue(forKey: ObjectIdentifier(connection)) != nil,
        let network = connection.network, let count = content.counts[network]
      else { return }
      content.counts[network] = count > 1 ? count - 1 : nil
    }
  }

  var count: Int { content.withLock { $0.connections.count } }

  /// How many connections a network has.
  func count(of network: ClientNetwork) -> Int { content.withLock { $0.counts[network] ?? 0 } }

  /// Looks at every connection; its socket may be used in `body`.
  func visit(_ body: (Connection) -> Void) {
    content.withLock { for connection in $0.connections.values { body(connection) } }
  }

  /// The connections of this moment, for work that must not happen under the lock; their sockets
  /// may be gone.
  var all: [Connection] { content.withLock { Array($0.connections.values) } }
}
