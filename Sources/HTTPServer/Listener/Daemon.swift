import CMicrohttpd
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A running libmicrohttpd daemon with the one certificate that it was started with.
///
/// libmicrohttpd cannot change a daemon's certificate, so an engine that is given a new one starts
/// a second daemon on the same socket and retires the first, which goes on with the connections it
/// has.
final class Daemon: @unchecked Sendable {  // `handle`: set in `init`, freed by the one who stops it
  /// Outlives the daemon: its stopper holds the engine.
  unowned let engine: Engine
  /// Connections that this daemon has accepted and not closed.
  let openConnections = Atomic<Int>(0)
  /// Monotonic nanoseconds since when it has taken no new connections; 0 while it takes them.
  let retiredAt = Atomic<UInt64>(0)
  private var handle: OpaquePointer?
  /// A duplicate of the engine's; owned, closed in `stop`.
  private let socket: Int32

  /// - Parameter listening: The engine's socket.
  /// - Returns: `nil` when libmicrohttpd refuses; `errno` may say why.
  init?(engine: Engine, listening: Int32, identity: TLSIdentity?) {
    self.engine = engine
    socket = fcntl(listening, F_DUPFD_CLOEXEC, 0)
    guard socket >= 0 else { return nil }
    let configuration = engine.configuration
    let connectionLimit = UInt32(clamping: max(1, configuration.maxConnections))
    // The pool holds the request's head and a reply's; twice the limit lets us, and not the
    // library, refuse heads that are over it.
    let pool = max(32 * 1024, 2 * configuration.maxHeaderBytes + 8 * 1024)
    errno = 0
    handle = mhd_start(
      socket, min(UInt32(clamping: max(2, configuration.threads)), connectionLimit),
      connectionLimit, pool, identity?.certificatePEM, identity?.privateKeyPEM,
      Engine.libraryComplains, Engine.peerConnects, Engine.access, Engine.targetSeen,
      Engine.completed, Engine.connectionChanged,
      Unmanaged.passUnretained(self).toOpaque())
    guard handle == nil else { return }
    let reason = errno
    // A daemon that does not start has closed its socket, or has not: that depends on the reason.
    // The number may stand for something else by now.
    if Self.isSame(socket, listening) { close(socket) }
    errno = reason
    return nil
  }

  /// Takes no more connections; those there are go on, their replies saying `Connection: close`.
  func retire(at now: UInt64) {
    retiredAt.store(max(1, now), ordering: .sequentiallyConsistent)
    MHD_quiesce_daemon(handle)
  }

  var isRetired: Bool { retiredAt.load(ordering: .relaxed) != 0 }

  /// Closes what is open and ends the threads; blocks until they have ended. Nothing may be
  /// suspended any more.
  func stop() {
    MHD_stop_daemon(handle)
    handle = nil
    close(socket)
  }

  private static func isSame(_ one: Int32, _ other: Int32) -> Bool {
    var (left, right) = (stat(), stat())
    return fstat(one, &left) == 0 && fstat(other, &right) == 0 && left.st_dev == right.st_dev
      && left.st_ino == right.st_ino
  }
}
