import Foundation
import Synchronization

/// The part of a server that callers and its loops share.
///
/// Everything mutable is behind `shared`.
final class ServerCore: Sendable {
  private struct Shared {
    var listener: Int32?
    /// Listeners that are shut down, and that loop 0 must close, because it may be waiting on them.
    var unusedListeners: [Int32] = []
    var context: TLSContext
    var connections: [UInt64: HTTP2ServerConnection] = [:]
    var running = 0
    var isStopping = false
    var stopWaiters: [CheckedContinuation<Void, Never>] = []
  }

  let configuration: HTTP2ServerConfiguration
  let handler: any HTTP2ServerHandler
  let port: UInt16
  let loops: [ServerLoop]
  /// Number of open sockets, handshakes included.
  let socketCount = Atomic<Int>(0)
  private let nextLoop = Atomic<Int>(0)
  private let address: Socket.Address?
  private let shared: Mutex<Shared>

  init(
    _ configuration: HTTP2ServerConfiguration, handler: any HTTP2ServerHandler
  ) throws(HTTP2ServerError) {
    self.configuration = configuration
    self.handler = handler
    let context = try Self.context(configuration)
    var loops: [ServerLoop] = []
    for _ in 0..<max(1, configuration.threads) {
      guard let pipe = WakePipe() else {
        throw HTTP2ServerError(.address, "cannot serve: the process is out of descriptors")
      }
      loops.append(ServerLoop(pipe))
    }
    self.loops = loops
    guard let host = configuration.host else {
      (port, address) = (0, nil)
      shared = Mutex(Shared(listener: nil, context: context, running: loops.count))
      return
    }
    let place = "\(host):\(configuration.port)"
    var address: Socket.Address
    switch Socket.addresses(of: host, port: configuration.port, passive: true) {
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
    shared = Mutex(Shared(listener: listener, context: context, running: loops.count))
  }

  deinit { closeListeners() }

  private static func context(
    _ configuration: HTTP2ServerConfiguration
  ) throws(HTTP2ServerError) -> TLSContext {
    do throws(TLSMaterialError) {
      return try TLSContext.server(
        certificatePEM: configuration.certificatePEM, keyPEM: configuration.keyPEM,
        clientCertificates: configuration.clientCertificates,
        clientAnchorsPEM: configuration.clientAnchorsPEM,
        requiresALPN: configuration.requiresALPN)
    } catch {
      throw HTTP2ServerError(.certificate, "cannot serve: \(error.reason)")
    }
  }

  func replaceIdentity(certificatePEM: [UInt8], keyPEM: [UInt8]) throws(HTTP2ServerError) {
    var configuration = configuration
    (configuration.certificatePEM, configuration.keyPEM) = (certificatePEM, keyPEM)
    let context = try Self.context(configuration)
    shared.withLock { $0.context = context }
  }

  func adopt(_ descriptor: Int32, peer: String, id: UInt64) {
    Socket.prepare(descriptor)
    Socket.setNoDelay(descriptor)
    socketCount.add(1, ordering: .relaxed)
    let accepted = ServerLoop.Accepted(
      id: id, descriptor: descriptor, peer: peer, decision: .proceed, isAdopted: true)
    let turn = nextLoop.add(1, ordering: .relaxed).newValue
    if !loops[turn % loops.count].take(accepted) { drop(accepted) }
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

  /// Refuses connects from here on, at the latest after loop 0's next turn where the system does
  /// not allow a listening socket to be shut down.
  func stopListening() {
    shared.withLock { shared in
      guard let listener = shared.listener.take() else { return }
      shutdown(listener, Int32(SHUT_RDWR))
      shared.unusedListeners.append(listener)
    }
    loops[0].pipe.wake()
  }

  func resumeListening() throws(HTTP2ServerError) {
    let isNeeded = shared.withLock { $0.listener == nil && !$0.isStopping }
    guard isNeeded, let address, let host = configuration.host else { return }
    guard let listener = Socket.listen(at: address) else {
      let reason = systemMessage(errno)
      throw HTTP2ServerError(
        .address, "cannot listen on \(host):\(port) again: \(reason)")
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

  /// The TLS context of new connections.
  var context: TLSContext { shared.withLock { $0.context } }

  func closeListeners() {
    shared.withLock { shared in
      if let listener = shared.listener.take() { shared.unusedListeners.append(listener) }
    }
    closeUnusedListeners()
  }

  func closeUnusedListeners() {
    let unused = shared.withLock { shared in
      defer { shared.unusedListeners = [] }
      return shared.unusedListeners
    }
    for listener in unused { Socket.close(listener) }
  }

  /// Closes a connection that no session has taken over.
  func drop(_ accepted: ServerLoop.Accepted) {
    if accepted.isAdopted { handler.socketClosed(id: accepted.id) }
    Socket.close(accepted.descriptor)
    socketCount.subtract(1, ordering: .relaxed)
  }

  func opened(_ connection: HTTP2ServerConnection) {
    shared.withLock { $0.connections[connection.id] = connection }
  }

  func closed(_ connection: HTTP2ServerConnection) {
    _ = shared.withLock { $0.connections.removeValue(forKey: connection.id) }
  }

  /// The last call of a loop.
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
