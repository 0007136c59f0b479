package import Foundation
package import HubCore
import SQLDatabase
import Synchronization

/// A process that works on a database, as others see it.
package struct StoreNode: Hashable, Sendable {
  /// The id that the database has assigned; a process that returns after its leases have ended gets
  /// another.
  package var id: Int64 = 0
  /// Usually the machine's host name.
  package var name: String
  /// The address on which it listens; empty when it does not.
  package var address = ""
  package var version = ""
  package var startedAt = Date.distantPast
  /// Seconds since its last heartbeat, by the clock of the database: for display, and for callers
  /// that cannot watch the node for a while.
  package var silence: TimeInterval = 0
  /// After so many seconds of silence others take over its work; heartbeats are five times as
  /// frequent.
  package var lease: TimeInterval
  /// Whether another node has seen no heartbeat for a lease. It does not return under its id.
  package var isDead = false

  package init(
    name: String, address: String = "", version: String = "",
    lease: TimeInterval = Self.usualLease
  ) {
    self.name = name
    self.address = address
    self.version = version
    self.lease = lease
  }

  package static let usualLease: TimeInterval = 10
  /// A quick estimate: where no other node is left to declare it dead, its silence must do. See
  /// ``PostgresHubStore/livingNodes()``.
  package var isAlive: Bool { !isDead && silence < lease }
}

/// This process as a node: sends a heartbeat to the database every two seconds, or five times in
/// another lease, and watches which of the others are alive. See ``NodeLease`` for the rules.
final class NodeHeart: Sendable {
  private struct State {
    var node: StoreNode
    var isStopping = false
    var lease: NodeLease
    /// Set when a newer node has changed the database so that this one must not use it: its
    /// version.
    var newerVersion: Int?
  }

  private let state: Mutex<State>
  private let beats = JobQueue<PostgresWork>()
  private let engine: PostgresEngine
  /// The clock of this machine, whose time of day is not used here.
  private let clock = HubClock.system
  private let beating = Mutex<Task<Void, Never>?>(nil)

  let lease: Duration

  init(_ node: StoreNode, engine: PostgresEngine) {
    state = Mutex(State(node: node, lease: NodeLease(lease: node.lease)))
    lease = .seconds(node.lease)
    self.engine = engine
  }

  deinit {
    beating.withLock { $0 }?.cancel()
    beats.closeWithoutWaiting()
  }

  /// Registers the node and begins its heartbeats. They have a connection of their own, so that
  /// they do not wait for other work.
  func start() async throws {
    let shared = engine.shared
    try await beats.startThread(
      named: "hub store heartbeat", batch: 1,
      // A heartbeat that waits for half a lease is better retried on another connection.
      open: { [lease] in
        let answerTime = min(lease / 2, shared.options.answerTime ?? lease / 2)
        return try PostgresSession(
          shared: shared, role: .writing, lane: 0, answerTime: answerTime)
      },
      work: { works, session in for work in works { session.perform(work) } },
      end: { $0.connection.close() })
    try await beat()
    // Above pushes and requests in priority: when all cores are busy, its lease would end behind
    // them.
    let task = Task(priority: .high) { [weak self, clock, interval = lease / 5] in
      while !Task.isCancelled {
        do { try await clock.sleep(interval) } catch { return }
        // A failure is visible in the store's condition; the next heartbeat is another attempt.
        try? await self?.beat()
      }
    }
    beating.withLock { $0 = task }
  }

  /// Sends a heartbeat, with its findings about other nodes and the clock.
  func beat() async throws {
    let known: StoreNode? = state.withLock { state in
      guard !state.isStopping else { return nil }
      var node = state.node
      node.id = state.lease.id
      return node
    }
    guard let node = known else { return }
    let (asked, clock) = (clock.steady(), clock)
    let version = engine.shared.version
    let beat = try await perform { [weak self] session in
      let newer = try PostgresSchema.versionBeyond(version, session.connection)
      self?.state.withLock { $0.newerVersion = newer }
      if let newer { throw StoreError.newerSchema(found: newer, known: version) }
      // A node that joins while the master key is replaced is either seen by the process that
      // replaces it, or sees the new one.
      let beat = try NodeTable(session.connection).beat(node, keys: session.sealing.keys(), clock) {
        _ = try session.sealingKey(session.sql.dialect.sharingRows)
      }
      if let step = self?.state.withLock({ $0.lease.step(in: beat.reading, as: beat.id) }) {
        // Of several nodes that see the same clock step, one records it.
        let told = beat.reading.steps
        try session.execute(
          "UPDATE store_state SET clock_steps = ?1 WHERE clock_steps = ?2", told + step, told)
      }
      return beat
    }
    let dead = state.withLock {
      $0.lease.heard(as: beat.id, asked: asked, beat.reading, beside: beat.peers)
    }
    if !dead.isEmpty { try await perform { try NodeTable($0.connection).note(dead: dead) } }
  }

