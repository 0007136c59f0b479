import CMicrohttpd  // brings the socket types' members along
import Dispatch
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

/// The thread that accepts connections and assigns them to a server: a TLS client that offers `h2`
/// by ALPN is served by the HTTP/2 server, every other client by libmicrohttpd.
///
/// The client's hello is read without removing it from the socket, so that the server that gets the
/// connection sees the handshake from its start.
final class Acceptor: Sendable {
  /// The engine, which stops its acceptor before it ends.
  private unowned let engine: Engine
  private let pipe: WakePipe
  private let isStopping = Atomic<Bool>(false)
  private let end = Mutex(End())

  private struct End {
    var isOver = false
    var waiter: CheckedContinuation<Void, Never>?
  }

  /// A connection whose client hello is incomplete.
  private struct Hello {
    let connection: Connection
    /// The number of its bytes seen so far.
    var seen = 0
    /// The monotonic time in nanoseconds before which it is ignored, for systems that wake us for
    /// bytes already seen.
    var restsUntil: UInt64 = 0
  }

  /// Fails if the process is out of descriptors.
  init?(engine: Engine) {
    guard let pipe = WakePipe() else { return nil }
    self.pipe = pipe
    self.engine = engine
  }

  func start() {
    let thread = Thread { [self] in
      run()
      let waiter = end.withLock { end in
        end.isOver = true
        return end.waiter
      }
      waiter?.resume()
    }
    thread.name = "http-acceptor"
    thread.start()
  }

  /// Closes the connections not yet assigned, and returns when the thread has ended.
  func stop() async {
    isStopping.store(true, ordering: .sequentiallyConsistent)
    pipe.wake()
    await withCheckedContinuation { continuation in
      let isOver = end.withLock { end in
        if !end.isOver { end.waiter = continuation }
        return end.isOver
      }
      if isOver { continuation.resume() }
    }
  }

  // MARK: the thread

  private static let rest: UInt64 = 20_000_000

  private func run() {
    var hellos: [Hello] = []
    var descriptors: [pollfd] = []
    /// The time until which the process is out of descriptors; connections wait in the system's
    /// queue.
    var pausedUntil: UInt64 = 0
    let hello = UnsafeMutableRawBufferPointer.allocate(
      byteCount: ClientHello.maxSize + 64, alignment: 16)
    defer { hello.deallocate() }

    while !isStopping.load(ordering: .sequentiallyConsistent) {
      var now = DispatchTime.now().uptimeNanoseconds
      let accepts = now >= pausedUntil && engine.hasRoom
      descriptors.removeAll(keepingCapacity: true)
      descriptors.append(pollfd(fd: pipe.readEnd, events: Int16(POLLIN), revents: 0))
      // `poll` skips a negative descriptor.
      descriptors.append(
        pollfd(fd: accepts ? engine.listeningSocket : -1, events: Int16(POLLIN), revents: 0))
      for hello in hellos {
        descriptors.append(
          pollfd(
            fd: hello.restsUntil > now ? -1 : hello.connection.socket, events: Int16(POLLIN),
            revents: 0))
      }
      let isResting = !accepts || hellos.contains { $0.restsUntil > now }
      _ = poll(&descriptors, nfds_t(descriptors.count), isResting ? 20 : -1)
      now = DispatchTime.now().uptimeNanoseconds
      if descriptors[0].revents != 0 { pipe.drain() }
      if hellos.indices.contains(where: { descriptors[$0 + 2].revents != 0 }) {
        hellos = hellos.enumerated().compactMap { index, waiting in
          descriptors[index + 2].revents == 0 ? waiting : look(waiting, now, into: hello)
        }
      }
      guard descriptors[1].revents != 0 else { continue }
      // Bounded, so that pending hellos are also processed.
      for _ in 0..<64 where engine.hasRoom {
        guard let (socket, peer) = accept() else {
          if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) {
            pausedUntil = now + 5 * Self.rest
            engine.connections.makeRoom(for: nil)
          }
          break
        }
        guard let connection = engine.admit(socket, peer) else { continue }
        guard engine.choosesProtocol else {
          engine.serveHTTP1(connection)
          continue
        }
        if let waiting = look(Hello(connection: connection), now, into: hello) {
          hellos.append(waiting)
        }
      }
    }
    for hello in hellos { engine.close(hello.connection) }
  }

  /// Accepts a waiting connection; `nil` with `errno` set if there is none.
  private func accept() -> (Int32, SocketAddress)? {
    var storage = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let (socket, peer) = withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        #if canImport(Darwin)
          let socket = Darwin.accept(engine.listeningSocket, address, &size)
        #elseif canImport(Glibc)
          let socket = Glibc.accept(engine.listeningSocket, address, &size)
        #else
          let socket = Musl.accept(engine.listeningSocket, address, &size)
        #endif
        return (socket, socket < 0 ? nil : SocketAddress(address))
      }
    }
    guard socket >= 0 else { return nil }
    _ = fcntl(socket, F_SETFL, O_NONBLOCK)
    _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
    guard let peer else {
      close(socket)
      errno = EAGAIN
      return nil
    }
    return (socket, peer)
  }

  /// Assigns a connection if its client hello is complete; otherwise returns it.
  private func look(
    _ waiting: Hello, _ now: UInt64, into buffer: UnsafeMutableRawBufferPointer
  ) -> Hello? {
    let connection = waiting.connection
    let count = recv(
      connection.socket, buffer.baseAddress, buffer.count, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
    guard count > 0 else {
      if count < 0, errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR { return waiting }
      engine.close(connection)
      return nil
    }
    var waiting = waiting
    switch ClientHello(UnsafeRawBufferPointer(rebasing: buffer[..<count])) {
    case .offersHTTP2:
      setLowWater(1, connection.socket)
      engine.serveHTTP2(connection)
      return nil
    case .partial where count < buffer.count:
      if count == waiting.seen {
        // A spurious wake-up: the client closed its side, or the low-water mark below has no
        // effect.
        guard !connection.isPeerGone else {
          engine.close(connection)
          return nil
        }
        waiting.restsUntil = now + Self.rest
      }
      waiting.seen = count
      setLowWater(Int32(count) + 1, connection.socket)
      return waiting
    case .partial, .other:
      setLowWater(1, connection.socket)
      engine.serveHTTP1(connection)
      return nil
    }
  }

  /// Makes `poll` wake us at this number of bytes, including those left in the socket.
  private func setLowWater(_ count: Int32, _ socket: Int32) {
    var count = count
    setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &count, socklen_t(MemoryLayout<Int32>.size))
  }
}
