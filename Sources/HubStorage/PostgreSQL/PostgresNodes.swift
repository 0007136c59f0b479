package import Foundation
package import HubCore
import SQLDatabase
import Synchronization

/// A process that works on a database, as the others see it.
package struct StoreNode: Hashable, Sendable {
  /// The database's number for it; a process that comes back after its leases have ended has
  /// another.
  package var id: Int64 = 0
  /// The machine's name, as a rule.
  package var name: String
  /// Where it listens; empty when it does not.
  package var address = ""
  package var version = ""
  package var startedAt = Date.distantPast
  /// How far its last heartbeat is away, in seconds, by the clock of the database: for people, and
  /// for those who have no time to watch it.
  package var silence: TimeInterval = 0
  /// After so many seconds of silence others take over what it has; it beats five times as often.
  package var lease: TimeInterval
  /// Another node has seen no heartbeat of it for that long: it does not come back under its number.
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
  /// At a glance: where no other node is left to tell that it is dead, its silence has to. See
  /// ``PostgresHubStore/livingNodes()``.
  package var isAlive: Bool { !isDead && silence < lease }
}

/// This process as a node: tells the database every two seconds that it lives, or five times in
/// another lease, and looks which of the others do. See ``NodeLease`` for how that is judged.
final class NodeHeart: Sendable {
  private struct State {
    var node: StoreNode
    var isStopping = false
    var lease: NodeLease
    /// A newer node has changed the database so that this one must not work with it: its version.
    var newerVersion: Int?
  }

  private let state: Mutex<State>
  private let beats = JobQueue<PostgresWork>()
  private let engine: PostgresEngine
  /// Of this machine. Its time of day counts for nothing here.
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

  /// Makes the node known and keeps telling of it. It has a connection of its own, so that a
  /// heartbeat does not wait for other work.
  func start() async throws {
    let shared = engine.shared
    try await beats.startThread(
      named: "hub store heartbeat", batch: 1,
      // A heartbeat that waits for half a lease is better tried again on another connection.
      open: { [lease] in
        let answerTime = min(lease / 2, shared.options.answerTime ?? lease / 2)
        return try PostgresSession(
          shared: shared, role: .writing, lane: 0, answerTime: answerTime)
      },
      work: { works, session in for work in works { session.perform(work) } },
      end: { $0.connection.close() })
    try await beat()
    // Ahead of pushes and requests: where all cores are busy, its lease would end behind them.
    let task = Task(priority: .high) { [weak self, clock, interval = lease / 5] in
      while !Task.isCancelled {
        do { try await clock.sleep(interval) } catch { return }
        // What fails shows in the store's condition; the next beat is another try.
        try? await self?.beat()
      }
    }
    beating.withLock { $0 = task }
  }