  private func perform<Value: Sendable>(
    _ body: @escaping @Sendable (PostgresSession) throws -> Value
  ) async throws -> Value {
    try await engine.perform(.writing, on: beats, ifUnclear: .again, body)
  }

  /// Leaves: others take over this node's work.
  func stop() async {
    let id = state.withLock { state in
      state.isStopping = true
      state.lease.end()
      return state.lease.id
    }
    beating.withLock { $0 }?.cancel()
    _ = try? await perform { session in
      try NodeTable(session.connection).release(id)
      try session.connection.change("DELETE FROM node WHERE id = ?1", id)
    }
    await beats.close()
  }

  /// Its id, whether or not the database has received a heartbeat in time.
  var id: Int64 { state.withLock { $0.lease.id } }

  var isBeating: Bool { state.withLock { !$0.isStopping } }

  /// The database version that this node must not use; usually `nil`.
  var newerVersion: Int? { state.withLock { $0.newerVersion } }

  /// `nil` when its leases may have ended, or it does not know the time yet: it must not claim
  /// anything.
  var livingID: Int64? {
    state.withLock { state in
      let mayClaim = state.lease.mayClaim(at: clock.steady()) && state.newerVersion == nil
      return mayClaim ? state.lease.id : nil
    }
  }

  /// The reason that this node is unhealthy, for health checks; `nil` while all is well.
  var trouble: String? {
    state.withLock { state in
      guard !state.isStopping else { return nil }
      if let newer = state.newerVersion {
        return "a newer belfry has brought the database to schema version \(newer), which this one "
          + "does not know; update this node. Until then other nodes do its work"
      }
      let now = clock.steady()
      guard !state.lease.isHeld(at: now) else { return nil }
      let silence = state.lease.silence(at: now).map { "\(Int($0))" } ?? "some"
      return "the leases of this node have ended, because the database did not hear of it for "
        + "\(silence) seconds; other nodes go on with its work"
    }
  }

  /// For tests: behaves as if the last heartbeat were this much older.
  func loseTime(_ duration: Duration) {
    state.withLock { $0.lease.loseTime(duration / .seconds(1)) }
  }

  /// The database's time of day.
  var now: Date? { state.withLock { $0.lease.now(at: clock.steady()) } }
  /// Whether ``steady`` agrees with that of the other nodes.
  var isSettled: Bool { state.withLock { $0.lease.isSettled } }
  /// The monotonic time that nodes share.
  var steady: Date? { state.withLock { $0.lease.steady(at: clock.steady()) } }

  /// See ``NodeLease/lostClaims(at:)``.
  var lostClaims: [Int64] { state.withLock { $0.lease.lostClaims(at: clock.steady()) } }
  func lose(claim: Int64) { state.withLock { $0.lease.lose(claim: claim, at: clock.steady()) } }
  /// See ``NodeLease/told(as:)``.
  func told(as id: Int64) -> Set<LaneFinding> { state.withLock { $0.lease.told(as: id) } }
  func note(told findings: Set<LaneFinding>, as id: Int64) {
    state.withLock { $0.lease.note(told: findings, as: id) }
  }

  func setAddress(_ address: String) { state.withLock { $0.node.address = address } }
}

/// The processes that work on a database.
struct NodeTable {
  let connection: PostgresConnection

  init(_ connection: PostgresConnection) { self.connection = connection }

  /// True for the row of a node with this alias that no other has declared dead.
  static func isAlive(_ node: String) -> String { "\(node).is_dead = 0" }

