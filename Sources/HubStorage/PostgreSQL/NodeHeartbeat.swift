import Foundation
import HubCore
import SQLDatabase
import Synchronization

/// This process as a node: sends a heartbeat to the database every two seconds, or five times in
/// another lease, and watches which of the others are alive. See ``NodeLease`` for the rules.
final class NodeHeartbeat: Sendable {
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
