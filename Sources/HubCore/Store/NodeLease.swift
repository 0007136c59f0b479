package import Foundation

/// A node's view of its lease, of the nodes beside it and of the database's clock.
///
/// Leases do not depend on the time of day. A node's own lease starts when it sends the last
/// heartbeat that the database accepted. Another node is dead once its number of heartbeats has not
/// risen for the length of its lease, by the monotonic clock of the observing machine. Any clock,
/// also the database's, may be set by any amount without ending a lease.
///
/// A value without I/O: the caller sends the heartbeats and passes in the replies and their times.
/// All times called `local` are of this machine's monotonic clock.
package struct NodeLease: Sendable {
  /// Another node that counts as alive in the database.
  package struct Peer: Hashable, Sendable {
    package let id: Int64
    /// Number of its heartbeats.
    package let beats: Int64
    /// The time of the last one, by the database's clock.
    package let heartbeat: Date
    /// Number of seconds without one after which it is dead.
    package let lease: TimeInterval

    package init(id: Int64, beats: Int64, heartbeat: Date, lease: TimeInterval) {
      self.id = id
      self.beats = beats
      self.heartbeat = heartbeat
      self.lease = lease
    }
  }

  /// A reading of the database's clock.
  package struct Reading: Sendable {
    /// When it was taken, as exactly as is known.
    package var local: Date
    /// Error of `local`, in seconds.
    package var uncertainty: TimeInterval
    package var time: Date
    /// By how much that clock has been set, as far as nodes have noticed, in milliseconds.
    package var steps: Int64

    package init(local: Date, uncertainty: TimeInterval, time: Date, steps: Int64) {
      self.local = local
      self.uncertainty = uncertainty
      self.time = time
      self.steps = steps
    }

    /// Less all steps.
    var steady: Date { time.addingTimeInterval(-Double(steps) / 1000) }
  }

  /// The database's number for this node; 0 before it has one.
  package private(set) var id: Int64 = 0
  private let lease: TimeInterval
  private var heardAt: Date?
  private var reading: Reading?
  /// The step that the last heartbeat reported, in seconds, and the sum of all steps including it.
  private var toldStep: (ahead: TimeInterval, steps: Int64)?
  /// The time at which this node last reported a step.
  private var toldAt: Date?
  /// Whether ``steady(at:)`` agrees with the other nodes. The first reading may lie between a step of
  /// the database's clock and the heartbeat that reports it.
  package private(set) var isSettled = false
  /// Their number of heartbeats, and the time at which it was first seen.
  private var peers: [Int64: (beats: Int64, since: Date)] = [:]
  /// The time of the reply to the last look at the other nodes.
  private var lookedAt: Date?
  /// Claims whose reply was lost, with the time: nobody works on the parts that they took.
  private var lost: [Int64: Date] = [:]
  /// Findings about lanes that others have been told, and under which number.
  private var told: (findings: Set<LaneFinding>, id: Int64) = ([], 0)

  /// Smaller differences are drift, not a step.
  private static let leastStep: TimeInterval = 1
  /// Smaller differences are network delay, and do not move the time.
  private static let tolerance: TimeInterval = 0.1
  /// Maximum time for which a commit without a reply may still be in progress.
  private static let lostLifetime: TimeInterval = 300

  /// - Parameter lease: Number of seconds without a heartbeat after which others take this node's
  ///   parts.
  package init(lease: TimeInterval) { self.lease = lease }

  /// Records a heartbeat that the database accepted.
  /// - Parameters:
  ///   - id: The node's number from now on; a new one if it had been declared dead.
  ///   - asked: The time at which the heartbeat was sent, when the lease starts.
  ///   - new: A reading taken after the other nodes were read.
  /// - Returns: Nodes that have died.
  package mutating func heard(
    as id: Int64, asked: Date, _ new: Reading, beside others: [Peer]
  ) -> [Peer] {
    // It was declared dead: its own clock may have stopped as well, as in a suspended virtual machine,
    // which would look like a step.
    if self.id != id { isSettled = false }
    self.id = id
    heardAt = asked
    let answered = new.local.addingTimeInterval(new.uncertainty / 2)
    let dead = look(at: others, asked: asked, answered: answered)
    if isSettled {
      follow(new)
    } else {
      reading = new
      toldStep = nil
      isSettled = isShared(new, beside: others.filter { !dead.contains($0) })
    }
    return dead
  }

  /// Ends the lease, because the node leaves.
  package mutating func end() { heardAt = nil }

  /// Number of seconds since the last accepted heartbeat was sent; `nil` before the first.
  package func silence(at local: Date) -> TimeInterval? {
    heardAt.map { local.timeIntervalSince($0) }
  }

  /// Whether the node may claim work: its lease is held, and it knows the shared time.
  package func mayClaim(at local: Date) -> Bool { isSettled && isHeld(at: local) }

  /// Whether no other node can have taken this node's parts.
  package func isHeld(at local: Date) -> Bool {
    silence(at: local).map { $0 < lease } ?? false
  }

  /// For tests: makes the last heartbeat this much older.
  package mutating func loseTime(_ seconds: TimeInterval) {
    heardAt = heardAt?.addingTimeInterval(-seconds)
  }

  // MARK: Claims and lanes

  /// Records that the reply to a claim was lost, so that its outcome is unknown.
  package mutating func lose(claim: Int64, at local: Date) { lost[claim] = local }

  /// The claims whose reply was lost recently, in ascending order.
  package mutating func lostClaims(at local: Date) -> [Int64] {
    let oldest = local.addingTimeInterval(-Self.lostLifetime)
    lost = lost.filter { $0.value > oldest }
    return lost.keys.sorted()
  }

  /// Findings that were told under this number; none when the node has another one since.
  package func told(as id: Int64) -> Set<LaneFinding> { told.id == id ? told.findings : [] }

  package mutating func note(told findings: Set<LaneFinding>, as id: Int64) {
    told = (findings, id)
  }

  // MARK: Other nodes

  /// Records the nodes that count as alive in the database.
  /// - Returns: Those of them that are dead.
  package mutating func look(at others: [Peer], asked: Date, answered: Date) -> [Peer] {
    // A gap between two looks proves no silence: after an outage of the database each node gets time
    // to send a heartbeat before it is declared dead.
    let gap = lookedAt.map { asked.timeIntervalSince($0) } ?? 0
    lookedAt = answered
    var seen: [Int64: (beats: Int64, since: Date)] = [:]
    for peer in others {
      if let known = peers[peer.id], known.beats == peer.beats {
        seen[peer.id] = (peer.beats, known.since.addingTimeInterval(max(0, gap - peer.lease / 2)))
      } else {
        seen[peer.id] = (peer.beats, answered)
      }
    }
    peers = seen
    return others.filter { peer in
      seen[peer.id].map { asked.timeIntervalSince($0.since) >= peer.lease } ?? false
    }
  }

  // MARK: The database's clock

  /// The database's time of day; `nil` before the first heartbeat.
  package func now(at local: Date) -> Date? {
    reading.map { $0.time.addingTimeInterval(local.timeIntervalSince($0.local)) }
  }

  /// The time that all nodes share, without steps; `nil` before the first heartbeat.
  package func steady(at local: Date) -> Date? {
    reading.map { $0.steady.addingTimeInterval(local.timeIntervalSince($0.local)) }
  }

  /// The step of the database's clock, in milliseconds, if no node has reported it yet; else `nil`.
  /// It is reported in the transaction of the heartbeat that the reading belongs to: a node that reads
  /// the heartbeat also reads the step.
  /// - Parameter id: The number under which the heartbeat was accepted.
  package func step(in new: Reading, as id: Int64) -> Int64? {
    guard isSettled, self.id == id, let old = reading, let ahead = ahead(new) else { return nil }
    let least = max(Self.leastStep, old.uncertainty + new.uncertainty)
    guard abs(ahead) > least else { return nil }
    // Another node has reverted the step: for that one the database's clock did not change, so it was
    // this machine's clock that stopped. Reporting it again would never end.
    if let told = toldStep, told.steps != new.steps, abs(ahead - told.ahead) <= least { return nil }
    // The database's clock is as expected, and only the sum of steps differs: nodes whose machines were
    // suspended disagree with the others. Each of them reports that once. A sum that differs only by
    // this node's own report is no disagreement.
    if new.steps != toldStep?.steps ?? old.steps, let toldAt,
      new.local.timeIntervalSince(toldAt) < 2 * lease,
      let expected = now(at: new.local), abs(new.time.timeIntervalSince(expected)) <= least
    {
      return nil
    }
    return Int64((ahead * 1000).rounded())
  }

  /// Number of seconds by which a reading is ahead of the expected time, less the steps that other
  /// nodes have reported; `nil` for the first reading.
  private func ahead(_ new: Reading) -> TimeInterval? {
    steady(at: new.local).map { new.steady.timeIntervalSince($0) }
  }

  private mutating func follow(_ new: Reading) {
    guard let old = reading, let ahead = ahead(new) else {
      reading = new
      return
    }
    // The reading is kept until the step has been reported.
    if let step = step(in: new, as: id) {
      toldStep = (ahead, new.steps + step)
      toldAt = new.local
      return
    }
    toldStep = nil
    let uncertainty = old.uncertainty + new.uncertainty
    if abs(ahead) > max(Self.tolerance, uncertainty) || new.uncertainty < old.uncertainty / 2
      || new.steps != old.steps
    {
      reading = new
    }
  }

  /// Whether no step lies between a reading and the last heartbeat of the oldest node, which knows the
  /// time and has reported earlier steps. If there is no older node, the database's time counts.
  private func isShared(_ new: Reading, beside living: [Peer]) -> Bool {
    let elder = living.filter { $0.id < id }.min { $0.id < $1.id }
    guard let elder else { return true }
    let silence = new.time.timeIntervalSince(elder.heartbeat)
    // It sends five heartbeats in its lease; if one is late, others wait for the next.
    return silence >= -Self.leastStep && silence <= elder.lease / 2
  }
}
