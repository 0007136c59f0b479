import CMicrohttpd
import Foundation
import HTTP2
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A thread with a daemon of libmicrohttpd, for which it waits.
///
/// On threads of its own, libmicrohttpd (0.9.75) takes at most 128 events at a time from epoll, and if
/// it gets exactly so many it waits for more, without an end, before it serves these. Where it does not
/// wait, it serves them at once.
final class DaemonWorker: @unchecked Sendable {
  // `handle`: of the thread, and once it has ended of the one who stops it.
  let daemon: Daemon
  private let handle: OpaquePointer
  private let pipe: WakePipe
  private let state = Mutex(State())
  private let hasEnded = DispatchSemaphore(value: 0)

  private struct State: @unchecked Sendable {  // guarded by the Mutex around it
    var arrived: [Connection] = []
    var resumed: [OpaquePointer] = []
    var isEnding = false
  }

  /// - Returns: `nil` if libmicrohttpd fails to start; `errno` may contain the reason.
  init?(daemon: Daemon, identity: TLSIdentity?) {
    self.daemon = daemon
    let configuration = daemon.engine.configuration
    // The pool holds the heads of a request and a reply. Twice the limit ensures that we, not the
    // library, refuse heads that exceed it.
    let pool = max(32 * 1024, 2 * configuration.maxHeaderBytes + 8 * 1024)
    errno = 0
    guard let pipe = WakePipe(),
      let handle = mhd_start(
        UInt32(clamping: daemon.engine.hardLimit + 8), pool, identity?.certificatePEM,
        identity?.privateKeyPEM, Engine.libraryComplains, Engine.access, Engine.targetSeen,
        Engine.completed, Engine.connectionChanged, Unmanaged.passUnretained(daemon).toOpaque())
    else { return nil }
    self.pipe = pipe
    self.handle = handle
  }

  func start() {
    let thread = Thread { [self] in
      run()
      hasEnded.signal()
    }
    thread.name = "http-worker"
    thread.start()
  }

  func serve(_ connection: Connection) {
    state.withLock { $0.arrived.append(connection) }
    pipe.wake()
  }

  /// Goes on with a suspended connection.
  func resume(_ connection: OpaquePointer) {
    state.withLock { $0.resumed.append(connection) }
    pipe.wake()
  }

  /// Blocks until the thread has ended, and closes what is open.
  func stop() {
    state.withLock { $0.isEnding = true }
    pipe.wake()
    hasEnded.wait()
    MHD_stop_daemon(handle)
  }

  private func run() {
    blockBrokenPipeSignal()
    var entries = [
      pollfd(fd: mhd_poll_descriptor(handle), events: Int16(POLLIN), revents: 0),
      pollfd(fd: pipe.readEnd, events: Int16(POLLIN), revents: 0),
    ]
    while true {
      _ = poll(&entries, nfds_t(entries.count), mhd_poll_timeout(handle))
      var isEnding = false
      if entries[1].revents != 0 {
        pipe.drain()
        let work = state.withLock { state in
          defer { (state.arrived, state.resumed) = ([], []) }
          return state
        }
        for connection in work.resumed { MHD_resume_connection(connection) }
        for connection in work.arrived { add(connection) }
        isEnding = work.isEnding
      }
      MHD_run(handle)
      if isEnding { return }
    }
  }

  private func add(_ connection: Connection) {
    var peer = connection.peer
    let isServed = peer.withPointer { address, length in
      MHD_add_connection(handle, connection.socket, address, length) == .YES
    }
    // Otherwise it has closed the socket.
    if !isServed { daemon.engine.refused(connection, by: daemon) }
  }
}