  /// Tells the database now that this node lives, and what it finds about others and the clock.
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
      // A node that comes while the master key is replaced is seen by who replaces it, or sees the
      // new one.
      let beat = try session.connection.beat(node, keys: session.sealing.keys(), clock) {
        _ = try session.sealingKey(session.sql.dialect.sharingRows)
      }
      if let step = self?.state.withLock({ $0.lease.step(in: beat.reading, as: beat.id) }) {
        // Of several nodes that see the same step one tells of it.
        let told = beat.reading.steps
        try session.execute(
          "UPDATE store_state SET clock_steps = ?1 WHERE clock_steps = ?2", told + step, told)
      }
      return beat
    }
    let dead = state.withLock {
      $0.lease.heard(as: beat.id, asked: asked, beat.reading, beside: beat.peers)
    }
    if !dead.isEmpty { try await perform { try $0.connection.note(dead: dead) } }
  }

  private func perform<Value: Sendable>(
    _ body: @escaping @Sendable (PostgresSession) throws -> Value
  ) async throws -> Value {
    try await engine.perform(.writing, on: beats, ifUnclear: .again, body)
  }

  /// Leaves: others take what this node had.
  func stop() async {
    let id = state.withLock { state in
      state.isStopping = true
      state.lease.end()
      return state.lease.id
    }
    beating.withLock { $0 }?.cancel()
    _ = try? await perform { session in
      try session.connection.release(id)
      try session.connection.change("DELETE FROM node WHERE id = ?1", id)
    }
    await beats.close()
  }

  /// Its number, whether or not the database has heard of it in time.
  var id: Int64 { state.withLock { $0.lease.id } }

  var isBeating: Bool { state.withLock { !$0.isStopping } }

  /// The version of the database that this node must not work with; `nil` as a rule.
  var newerVersion: Int? { state.withLock { $0.newerVersion } }

  /// `nil` when its leases may have ended, or it does not know the time yet: it must not claim
  /// anything.
  var livingID: Int64? {
    state.withLock { state in
      let mayClaim = state.lease.mayClaim(at: clock.steady()) && state.newerVersion == nil
      return mayClaim ? state.lease.id : nil
    }
  }

  /// What those who ask after the node's health are told; `nil` while all is well.
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

  /// For tests: as if the database had last heard of it so much longer ago.
  func loseTime(_ duration: Duration) {
    state.withLock { $0.lease.loseTime(duration / .seconds(1)) }
  }

  /// The database's time of day.
  var now: Date? { state.withLock { $0.lease.now(at: clock.steady()) } }
  /// Whether ``steady`` is that of the other nodes.
  var isSettled: Bool { state.withLock { $0.lease.isSettled } }
  /// The time that nodes share and nobody sets.
  var steady: Date? { state.withLock { $0.lease.steady(at: clock.steady()) } }

  /// See ``NodeLease/lostClaims(at:)``.
  var lostClaims: [Int64] { state.withLock { $0.lease.lostClaims(at: clock.steady()) } }
  func lose(claim: Int64) { state.withLock { $0.lease.lose(claim: claim, at: clock.steady()) } }
  /// See ``NodeLease/told(as:)``.
  func told(as id: Int64) -> Set<LaneWord> { state.withLock { $0.lease.told(as: id) } }
  func note(told words: Set<LaneWord>, as id: Int64) {
    state.withLock { $0.lease.note(told: words, as: id) }
  }

  func setAddress(_ address: String) { state.withLock { $0.node.address = address } }
}

extension SQLConnection {
  /// True for the row of a node, called so, that no other has found dead.
  static func isAlive(_ node: String) -> String { "\(node).is_dead = 0" }

  /// Records a node's heartbeat; one that has been found dead gets a new number.
  /// - Parameters:
  ///   - keys: The ids of the master keys that it has.
  ///   - clock: Of this machine.
  ///   - mayJoin: Throws when it is to get no number.
  /// - Returns: Its number, the database's clock, and the other nodes that live.
  fileprivate func beat(
    _ node: StoreNode, keys: [String], _ clock: HubClock, mayJoin: () throws -> Void
  ) throws -> (id: Int64, reading: NodeLease.Reading, peers: [NodeLease.Peer]) {
    let id = try renew(node, keys: keys) ?? join(node, keys: keys, mayJoin)
    let peers = try peers().filter { $0.id != id }
    let before = clock.steady()
    let row = try statement("SELECT \(Self.databaseTime), clock_steps FROM store_state")
    guard try row.step() else { throw StoreError.corrupt("store_state is empty") }
    // The clock was read somewhere between the question and the answer.
    let taken = clock.steady().timeIntervalSince(before)
    let reading = NodeLease.Reading(
      local: before.addingTimeInterval(taken / 2), uncertainty: taken,
      time: Date(milliseconds: row.integer(0)), steps: row.integer(1))
    return (id, reading, peers)
  }

  /// - Returns: `nil` when the node is dead, whether or not somebody has taken its work.
  private func renew(_ node: StoreNode, keys: [String]) throws -> Int64? {
    let count = try change(
      """
      UPDATE node SET beats = beats + 1, heartbeat = \(Self.databaseTime), address = ?2, keys = ?3
      WHERE id = ?1 AND \(Self.isAlive("node"))
      """, node.id, node.address, keys.joined(separator: " "))
    return count > 0 ? node.id : nil
  }

