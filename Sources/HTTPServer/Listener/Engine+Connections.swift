import CMicrohttpd  // brings the socket types' members along
import Foundation
import HTTP2
import Synchronization

/// Admission, eviction and assignment of connections. Called by the acceptor.
extension Engine {
  /// The maximum number of connections, including those beyond `maxConnections` that exist briefly
  /// while others are being closed.
  var hardLimit: Int {
    let limit = max(1, configuration.maxConnections)
    return limit + limit / 8 + 8
  }

  /// Whether a connection can be accepted now.
  var hasRoom: Bool { connections.count < hardLimit }

  /// Registers a connection, or closes it if its address has reached the limit.
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
    // The hello of a TLS client counts as part of its first request, so its time limit starts at
    // once.
    let limit =
      choosesProtocol
      ? min(configuration.idleTimeout, configuration.requestReadTimeout) : configuration.idleTimeout
    let connection = Connection(
      engine: self, socket: socket, peer: peer, isOfProxy: isOfProxy,
      deadline: HTTPClock.deadline(limit, from: now), now: now)
    connections.add(connection)
    wakeWatchdog()
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

  /// Closes a connection that no server has.
  func close(_ connection: Connection) {
    forget(connection)
    Socket.close(connection.socket)
  }

  /// Unregisters a connection that has ended; its socket is closed next.
  func forget(_ connection: Connection) {
    connections.remove(connection)
    configuration.observer?.connectionClosed(connection.number)
  }

  /// Passes a connection to libmicrohttpd.
  func serveHTTP1(_ connection: Connection) {
    guard let daemon = takeDaemon() else { return close(connection) }
    connections.setInTransit(true, connection)
    inTransit.withLock { $0[connection.socket] = connection }
    daemon.serve(connection)
  }

  /// Unregisters a connection that libmicrohttpd has closed at once.
  func refused(_ connection: Connection, by daemon: Daemon) {
    // If the library had begun with it, `connectionChanged` has done all of this.
    guard connection.isInTransit.load(ordering: .relaxed) else { return }
    // A newer connection may have the number of its socket.
    inTransit.withLock { if $0[connection.socket] === connection { $0[connection.socket] = nil } }
    daemon.openConnections.subtract(1, ordering: .sequentiallyConsistent)
    forget(connection)
  }

  /// Passes a connection to the HTTP/2 server.
  func serveHTTP2(_ connection: Connection) {
    guard let http2 else { return close(connection) }
    http2.serve(connection)
  }
}
