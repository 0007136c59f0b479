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
  /// How long nothing was heard of it, in seconds, by the clock of the database.
  package var silence: TimeInterval = 0
  /// After so many seconds of silence others take over what it has; it beats five times as often.
  package var lease: TimeInterval

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
  package var isAlive: Bool { silence < lease }
}

/// This process as a node: tells the database every two seconds that it lives, or five times in
/// another lease.
///
/// The database's clock decides who lives; this machine's own is only used to measure how long ago
/// it was heard, in a way that setting the time does not change.
final class NodeHeart: Sendable {
  private struct State {
    var node: StoreNode
    var isStopping = false
    /// The last time that the database took note, measured before it was asked.
    var heardAt: ContinuousClock.Instant?
    /// How far the database's clock is ahead of this machine's, in seconds.
    var offset: TimeInterval = 0
    /// Claims whose answer was lost, and when: what they took was handed to nobody.
    var lostClaims: [Int64: ContinuousClock.Instant] = [:]
    /// A newer node has changed the database so that this one must not work with it: its version.
    var newerVersion: Int?
    /// What it has told others, and under which number.
    var told: (words: Set<LaneWord>, as: Int64) = ([], 0)
  }

  private let state: Mutex<State>
  private let beats = JobQueue<PostgresWork>()
  private let engine: PostgresEngine
  private let beating = Mutex<Task<Void, Never>?>(nil)

  let lease: Duration

  init(_ node: StoreNode, engine: PostgresEngine) {
    state = Mutex(State(node: node))
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
      open: { try PostgresSession(shared: shared, role: .writing, lane: 0) },
      work: { works, session in for work in works { session.perform(work) } },
      end: { $0.connection.close() })
    try await beat()
    // Ahead of pushes and requests: where all cores are busy, its lease would end behind them.
    let task = Task(priority: .high) { [weak self, interval = lease / 5] in
      while !Task.isCancelled {
        do { try await Task.sleep(for: interval) } catch { return }
        // What fails shows in the store's condition; the next beat is another try.
        try? await self?.beat()
      }
    }
    beating.withLock { $0 = task }
  }

  /// Tells the database now that this node lives.
  func beat() async throws {
    let node = state.withLock { $0.isStopping ? nil : $0.node }
    guard let node else { return }
    let asked = ContinuousClock.now
    let known = engine.shared.version
    let beat = try await engine.perform(.writing, on: beats, ifUnclear: .again) {
      [weak self] session in
      let newer = try PostgresSchema.versionBeyond(known, session.connection)
      self?.state.withLock { $0.newerVersion = newer }
      if let newer { throw StoreError.newerSchema(found: newer, known: known) }
      let before = Date()
      // A node that comes while the master key is replaced is seen by who replaces it, or sees the
      // new one.
      let beat = try session.connection.beat(node, keys: session.sealing.keys()) {
        _ = try session.sealingKey(session.sql.dialect.sharingRows)
      }
      // Its clock was read somewhere between the question and the answer.
      let taken = Date().timeIntervalSince(before)
      return (id: beat.id, offset: beat.at.timeIntervalSince(before) - taken / 2, taken: taken)
    }
    state.withLock { state in
      state.node.id = beat.id
      state.heardAt = asked
      // As exact as that was; time must not jump to and fro by what a network takes.
      if abs(beat.offset - state.offset) > max(0.1, beat.taken) { state.offset = beat.offset }
    }
  }

  /// Leaves: others take what this node had.
  func stop() async {
    let id = state.withLock { state in
      state.isStopping = true
      state.heardAt = nil
      return state.node.id
    }
    beating.withLock { $0 }?.cancel()
    _ = try? await engine.perform(.writing, on: beats, ifUnclear: .again) { session in
      try session.connection.release(id)
      try session.connection.change("DELETE FROM node WHERE id = ?1", id)
    }
    await beats.close()
  }

  /// Its number, whether or not the database has heard of it in time.
  var id: Int64 { state.withLock { $0.node.id } }

  var isBeating: Bool { state.withLock { !$0.isStopping } }

  /// The version of the database that this node must not work with; `nil` as a rule.
  var newerVersion: Int? { state.withLock { $0.newerVersion } }

  /// `nil` when its leases may have ended: it must not claim anything.
  var livingID: Int64? {
    state.withLock { state in
      guard let heard = state.heardAt, .now - heard < lease,
        state.newerVersion == nil
      else { return nil }
      return state.node.id
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
      let silence = state.heardAt.map { ContinuousClock.now - $0 }
      if let silence, silence < lease { return nil }
      return "the leases of this node have ended, because the database did not hear of it for "
        + "\(silence.map { "\($0.components.seconds)" } ?? "some") seconds; other nodes go on with "
        + "its work"
    }
  }

  /// For tests: as if the database had last heard of it so much longer ago.
  func loseTime(_ duration: Duration) {
    state.withLock { $0.heardAt = $0.heardAt.map { $0 - duration } }
  }

  /// How far the database's clock is ahead of this machine's, in seconds.
  var offset: TimeInterval { state.withLock { $0.offset } }

  /// For as long as a commit may still be under way somewhere; what was taken once more has
  /// another.
  var lostClaims: [Int64] {
    state.withLock { state in
      state.lostClaims = state.lostClaims.filter { .now - $0.value < .seconds(300) }
      return Array(state.lostClaims.keys)
    }
  }
  /// Nothing when the node has another number since.
  func told(as id: Int64) -> Set<LaneWord> {
    state.withLock { $0.told.as == id ? $0.told.words : [] }
  }
  func note(told words: Set<LaneWord>, as id: Int64) { state.withLock { $0.told = (words, id) } }
  func loseClaim(_ claim: Int64) { state.withLock { $0.lostClaims[claim] = .now } }

  func setAddress(_ address: String) { state.withLock { $0.node.address = address } }
}

