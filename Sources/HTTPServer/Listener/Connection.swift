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
  /// Owned by libmicrohttpd, which closes it after it has reported the connection closed; used
  /// only while the connection stands in the server's `ConnectionTable`, under that table's lock.
  let socket: Int32
  /// The peer's numeric address.
  let address: String
  /// Monotonic nanoseconds at which the connection is cut; `.max` while nothing is awaited of the
  /// client.
  let deadline: Atomic<UInt64>
  private let work = Mutex(Work())

  private struct Work {
    var exchange: Exchange?
    var stream: BodyChannel?
  }

  init(daemon: Daemon, socket: Int32, address: String, deadline: UInt64) {
    self.daemon = daemon
    self.socket = socket
    self.address = address
    self.deadline = Atomic(deadline)
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
  private let connections = Mutex<[ObjectIdentifier: Connection]>([:])

  func add(_ connection: Connection) {
    connections.withLock { $0[ObjectIdentifier(connection)] = connection }
  }

  func remove(_ connection: Connection) {
    connections.withLock { $0[ObjectIdentifier(connection)] = nil }
  }

  /// Looks at every connection; its socket may be used in `body`.
  func visit(_ body: (Connection) -> Void) {
    connections.withLock { for connection in $0.values { body(connection) } }
  }

  /// The connections of this moment, for work that must not happen under the lock; their sockets
  /// may be gone.
  var all: [Connection] { connections.withLock { Array($0.values) } }
}
