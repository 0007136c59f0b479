import Synchronization

/// The open connections of one listener, or of several that share one budget.
///
/// What is done with a socket is done under the table's lock: a socket is closed only after
/// `remove` has returned, so its number cannot have been given to someone else meanwhile.
package final class HTTPConnections: Sendable {
  private struct Content {
    var connections: [ObjectIdentifier: Connection] = [:]
    var counts: [ClientNetwork: Int] = [:]
  }

  private let content = Mutex(Content())

  package init() {}

  /// How many there are now.
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

  /// Says whether a connection is between two owners of its socket.
  func setInTransit(_ isInTransit: Bool, _ connection: Connection) {
    content.withLock { _ in connection.isInTransit.store(isInTransit, ordering: .relaxed) }
  }

  /// Makes who serves a connection see its end, unless it has ended already.
  func cut(_ connection: Connection) {
    content.withLock { content in
      if content.connections[ObjectIdentifier(connection)] != nil { connection.cut() }
    }
  }

  /// How many connections a network has.
  func count(of network: ClientNetwork) -> Int { content.withLock { $0.counts[network] ?? 0 } }

  /// Looks at every connection of a listener; its socket may be used in `body`.
  func visit(_ engine: Engine, _ body: (Connection) -> Void) {
    content.withLock { content in
      for connection in content.connections.values where connection.engine === engine {
        body(connection)
      }
    }
  }

  /// The connections of a listener at this moment, for work that must not happen under the lock;
  /// their sockets may be gone.
  func all(of engine: Engine) -> [Connection] {
    content.withLock { $0.connections.values.filter { $0.engine === engine } }
  }

  /// Cuts connections that have no request under way, so that a newcomer finds room: those of the
  /// network that has most, because it can spare them best, the longest without a whole request
  /// first. Those of trusted proxies only where there are no others. A few at a time, because to
  /// find them costs a look at all.
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