extension SQLConnection {
  /// True for the row of a node, called so, that others count as alive.
  static func isAlive(_ node: String) -> String {
    "\(node).heartbeat > \(databaseTime) - \(node).lease"
  }

  /// Records a node's heartbeat; one whose lease has ended gets a new number.
  /// - Parameters:
  ///   - keys: The ids of the master keys that it has.
  ///   - mayJoin: Throws when it is to get no number.
  /// - Returns: Its number, and the database's time.
  fileprivate func beat(
    _ node: StoreNode, keys: [String], mayJoin: () throws -> Void
  ) throws -> (id: Int64, at: Date) {
    let keys = keys.joined(separator: " ")
    // Once its time is over its number stays dead, whether or not somebody has taken its work.
    do {
      let row = try statement(
        """
        UPDATE node SET heartbeat = \(Self.databaseTime), address = ?2, keys = ?3
        WHERE id = ?1 AND \(Self.isAlive("node")) RETURNING heartbeat
        """, node.id, node.address, keys)
      if try row.step() { return (node.id, Date(milliseconds: row.integer(0))) }
    }
    try mayJoin()
    try change("DELETE FROM node WHERE id = ?1", node.id)
    // Those that have ended without an order are listed for a day.
    try change(
      "DELETE FROM node WHERE heartbeat < \(Self.databaseTime) - 86400000")
    let row = try statement(
      """
      INSERT INTO node (name, address, version, started_at, heartbeat, keys, lease)
      VALUES (?1, ?2, ?3, \(Self.databaseTime), \(Self.databaseTime), ?4, ?5)
      RETURNING id, heartbeat
      """, node.name, node.address, node.version, keys, Int64(node.lease * 1000))
    guard try row.step() else { throw StoreError.corrupt("a node gets no number") }
    return (row.integer(0), Date(milliseconds: row.integer(1)))
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
        SELECT id, name, address, version, started_at, \(PostgresConnection.databaseTime) - heartbeat,
          lease
        FROM node ORDER BY id
        """
      ) { row in
        var node = StoreNode(
          name: row.text(1), address: row.text(2), version: row.text(3),
          lease: Double(row.integer(6)) / 1000)
        node.id = row.integer(0)
        node.startedAt = Date(milliseconds: row.integer(4))
        node.silence = max(0, Double(row.integer(5)) / 1000)
        return node
      }
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

  package var clock: HubClock {
    .system.ahead { [engine] in
      engine.shared.heart.withLock { $0 }?.offset ?? 0
    }
  }

  /// `nil` in a process that only looks or changes something.
  var heart: NodeHeart? { engine.shared.heart.withLock { $0 } }
}
