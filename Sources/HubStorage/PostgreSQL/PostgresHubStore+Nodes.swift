import Foundation
package import HubCore
import SQLDatabase
import Synchronization

extension PostgresHubStore {
  /// The processes that work on the database, including crashed ones for as long as they are
  /// remembered.
  package func nodes() async throws -> [StoreNode] {
    try await read { session in
      try session.connection.rows(
        """
        SELECT id, name, address, version, started_at,
          abs(\(PostgresConnection.databaseTime) - heartbeat), lease, is_dead
        FROM node ORDER BY id
        """
      ) { row in
        var node = StoreNode(
          name: row.text(1), address: row.text(2), version: row.text(3),
          lease: Double(row.integer(6)) / 1000)
        node.id = row.integer(0)
        node.startedAt = Date(milliseconds: row.integer(4))
        node.silence = Double(row.integer(5)) / 1000
        node.isDead = row.integer(7) != 0
        return node
      }
    }
  }

  /// The living nodes, for operations that must not run beside one: watches each until it has sent
  /// another heartbeat, or been silent for its lease, which is recorded.
  package func livingNodes() async throws -> [StoreNode] {
    let machine = HubClock.system
    var watch = NodeLease(lease: 0)
    var first: [Int64: Int64]?
    while true {
      let asked = machine.steady()
      let peers = try await read { try NodeTable($0.connection).peers() }
      let dead = watch.look(at: peers, asked: asked, answered: machine.steady())
      if !dead.isEmpty {
        try await write(ifUnclear: .again) { try NodeTable($0.connection).note(dead: dead) }
      }
      let before = first ?? Dictionary(uniqueKeysWithValues: peers.map { ($0.id, $0.beats) })
      first = before
      let isOpen = peers.contains { before[$0.id] == $0.beats && !dead.contains($0) }
      guard isOpen else { return try await nodes().filter { !$0.isDead } }
      try await machine.sleep(.milliseconds(200))
    }
  }

  /// Makes this process a node, which can claim work from now on.
  package func join(as node: StoreNode) async throws {
    let heartbeat = NodeHeartbeat(node, engine: engine)
    try await heartbeat.start()
    engine.shared.heartbeat.withLock { $0 = heartbeat }
  }

  /// Publishes the address of this node for lists of nodes.
  package func publish(address: String) async throws {
    guard let heartbeat else { return }
    heartbeat.setAddress(address)
    try await heartbeat.beat()
  }

  /// The clock that all nodes share; in a process that is not a node, the machine's.
  package var clock: HubClock {
    let (shared, machine) = (engine.shared, HubClock.system)
    return HubClock(
      now: { shared.heartbeat.withLock { $0 }?.now ?? machine.now() },
      steady: { shared.heartbeat.withLock { $0 }?.steady ?? machine.steady() }, sleep: machine.sleep
    )
  }

  /// `nil` in a process that is not a node.
  var heartbeat: NodeHeartbeat? { engine.shared.heartbeat.withLock { $0 } }
}
