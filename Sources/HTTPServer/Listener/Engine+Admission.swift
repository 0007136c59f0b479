import CMicrohttpd  // brings the socket types' members along
import HTTP2
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

// Who may have a connection, who has to give one up, and who serves it. Called by the acceptor.
extension Engine {
  /// Connections beyond `maxConnections` that may be there for the moment it takes to close others.
  var hardLimit: Int {
    let limit = max(1, configuration.maxConnections)
    return limit + limit / 8 + 8
  }

  /// Whether a connection can be accepted now.
  var hasRoom: Bool { connections.count < hardLimit }

  /// Takes a connection in, or closes it where its address has as many as it may.
  func admit(_ socket: Int32, _ peer: SocketAddress) -> Connection? {
    let isOfProxy = configuration.trustedProxies.contains(peer.host)
    if configuration.maxConnectionsPerAddress > 0, let network = ClientNetwork(peer),
      configuration.limitsLoopback || !network.isLoopback, !isOfProxy,
      connections.count(of: network) >= configuration.maxConnectionsPerAddress
    {
      Socket.close(socket)
      return nil
    }
    let now = configuration.clock.now()
    // The hello of a TLS client is a part of its first request: it begins at once.
    let limit =
      choosesProtocol
      ? min(configuration.idleTimeout, configuration.requestReadTimeout) : configuration.idleTimeout
    let connection = Connection(
      engine: self, socket: socket, peer: peer, isOfProxy: isOfProxy,
      deadline: HTTPClock.deadline(limit, from: now), now: now)
    connections.add(connection)
    if let cut = configuration.observer?.connectionOpened(connection.number) {
      if cut == .reset {
        var linger = linger(l_onoff: 1, l_linger: 0)
        _ = setsockopt(
          socket, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
      }
      close(connection)
      return nil
    }
    if connections.count > configuration.maxConnections { connections.makeRoom(for: connection) }
    return connection
  }

  /// Closes a connection that nobody serves.
  func close(_ connection: Connection) {
    forget(connection)
    Socket.close(connection.socket)
  }

  /// A connection has ended; its socket is closed next.
  func forget(_ connection: Connection) {
    connections.remove(connection)
    configuration.observer?.connectionClosed(connection.number)
  }

  /// Gives a connection to libmicrohttpd.
  func serveHTTP1(_ connection: Connection) {
    guard let daemon = takeDaemon() else { return close(connection) }
    connection.daemon = daemon
    connections.setInTransit(true, connection)
    inTransit.withLock { $0[connection.socket] = connection }
    guard !daemon.serve(connection) else { return }
    inTransit.withLock { $0[connection.socket] = nil }
    daemon.openConnections.subtract(1, ordering: .sequentiallyConsistent)
    forget(connection)
  }

  /// Gives a connection to the HTTP/2 server.
  func serveHTTP2(_ connection: Connection) {
    guard let http2 else { return close(connection) }
    http2.serve(connection)
  }
}