  private func join(
    _ node: StoreNode, keys: [String], _ mayJoin: () throws -> Void
  ) throws -> Int64 {
    try mayJoin()
    try change("DELETE FROM node WHERE id = ?1", node.id)
    // Those that have ended without an order are listed for a day.
    try change(
      "DELETE FROM node WHERE is_dead = 1 AND heartbeat < \(Self.databaseTime) - 86400000")
    let row = try statement(
      """
      INSERT INTO node (name, address, version, started_at, heartbeat, keys, lease)
      VALUES (?1, ?2, ?3, \(Self.databaseTime), \(Self.databaseTime), ?4, ?5) RETURNING id
      """, node.name, node.address, node.version, keys.joined(separator: " "),
      Int64(node.lease * 1000))
    guard try row.step() else { throw StoreError.corrupt("a node gets no number") }
    return row.integer(0)
  }

  /// The nodes that no other has found dead.
  fileprivate func peers() throws -> [NodeLease.Peer] {
    try rows("SELECT id, beats, heartbeat, lease FROM node WHERE \(Self.isAlive("node"))") {
      NodeLease.Peer(
        id: $0.integer(0), beats: $0.integer(1), heartbeat: Date(milliseconds: $0.integer(2)),
        lease: Double($0.integer(3)) / 1000)
    }
  }

  /// One that has told meanwhile that it lives stays alive.
  fileprivate func note(dead peers: [NodeLease.Peer]) throws {
    for peer in peers {
      try change("UPDATE node SET is_dead = 1 WHERE id = ?1 AND beats = ?2", peer.id, peer.beats)
    }
  }

  /// Gives back what a node has.
  func release(_ node: Int64) throws {
    try change("UPDATE work SET owner = NULL WHERE owner = ?1 AND is_done = 0", node)
    try change("UPDATE job SET owner = NULL WHERE owner = ?1 AND ended_at IS NULL", node)
  }
}

extension PostgresHubStore {
  /// The processes that work on the database, those that have ended without an order included, as
  /// long as they are remembered.
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

  /// The nodes that live, for who must not work beside one: watched until each has told so again, or
  /// been silent for its lease, which is noted.
  package func livingNodes() async throws -> [StoreNode] {
    let machine = HubClock.system
    var watch = NodeLease(lease: 0)
    var first: [Int64: Int64]?
    while true {
      let asked = machine.steady()
      let peers = try await read { try $0.connection.peers() }
      let dead = watch.look(at: peers, asked: asked, answered: machine.steady())
      if !dead.isEmpty { try await write(ifUnclear: .again) { try $0.connection.note(dead: dead) } }
      let before = first ?? Dictionary(uniqueKeysWithValues: peers.map { ($0.id, $0.beats) })
      first = before
      let isOpen = peers.contains { before[$0.id] == $0.beats && !dead.contains($0) }
      guard isOpen else { return try await nodes().filter { !$0.isDead } }
      try await machine.sleep(.milliseconds(200))
    }
  }

  /// Makes this process a node: it can claim work from now on.
  package func join(as node: StoreNode) async throws {
    let heart = NodeHeart(node, engine: engine)
    try await heart.start()
    engine.shared.heart.withLock { $0 = heart }
  }

  /// Where this node is reached, for those who list the nodes.
  package func publish(address: String) async throws {
    guard let heart else { return }
    heart.setAddress(address)
    try await heart.beat()
  }

  /// The clock that all nodes share; in a process that is no node, the machine's.
  package var clock: HubClock {
    let (shared, machine) = (engine.shared, HubClock.system)
    return HubClock(
      now: { shared.heart.withLock { $0 }?.now ?? machine.now() },
      steady: { shared.heart.withLock { $0 }?.steady ?? machine.steady() }, sleep: machine.sleep)
  }

  /// `nil` in a process that only looks or changes something.
  var heart: NodeHeart? { engine.shared.heart.withLock { $0 } }
}
