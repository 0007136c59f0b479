import CMicrohttpd
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A running libmicrohttpd daemon with the one certificate that it was started with; the acceptor
/// gives it its connections.
///
/// libmicrohttpd cannot change a daemon's certificate, so an engine that is given a new one starts
/// a second daemon and retires the first, which goes on with the connections it has.
final class Daemon: @unchecked Sendable {  // `handle`: set in `init`, freed by the one who stops it
  /// Outlives the daemon: its stopper holds the engine.
  unowned let engine: Engine
  /// Connections that were given to this daemon and are not closed.
  let openConnections = Atomic<Int>(0)
  /// Whether it gets no new connections.
  let isRetired = Atomic<Bool>(false)
  private var handle: OpaquePointer?

  /// - Returns: `nil` when libmicrohttpd refuses; `errno` may say why.
  init?(engine: Engine, identity: TLSIdentity?) {
    self.engine = engine
    let configuration = engine.configuration
    // The pool holds the request's head and a reply's; twice the limit lets us, and not the
    // library, refuse heads that are over it.
    let pool = max(32 * 1024, 2 * configuration.maxHeaderBytes + 8 * 1024)
    let threads = UInt32(clamping: max(2, configuration.threads))
    // The library divides the limit among its threads, and version 0.9.75 keeps a lock forever when
    // a connection that was given to it finds its thread full: each may have all there can be.
    let limit = UInt32(clamping: (engine.hardLimit + 8) * Int(threads))
    errno = 0
    handle = mhd_start(
      threads, limit, pool, identity?.certificatePEM,
      identity?.privateKeyPEM, Engine.libraryComplains, Engine.access, Engine.targetSeen,
      Engine.completed, Engine.connectionChanged,
      Unmanaged.passUnretained(self).toOpaque())
    guard handle != nil else { return nil }
  }

  /// Serves a connection, which `openConnections` counts already.
  ///
  /// - Returns: Whether libmicrohttpd has taken it; if not, it has closed the socket.
  func serve(_ connection: Connection) -> Bool {
    var peer = connection.peer
    return peer.withPointer { address, length in
      MHD_add_connection(handle, connection.socket, address, length) == .YES
    }
  }

  /// Closes what is open and ends the threads; blocks until they have ended. Nothing may be
  /// suspended any more.
  func stop() {
    MHD_stop_daemon(handle)
    handle = nil
  }
}
