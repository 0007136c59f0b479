import Dispatch
import Foundation
import Synchronization

/// The part of a server that callers and its loops share.
///
/// `@unchecked Sendable`: `context` is complete before the first thread starts and OpenSSL counts
/// its references atomically; everything mutable is behind `shared`.
final class ServerCore: @unchecked Sendable {
  private struct Shared {
    var listener: Int32?
    var connections: [UInt64: HTTP2ServerConnection] = [:]
    var running = 0
    var isStopping = false
    var stopWaiters: [CheckedContinuation<Void, Never>] = []
  }

  let configuration: HTTP2ServerConfiguration
  let handler: any HTTP2ServerHandler
  let context: TLSContext
  let port: UInt16
  let loops: [ServerLoop]
  /// Sockets open, handshakes included.
  let socketCount = Atomic<Int>(0)
  private let address: Socket.Address
  private let shared: Mutex<Shared>

  init(
    _ configuration: HTTP2ServerConfiguration, handler: any HTTP2ServerHandler
  ) throws(HTTP2ServerError) {
    self.configuration = configuration
    self.handler = handler
    do throws(TLSMaterialError) {
      context = try TLSContext.server(
        certificatePEM: configuration.certificatePEM, keyPEM: configuration.keyPEM,
        clientCertificates: configuration.clientCertificates,
        clientAnchorsPEM: configuration.clientAnchorsPEM,
        requiresALPN: configuration.requiresALPN)
    } catch {
      throw HTTP2ServerError(.certificate, "cannot serve: \(error.reason)")
    }
    let place = "\(configuration.host):\(configuration.port)"
    var loops: [ServerLoop] = []
    for _ in 0..<max(1, configuration.threads) {
      guard let pipe = WakePipe() else {
        throw HTTP2ServerError(.address, "cannot serve: the process is out of descriptors")
      }
      loops.append(ServerLoop(pipe))
    }
    self.loops = loops
    var address: Socket.Address
    switch Socket.addresses(of: configuration.host, port: configuration.port, passive: true) {
    case .success(let found): address = found[0]
    case .failure(let failure):
      throw HTTP2ServerError(.address, "cannot listen on \(place): \(failure.reason)")
    }
    guard let listener = Socket.listen(at: address) else {
      throw HTTP2ServerError(
        .address, "cannot listen on \(place): \(systemMessage(errno))")
    }
    port = Socket.port(of: listener)
    address.setPort(port)
    self.address = address
    shared = Mutex(Shared(listener: listener, running: loops.count))
  }

  deinit {
    shared.withLock { shared in
      if let listener = shared.listener.take() { Socket.close(listener) }
    }
  }

  /// Starts the threads, which hold the core until `stop`.
  func start() {
    for index in loops.indices {
      let thread = Thread { ServerRunner.run(self, index) }
      thread.name = "http2-server-\(index)"
      thread.start()
    }
  }

  func stop() {
    shared.withLock { $0.isStopping = true }
    for loop in loops { loop.post { $0.isStopping = true } }
  }

  func stopAndWait() async {
    stop()
    await withCheckedContinuation { waiter in
      let isDone = shared.withLock { shared in
        if shared.running > 0 { shared.stopWaiters.append(waiter) }
        return shared.running == 0
      }
      if isDone { waiter.resume() }
    }
  }

  /// Returns when the socket is closed. Loop 0 closes it, because it may be waiting on it.
  func stopListening() {
    if loops[0].isCurrent {
      closeListener()
      return
    }
    let done = DispatchSemaphore(value: 0)
    loops[0].post { $0.closeListener.append(done) }
    _ = done.wait(timeout: .now() + 5)  // a stopped loop never answers
  }

  func resumeListening() throws(HTTP2ServerError) {
    let isNeeded = shared.withLock { $0.listener == nil && !$0.isStopping }
    guard isNeeded else { return }
    guard let listener = Socket.listen(at: address) else {
      let reason = systemMessage(errno)
      throw HTTP2ServerError(
        .address, "cannot listen on \(configuration.host):\(port) again: \(reason)")
    }
    let surplus = shared.withLock { shared -> Int32? in
      guard shared.listener == nil, !shared.isStopping else { return listener }
      shared.listener = listener
      return nil
    }
    if let surplus { Socket.close(surplus) }
    loops[0].pipe.wake()
  }

  var connections: [HTTP2ServerConnection] {
    shared.withLock { $0.connections.values.sorted { $0.id < $1.id } }
  }

  // MARK: The loops' side

  var listener: Int32? { shared.withLock { $0.listener } }

  func closeListener() {
    let listener = shared.withLock { $0.listener.take() }
    if let listener { Socket.close(listener) }
  }

  func opened(_ connection: HTTP2ServerConnection) {
    shared.withLock { $0.connections[connection.id] = connection }
  }

  func closed(_ connection: HTTP2ServerConnection) {
    _ = shared.withLock { $0.connections.removeValue(forKey: connection.id) }
  }

  /// A loop's last word.
  func loopEnded() {
    let waiters = shared.withLock { shared -> [CheckedContinuation<Void, Never>] in
      shared.running -= 1
      guard shared.running == 0 else { return [] }
      defer { shared.stopWaiters = [] }
      return shared.stopWaiters
    }
    for waiter in waiters { waiter.resume() }
  }
}
