import CMicrohttpd
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A running libmicrohttpd daemon with the certificate that it was started with; the acceptor
/// passes connections to it.
///
/// libmicrohttpd cannot change a daemon's certificate, so for a new one the engine starts a second
/// daemon and retires the first, which continues to serve its connections.
final class Daemon: @unchecked Sendable {  // `handle`: set in `init`, freed by the one who stops it
  /// The engine, which outlives the daemon, since whoever stops the daemon holds the engine.
  unowned let engine: Engine
  /// The number of connections passed to this daemon that are not closed.
  let openConnections = Atomic<Int>(0)
  /// Whether it no longer gets new connections.
  let isRetired = Atomic<Bool>(false)
  private var handle: OpaquePointer?

  /// - Returns: `nil` if libmicrohttpd fails to start; `errno` may contain the reason.
  init?(engine: Engine, identity: TLSIdentity?) {
    self.engine = engine
    let configuration = engine.configuration
    // The pool holds the heads of a request and a reply. Twice the limit ensures that we, not the
    // library, refuse heads that exceed it.
    let pool = max(32 * 1024, 2 * configuration.maxHeaderBytes + 8 * 1024)
    let threads = UInt32(clamping: max(2, configuration.threads))
    // The library divides the limit among its threads, and version 0.9.75 never releases a lock if
    // a connection is passed to a full thread, so each thread may have the maximum.
    let limit = UInt32(clamping: (engine.hardLimit + 8) * Int(threads))
    errno = 0
    handle = mhd_start(
      threads, limit, pool, identity?.certificatePEM,
      identity?.privateKeyPEM, Engine.libraryComplains, Engine.access, Engine.targetSeen,
      Engine.completed, Engine.connectionChanged,
      Unmanaged.passUnretained(self).toOpaque())
    guard handle != nil else { return nil }
  }

  /// Serves a connection, which is already included in `openConnections`.
  ///
  /// - Returns: Whether libmicrohttpd has accepted it; otherwise it has closed the socket.
  func serve(_ connection: Connection) -> Bool {
    var peer = connection.peer
    return peer.withPointer { address, length in
      MHD_add_connection(handle, connection.socket, address, length) == .YES
    }
  }

  /// Closes open connections and ends the threads; blocks until they have ended. No connection may
  /// be suspended any more.
  func stop() {
    MHD_stop_daemon(handle)
    handle = nil
  }
}
