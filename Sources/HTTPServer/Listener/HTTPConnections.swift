import Synchronization

/// The open connections of one listener, or of several that share one budget.
///
/// Sockets are only used under the table's lock: a socket is closed only after `remove` has
/// returned, so its number cannot have been reused in the meantime.
package final class HTTPConnections: Sendable {
  private struct Content {
    var connections: [ObjectIdentifier: Connection] = [:]
    var counts: [ClientNetwork: Int] = [:]
  }

  private let content = Mutex(Content())

  package init() {}

  /// The present number of connections.
  package var count: Int { content.withLock { $0.connections.count } }

  func add(_ connection: Connection) {
    content.withLock { content in
      content.connections[ObjectIdentifier(connection)] = connection
      if let network = connection.network { content.counts[network, default: 0] += 1 }
    }
  }

  func remove(_ connection: Connection) {
    content.withLock { content in
      guard content.connections.removeValue(forKey: ObjectIdentifier(connection)) != nil,
        let network = connection.network, let count = content.counts[network]
      else { return }
      content.counts[network] = count > 1 ? count - 1 : nil
    }
  }

  /// Sets whether a connection is between two owners of its socket.
  func setInTransit(_ isInTransit: Bool, _ connection: Connection) {
    content.withLock { _ in connection.isInTransit.store(isInTransit, ordering: .relaxed) }
  }

  /// Makes the server of a connection see its end, unless it has already ended.
  func cut(_ connection: Connection) {
    content.withLock { content in
      if content.connections[ObjectIdentifier(connection)] != nil { connection.cut() }
    }
  }

  /// The number of connections of a network.
  func count(of network: ClientNetwork) -> Int { content.withLock { $0.counts[network] ?? 0 } }

  /// Calls `body` for every connection of a listener; it may use the socket.
  func visit(_ engine: Engine, _ body: (Connection) -> Void) {
    content.withLock { content in
      for connection in content.connections.values where connection.engine === engine {
        body(connection)
      }
    }
  }

  /// The present connections of a listener, for work outside of the lock; their sockets may be
  /// closed.
  func all(of engine: Engine) -> [Connection] {
    content.withLock { $0.connections.values.filter { $0.engine === engine } }
  }

  /// Cuts connections without a request in progress to make room for a new one: those of the
  /// network with the most, which can spare them best, longest without a complete request first.
  /// Those of trusted proxies are cut only if there are no others. Several at a time, because
  /// finding them takes a scan of all.
  func makeRoom(for newcomer: Connection?) {
    content.withLock { content in
      var candidates = content.connections.values.filter {
        $0 !== newcomer && $0.serving.load(ordering: .relaxed) == 0
          && !$0.isEvicted.load(ordering: .relaxed) && !$0.isInTransit.load(ordering: .relaxed)
      }
      let direct = candidates.filter { !$0.isOfProxy }
      if !direct.isEmpty { candidates = direct }
      var counts: [ClientNetwork?: Int] = [:]
      for connection in candidates { counts[connection.network, default: 0] += 1 }
      guard let most = counts.max(by: { $0.value < $1.value }) else { return }
      let leaving = candidates.filter { $0.network == most.key }
        .sorted { $0.idleSince.load(ordering: .relaxed) < $1.idleSince.load(ordering: .relaxed) }
      for connection in leaving.prefix(max(1, most.value / 32)) {
        connection.isEvicted.store(true, ordering: .relaxed)
        connection.cut()
      }
    }
  }
}
