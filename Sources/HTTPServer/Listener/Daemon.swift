import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The threads that serve HTTP/1.1 with the certificate that they were started with; the acceptor
/// passes connections to them.
///
/// libmicrohttpd cannot change a daemon's certificate, so for a new one the engine starts others and
/// retires these, which continue to serve their connections.
final class Daemon: @unchecked Sendable {
  // `workers`: set in `init`, emptied by the one who stops it.

  /// The engine, which outlives the daemon, since whoever stops the daemon holds the engine.
  unowned let engine: Engine
  /// The number of connections passed to this daemon that are not closed.
  let openConnections = Atomic<Int>(0)
  /// Whether it no longer gets new connections.
  let isRetired = Atomic<Bool>(false)
  private var workers: [DaemonWorker] = []
  private let turn = Atomic<Int>(0)

  /// - Returns: `nil` if libmicrohttpd fails to start; `errno` may contain the reason.
  init?(engine: Engine, identity: TLSIdentity?) {
    self.engine = engine
    for _ in 0..<max(2, engine.configuration.threads) {
      guard let worker = DaemonWorker(daemon: self, identity: identity) else {
        let reason = errno
        stop()
        errno = reason
        return nil
      }
      workers.append(worker)
      worker.start()
    }
  }

  /// Serves a connection, which is already included in `openConnections`, or refuses it.
  func serve(_ connection: Connection) {
    let turn = turn.wrappingAdd(1, ordering: .relaxed).oldValue
    let worker = workers[Int(UInt(bitPattern: turn) % UInt(workers.count))]
    connection.worker = worker
    worker.serve(connection)
  }

  /// Closes open connections and ends the threads; blocks until they have ended. No connection may
  /// be suspended any more.
  func stop() {
    for worker in workers { worker.stop() }
    workers = []
  }
}
