import Dispatch
import Foundation
import HTTP2
import HTTPClient
import HTTPServer
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// An HTTP proxy for TLS. `CONNECT fcm.googleapis.com:443` becomes a tunnel to the stand-in, which
/// has a certificate for that name; other hosts are refused. The proxy sees no plaintext.
///
/// One thread serves all tunnels with `poll`.
final class ProxyServer: Sendable {
  private let routes: ProxyRoutes
  private let options: ProxyOptions
  private let listening: ListeningSocket
  private let pipe: WakePipe
  private let isStopping = Atomic<Bool>(false)
  /// The tunnels whose hosts have been resolved since the last wake, by number.
  private let resolved = Mutex<[Int: Result<[Socket.Address], Socket.LookupFailure>]>([:])
  /// `getaddrinfo` blocks, so it has threads of its own, but not many.
  private let resolver: OperationQueue = {
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 4
    return queue
  }()
  private let end = Mutex<(isOver: Bool, waiter: CheckedContinuation<Void, Never>?)>((false, nil))

  /// Binds and starts to serve.
  ///
  /// - Parameters:
  ///   - host: The address that the stand-ins listen on; the proxy listens there, too.
  ///   - ports: The stand-ins' ports.
  init(
    _ options: ProxyOptions, host: String, ports: [EmulatorListener: UInt16]
  ) throws(HTTPListenerError) {
    guard case .success(let addresses) = Socket.addresses(of: host, port: 0, passive: false),
      let standIns = addresses.first
    else { throw .badAddress(host: host) }
    listening = try ListeningSocket(host: host, port: options.port)
    guard let pipe = WakePipe() else {
      Socket.close(listening.number)
      throw .system(host: host, port: options.port, reason: String(cString: strerror(errno)))
    }
    self.pipe = pipe
    self.options = options
    routes = ProxyRoutes(
      standIns: standIns, ports: ports, allowedHosts: options.allowedHosts)
    let thread = Thread { [self] in
      run()
      end.withLock { end in
        end.isOver = true
        return end.waiter
      }?.resume()
    }
    thread.name = "emulator-proxy"
    thread.start()
  }

  var port: UInt16 { listening.port }

  /// Closes all connections, and returns when the thread has ended.
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

  // MARK: The thread

  /// Pause in which nothing is accepted, because the process is out of descriptors.
  private static let pause: UInt64 = 100_000_000

  private func run() {
    blockBrokenPipeSignal()
    var tunnels: [ProxyTunnel] = []
    var descriptors: [pollfd] = []
    var pausedUntil: UInt64?
    var accepted = 0
    var forbidden: Set<ProxyHost> = []
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 * 1024, alignment: 16)
    defer {
      buffer.deallocate()
      for tunnel in tunnels { tunnel.close() }
      Socket.close(listening.number)
    }
    while !isStopping.load(ordering: .sequentiallyConsistent) {
      descriptors.removeAll(keepingCapacity: true)
      descriptors.append(pollfd(fd: pipe.readEnd, events: Int16(POLLIN), revents: 0))
      // `poll` skips a negative descriptor.
      descriptors.append(
        pollfd(
          fd: pausedUntil == nil ? listening.number : -1, events: Int16(POLLIN), revents: 0))
      for tunnel in tunnels { descriptors += tunnel.interests }
      let deadline = (tunnels.map(\.deadline) + (pausedUntil.map { [$0] } ?? [])).min()
      let timeout = pollTimeout(until: deadline, from: monotonicNanoseconds())
      _ = poll(&descriptors, nfds_t(descriptors.count), timeout)
      let now = monotonicNanoseconds()
      if let end = pausedUntil, now >= end { pausedUntil = nil }
      var answers: [Int: Result<[Socket.Address], Socket.LookupFailure>] = [:]
      if descriptors[0].revents != 0 {
        pipe.drain()
        answers = resolved.withLock { resolved in
          defer { resolved = [:] }
          return resolved
        }
      }
      for (index, tunnel) in tunnels.enumerated() {
        if let answer = answers[tunnel.number] { tunnel.didResolve(answer, now: now) }
        let (client, server) = (descriptors[2 * index + 2], descriptors[2 * index + 3])
        if client.revents != 0 || server.revents != 0 { tunnel.advance(now: now, through: buffer) }
        if tunnel.deadline <= now { tunnel.expire(now: now) }
        if let host = tunnel.takeLookup() { resolve(host, for: tunnel.number) }
        if let host = tunnel.takeForbidden(), forbidden.count < 100,
          forbidden.insert(host).inserted
        {
          options.onForbiddenHost(host)
        }
      }
      tunnels.removeAll(where: \.isClosed)
      guard descriptors[1].revents != 0 else { continue }
      // Bounded, so that tunnels are served in between.
      for _ in 0..<64 {
        guard let (client, _) = Socket.accept(listening.number) else {
          if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) { pausedUntil = now + Self.pause }
          break
        }
        accepted += 1
        let tunnel = ProxyTunnel(
          number: accepted, client: client, routes: routes, options: options, now: now)
        if tunnels.count >= options.maxConnections { tunnel.refuse(.full, now: now) }
        // Those that are being refused may exceed the limit, but not by much.
        if tunnels.count >= options.maxConnections + 64 {
          tunnel.close()
        } else {
          tunnels.append(tunnel)
        }
      }
    }
  }

  private func resolve(_ host: ProxyHost, for number: Int) {
    resolver.addOperation { [self] in
      let answer = Socket.addresses(of: "\(host)", port: 443, passive: false)
      resolved.withLock { $0[number] = answer }
      pipe.wake()
    }
  }
}

/// The destination of each tunnel.
struct ProxyRoutes: Sendable {
  /// The address of the stand-ins; each has a port of its own.
  let standIns: Socket.Address
  let ports: [EmulatorListener: UInt16]
  let allowedHosts: Set<ProxyHost>

  enum Route: Sendable {
    /// A stand-in by a push service's name.
    case publicHost(PublicHost)
    /// A stand-in by its own address, as its virtual devices and accounts name it.
    case standIn(Socket.Address)
    case internet
  }

  func route(_ request: ConnectRequest) throws(ProxyRefusal) -> Route {
    if case .name(let name) = request.host, let host = PublicHost.named(name) {
      guard host.ports.contains(request.port) else {
        throw .forbidden(request.host, port: request.port)
      }
      return .publicHost(host)
    }
    if request.host.isOfThisMachine, ports.values.contains(request.port) {
      return .standIn(address(port: request.port))
    }
    guard request.port == 443 else { throw .forbidden(request.host, port: request.port) }
    guard allowedHosts.contains(request.host) else { throw .forbidden(request.host) }
    return .internet
  }

  func address(port: UInt16) -> Socket.Address {
    var address = standIns
    address.setPort(port)
    return address
  }

  func address(_ listener: EmulatorListener) -> Socket.Address {
    address(port: ports[listener] ?? 0)
  }
}
