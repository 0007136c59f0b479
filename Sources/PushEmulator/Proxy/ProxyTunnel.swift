import HTTP2
import HTTPClient
import HTTPServer

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// One connection to the proxy, from its request to the end of the tunnel. Used by the proxy's
/// thread only; owns both sockets.
final class ProxyTunnel {
  private enum Stage {
    /// The request is incomplete.
    case request
    /// An allowed host is being resolved.
    case resolving(ProxyHost)
    /// The client was told that the tunnel stands; its first message of TLS, which decides between
    /// the stand-in for HTTP/2 and that for HTTP/1.1, is incomplete.
    case hello(PublicHost)
    case connecting(ProxyHost?, next: ArraySlice<Socket.Address>)
    case open
    /// The refusal is being sent; what the client still sends is discarded, since closing a socket
    /// with unread bytes would lose the refusal.
    case refused
    case closed
  }

  /// One direction: bytes that were read and not written yet. Nothing is read while there are some.
  private struct Flow {
    var pending: [UInt8] = []
    /// Whether the source has ended, and whether the sink was told.
    var (hasEnded, isShut) = (false, false)
  }

  let number: Int
  /// The monotonic time in ns at which `expire` is due.
  private(set) var deadline: UInt64
  private let client: Int32
  private var server: Int32 = -1
  private let routes: ProxyRoutes
  private let options: ProxyOptions
  private var stage = Stage.request
  /// The bytes that the client sent before there was a server.
  private var input: [UInt8] = []
  private var toServer = Flow()
  private var toClient = Flow()
  private var forbidden: ProxyHost?
  private var lookup: ProxyHost?

  init(number: Int, client: Int32, routes: ProxyRoutes, options: ProxyOptions, now: UInt64) {
    self.number = number
    self.client = client
    self.routes = routes
    self.options = options
    deadline = now + options.setupTimeout.nanoseconds
  }

  var isClosed: Bool { if case .closed = stage { true } else { false } }

  /// A host to resolve; given once.
  func takeLookup() -> ProxyHost? {
    defer { lookup = nil }
    return lookup
  }

  /// The host that was just refused; given once.
  func takeForbidden() -> ProxyHost? {
    defer { forbidden = nil }
    return forbidden
  }

  /// The client's and the server's entry for `poll`.
  var interests: [pollfd] {
    var (client, server) = (0, 0)
    switch stage {
    case .request: client = Int(POLLIN)
    case .resolving, .closed: break
    case .connecting: server = Int(POLLOUT)
    case .hello, .refused: client = Int(toClient.pending.isEmpty ? POLLIN : POLLIN | POLLOUT)
    case .open:
      if toServer.pending.isEmpty, !toServer.hasEnded { client |= Int(POLLIN) }
      if toClient.pending.isEmpty, !toClient.hasEnded { server |= Int(POLLIN) }
      if !toServer.pending.isEmpty { server |= Int(POLLOUT) }
      if !toClient.pending.isEmpty { client |= Int(POLLOUT) }
    }
    // A socket of which nothing is wanted is left out: it would report its end without pause.
    return [
      pollfd(fd: client == 0 ? -1 : self.client, events: Int16(client), revents: 0),
      pollfd(fd: server == 0 ? -1 : self.server, events: Int16(server), revents: 0),
    ]
  }

  /// Does what the sockets permit.
  func advance(now: UInt64, through buffer: UnsafeMutableRawBufferPointer) {
    switch stage {
    case .request:
      guard readInput(through: buffer) else { return close() }
      readRequest(now: now)
    case .hello(let host):
      guard flush(&toClient, to: client), readInput(through: buffer) else { return close() }
      readHello(of: host, now: now)
    case .connecting(let host, let next):
      // Only the server's socket is watched in this stage.
      let code = Socket.pendingError(server)
      code == 0 ? open(host, now: now) : connect(to: next, of: host, after: code, now: now)
    case .open: relay(now: now, through: buffer)
    case .refused:
      guard flush(&toClient, to: client), readInput(through: buffer) else { return close() }
      input = []
      if toClient.pending.isEmpty, !toClient.isShut {
        Socket.shutdownWriting(client)
        toClient.isShut = true
      }
    case .resolving, .closed: break
    }
  }

