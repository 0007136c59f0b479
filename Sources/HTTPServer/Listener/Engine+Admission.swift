import CMicrohttpd
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

// Who may have a connection, and who has to give one up.
extension Engine {
  /// Asked about every new connection before it is made.
  static let peerConnects: MHD_AcceptPolicyCallback = { cls, address, _ in
    guard let engine = engine(cls), let address, engine.configuration.maxConnectionsPerAddress > 0,
      let network = SocketAddress(address).flatMap(ClientNetwork.init)
    else { return .YES }
    let configuration = engine.configuration
    if network.isLoopback && !configuration.limitsLoopback { return .YES }
    let isFull = engine.connections.count(of: network) >= configuration.maxConnectionsPerAddress
    return isFull ? .NO : .YES
  }

  /// Closes idle connections, those first that have been so for longest, when there may be no more
  /// and someone waits to connect.
  func makeRoom() {
    guard connections.count >= configuration.maxConnections, isSomeoneWaiting else { return }
    var idle: [(since: UInt64, id: ObjectIdentifier)] = []
    connections.visit { connection in
      if connection.isIdle {
        idle.append(
          (connection.idleDeadline.load(ordering: .relaxed), ObjectIdentifier(connection)))
      }
    }
    idle.sort { $0.since < $1.since }
    let leaving = Set(idle.prefix(max(1, configuration.maxConnections / 8)).map(\.id))
    connections.visit { connection in
      if leaving.contains(ObjectIdentifier(connection)), connection.isIdle { connection.cut() }
    }
  }

  private var isSomeoneWaiting: Bool {
    var entry = pollfd(fd: listeningSocket, events: Int16(POLLIN), revents: 0)
    return poll(&entry, 1, 0) > 0 && entry.revents & Int16(POLLIN) != 0
  }
}