  /// Records a node's heartbeat; one that has been declared dead gets a new id.
  /// - Parameters:
  ///   - keys: The ids of the master keys that it has.
  ///   - clock: The clock of this machine.
  ///   - mayJoin: Throws when it must not get an id.
  /// - Returns: Its number, the database's clock, and the other nodes that live.
  fileprivate func beat(
    _ node: StoreNode, keys: [String], _ clock: HubClock, mayJoin: () throws -> Void
  ) throws -> (id: Int64, reading: NodeLease.Reading, peers: [NodeLease.Peer]) {
    let id = try renew(node, keys: keys) ?? join(node, keys: keys, mayJoin)
    let peers = try peers().filter { $0.id != id }
    let before = clock.steady()
    let row = try connection.statement(
      "SELECT \(PostgresConnection.databaseTime), clock_steps FROM store_state")
    guard try row.step() else { throw StoreError.corrupt("store_state is empty") }
    // The clock was read at some time between the request and the reply.
    let taken = clock.steady().timeIntervalSince(before)
    let reading = NodeLease.Reading(
      local: before.addingTimeInterval(taken / 2), uncertainty: taken,
      time: Date(milliseconds: row.integer(0)), steps: row.integer(1))
    return (id, reading, peers)
  }

  /// - Returns: `nil` when the node is dead, whether or not its work has been taken over.
  private func renew(_ node: StoreNode, keys: [String]) throws -> Int64? {
    let count = try connection.change(
      """
      UPDATE node SET beats = beats + 1, heartbeat = \(PostgresConnection.databaseTime), address = ?2, keys = ?3
      WHERE id = ?1 AND \(Self.isAlive("node"))
      """, node.id, node.address, keys.joined(separator: " "))
    return count > 0 ? node.id : nil
  }

  private func join(
    _ node: StoreNode, keys: [String], _ mayJoin: () throws -> Void
  ) throws -> Int64 {
    try mayJoin()
    try connection.change("DELETE FROM node WHERE id = ?1", node.id)
    // Nodes that have crashed remain listed for a day.
    try connection.change(
      "DELETE FROM node WHERE is_dead = 1 AND heartbeat < \(PostgresConnection.databaseTime) - 86400000"
    )
    let row = try connection.statement(
      """
      INSERT INTO node (name, address, version, started_at, heartbeat, keys, lease)
      VALUES (?1, ?2, ?3, \(PostgresConnection.databaseTime), \(PostgresConnection.databaseTime), ?4, ?5) RETURNING id
      """, node.name, node.address, node.version, keys.joined(separator: " "),
      Int64(node.lease * 1000))
    guard try row.step() else { throw StoreError.corrupt("a node gets no number") }
    return row.integer(0)
  }

  /// The nodes that no other has declared dead.
  fileprivate func peers() throws -> [NodeLease.Peer] {
    try connection.rows(
      "SELECT id, beats, heartbeat, lease FROM node WHERE \(Self.isAlive("node"))"
    ) {
      NodeLease.Peer(
        id: $0.integer(0), beats: $0.integer(1), heartbeat: Date(milliseconds: $0.integer(2)),
        lease: Double($0.integer(3)) / 1000)
    }
  }

  /// Declares peers dead, except those that have sent a heartbeat meanwhile.
  fileprivate func note(dead peers: [NodeLease.Peer]) throws {
    for peer in peers {
      try connection.change(
        "UPDATE node SET is_dead = 1 WHERE id = ?1 AND beats = ?2", peer.id, peer.beats)
    }
  }

  /// Releases the work of a node.
  func release(_ node: Int64) throws {
    try connection.change("UPDATE work SET owner = NULL WHERE owner = ?1 AND is_done = 0", node)
    try connection.change("UPDATE job SET owner = NULL WHERE owner = ?1 AND ended_at IS NULL", node)
  }
}

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
    let heart = NodeHeart(node, engine: engine)
    try await heart.start()
    engine.shared.heart.withLock { $0 = heart }
  }

  /// Publishes the address of this node for lists of nodes.
  package func publish(address: String) async throws {
    guard let heart else { return }
    heart.setAddress(address)
    try await heart.beat()
  }

  /// The clock that all nodes share; in a process that is not a node, the machine's.
  package var clock: HubClock {
    let (shared, machine) = (engine.shared, HubClock.system)
    return HubClock(
      now: { shared.heart.withLock { $0 }?.now ?? machine.now() },
      steady: { shared.heart.withLock { $0 }?.steady ?? machine.steady() }, sleep: machine.sleep)
  }

  /// `nil` in a process that is not a node.
  var heart: NodeHeart? { engine.shared.heart.withLock { $0 } }
}