  /// Ends what has taken too long.
  func expire(now: UInt64) {
    switch stage {
    case .request: refuse(.silent, now: now)
    case .resolving(let host), .connecting(let host?, _): refuse(.late(host), now: now)
    default: close()
    }
  }

  func close() {
    guard !isClosed else { return }
    stage = .closed
    Socket.close(client)
    if server >= 0 { Socket.close(server) }
    server = -1
  }

  func refuse(_ refusal: ProxyRefusal, now: UInt64) {
    forbidden = refusal.forbiddenHost
    refuse(with: refusal.reply, now: now)
  }

  private func refuse(with reply: [UInt8], now: UInt64) {
    if server >= 0 { Socket.close(server) }
    server = -1
    stage = .refused
    input = []
    toClient.pending = reply
    deadline = now + min(options.setupTimeout, .seconds(2)).nanoseconds
  }

  // MARK: Setup

  private func readRequest(now: UInt64) {
    // A client that speaks TLS at once believes to be at the service: by a file of hosts, say.
    if input.first == 0x16 { return readServerName(now: now) }
    if let first = input.first, !(UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(first) {
      return refuse(.malformed, now: now)
    }
    guard let end = input.firstRange(of: [0x0D, 0x0A, 0x0D, 0x0A] as [UInt8]),
      end.upperBound <= ConnectRequest.limit
    else {
      let ending: [UInt8] = [0x0A, 0x0A]
      if input.count > ConnectRequest.limit {
        refuse(.tooLong, now: now)
      } else if input.firstRange(of: ending) != nil {
        // Without carriage returns the head would end only by the time limit.
        refuse(.malformed, now: now)
      }
      return
    }
    do throws(ProxyRefusal) {
      let request = try ConnectRequest(input[..<end.lowerBound])
      input.removeFirst(end.upperBound)
      switch try routes.route(request) {
      case .publicHost(let host):
        toClient.pending = Self.established
        stage = .hello(host)
        readHello(of: host, now: now)
      case .standIn(let address):
        connect(to: [address], of: request.host, after: 0, now: now)
      case .internet:
        (lookup, stage) = (request.host, .resolving(request.host))
      }
    } catch {
      refuse(error, now: now)
    }
  }

  /// Continues with a client that has sent no request, but names the host by TLS (SNI).
  private func readServerName(now: UInt64) {
    guard !isPartial(input) else { return }
    guard let name = input.withUnsafeBytes({ ClientHello.serverName($0) })?.lowercased(),
      let host = PublicHost.named(name)
    else { return refuse(with: Self.unrecognizedName, now: now) }
    readHello(of: host, now: now)
  }

  /// The alert of TLS in its record (RFC 8446, section 6; RFC 6066, section 3).
  private static let unrecognizedName: [UInt8] = [21, 3, 3, 0, 2, 2, 112]

  private static let established = Array("HTTP/1.1 200 Connection established\r\n\r\n".utf8)

  private func readHello(of host: PublicHost, now: UInt64) {
    guard !isPartial(input) else { return }
    let hello = input.withUnsafeBytes { ClientHello($0) }
    let listeners = host.listeners
    let listener = hello == .offersHTTP2 ? listeners.http2 : listeners.http1
    connect(to: [routes.address(listener)], of: nil, after: 0, now: now)
  }

  /// Whether a client's first message of TLS is incomplete.
  private func isPartial(_ input: [UInt8]) -> Bool {
    input.count < ClientHello.maxSize && input.withUnsafeBytes { ClientHello($0) == .partial }
  }

  /// Continues with the addresses of an allowed host.
  func didResolve(_ answer: Result<[Socket.Address], Socket.LookupFailure>, now: UInt64) {
    guard case .resolving(let host) = stage else { return }
    switch answer {
    case .failure(let failure): refuse(.unreachable(host, failure.reason), now: now)
    case .success(let addresses):
      // A private address counts only if it was itself allowed: names are anybody's to point.
      let isAddress = if case .address = host { true } else { false }
      let allowed = addresses.filter {
        isAddress || IPAddress(bytes: $0.host)?.isPublic == true
      }
      guard !allowed.isEmpty else {
        return refuse(.unreachable(host, "its address is not public"), now: now)
      }
      connect(to: allowed[...], of: host, after: 0, now: now)
    }
  }

  /// Starts to connect to the first of these addresses.
  ///
  /// - Parameters:
  ///   - host: The host that the client was not told of yet; `nil` when it believes to be connected.
  ///   - error: The reason for which the address before these failed.
  private func connect(
    to addresses: ArraySlice<Socket.Address>, of host: ProxyHost?, after error: Int32, now: UInt64
  ) {
    if server >= 0 { Socket.close(server) }
    server = -1
    guard let address = addresses.first else {
      if let host { return refuse(.unreachable(host, String(cString: strerror(error))), now: now) }
      Socket.setReset(client)
      return close()
    }
    let next = addresses.dropFirst()
    guard let socket = Socket.make(family: address.family) else {
      return connect(to: next, of: host, after: errno, now: now)
    }
    server = socket
    Socket.setNoDelay(socket)
    let code = Socket.connect(socket, to: address)
    switch code {
    case 0: open(host, now: now)
    case EINPROGRESS: stage = .connecting(host, next: next)
    default: connect(to: next, of: host, after: code, now: now)
    }
  }

  private func open(_ host: ProxyHost?, now: UInt64) {
    if host != nil { toClient.pending = Self.established }
    (toServer.pending, input) = (input, [])
    stage = .open
    deadline = now + options.idleTimeout.nanoseconds
  }

  // MARK: Bytes

  /// Reads what the client sent, once.
  ///
  /// - Returns: Whether the connection lives.
  private func readInput(through buffer: UnsafeMutableRawBufferPointer) -> Bool {
    let count = recv(client, buffer.baseAddress, ConnectRequest.limit, 0)
    guard count > 0 else { return count < 0 && Self.isTemporary(errno) }
    input += buffer[..<count]
    return true
  }

  private func relay(now: UInt64, through buffer: UnsafeMutableRawBufferPointer) {
    guard move(&toServer, from: client, to: server, through: buffer),
      move(&toClient, from: server, to: client, through: buffer)
    else {
      // An abrupt end at one side, such as a fault, is one at the other.
      Socket.setReset(client)
      Socket.setReset(server)
      return close()
    }
    if toServer.isShut, toClient.isShut { return close() }
    // Once a side has ended, the other has little time to do so.
    let isEnding = toServer.isShut || toClient.isShut
    deadline = now + (isEnding ? options.setupTimeout : options.idleTimeout).nanoseconds
  }

  /// Moves the available bytes of one direction.
  ///
  /// - Returns: `false` when a socket has failed.
  private func move(
    _ flow: inout Flow, from source: Int32, to sink: Int32,
    through buffer: UnsafeMutableRawBufferPointer
  ) -> Bool {
    guard flush(&flow, to: sink) else { return false }
    if flow.pending.isEmpty, !flow.hasEnded {
      let count = recv(source, buffer.baseAddress, buffer.count, 0)
      if count > 0 {
        flow.pending += buffer[..<count]
        guard flush(&flow, to: sink) else { return false }
      } else if count == 0 {
        flow.hasEnded = true
      } else if !Self.isTemporary(errno) {
        return false
      }
    }
    if flow.hasEnded, flow.pending.isEmpty, !flow.isShut {
      Socket.shutdownWriting(sink)
      flow.isShut = true
    }
    return true
  }

  private func flush(_ flow: inout Flow, to sink: Int32) -> Bool {
    guard !flow.pending.isEmpty else { return true }
    let count = flow.pending.withUnsafeBytes { send(sink, $0.baseAddress, $0.count, 0) }
    guard count >= 0 else { return Self.isTemporary(errno) }
    flow.pending.removeFirst(count)
    return true
  }

  private static func isTemporary(_ code: Int32) -> Bool {
    code == EAGAIN || code == EWOULDBLOCK || code == EINTR
  }
}
