package import Foundation

/// A node's view of its lease, of the nodes beside it and of the database's clock.
///
/// Nobody is judged by a time of day. A node's own lease runs from the moment at which it asked for
/// the last heartbeat that the database took. Another node is dead once the number of its
/// heartbeats has not risen for as long as its own lease is, by the steady clock of the machine that
/// looks: clocks may be set by any amount, that of the database too, and no lease ends.
///
/// A value without I/O: the caller that sends heartbeats hands in what was answered, and when. All
/// moments called `local` are of a steady clock of this machine.
package struct NodeLease: Sendable {
  /// Another node that counts as alive in the database.
  package struct Peer: Hashable, Sendable {
    package let id: Int64
    /// Rises with each of its heartbeats.
    package let beats: Int64
    /// When the last one was, by the database's clock.
    package let heartbeat: Date
    /// After so many seconds without one it is dead.
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
  /// The step that the last heartbeat has told of, in seconds, and the sum of all by then.
  private var toldStep: (ahead: TimeInterval, steps: Int64)?
  /// The time at which this node last told of a step.
  private var toldAt: Date?
  /// Whether ``steady(at:)`` is the time that the other nodes share: not before it is known that the
  /// first reading did not come between a step of the database's clock and a node that tells of it.
  package private(set) var isSettled = false
  /// When their number of heartbeats was seen first.
  private var peers: [Int64: (beats: Int64, since: Date)] = [:]
  /// When the answer to the last look had come.
  private var lookedAt: Date?
  /// Claims whose answer was lost, and when: what they took was handed to nobody.
  private var lost: [Int64: Date] = [:]
  /// Words about lanes that others have been told, and under which number.
  private var told: (words: Set<LaneWord>, id: Int64) = ([], 0)

  /// Less than this is what clocks drift apart, not a step.
  private static let leastStep: TimeInterval = 1
  /// Time must not jump to and fro by what a network takes.
  private static let tolerance: TimeInterval = 0.1
  /// For so long a commit without an answer may still be under way somewhere.
  private static let lostLifetime: TimeInterval = 300

  /// - Parameter lease: After so many seconds without a heartbeat others take what this node has.
  package init(lease: TimeInterval) { self.lease = lease }

  /// The database has taken a heartbeat.
  /// - Parameters:
  ///   - id: The node's number from now on; another one when the old one was dead.
  ///   - asked: When the heartbeat was begun: the lease runs from here.
  ///   - new: Taken after the other nodes were read.
  /// - Returns: Nodes that have died.
  package mutating func heard(
    as id: Int64, asked: Date, _ new: Reading, beside others: [Peer]
  ) -> [Peer] {
    // Others have missed it: its own clock may have stood still as well, as that of a virtual machine
    // does, and it would take that for a step.
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

  /// Leaves: it has no lease from here on.
  package mutating func end() { heardAt = nil }

  /// Seconds since the last heartbeat was taken; `nil` when there was none.
  package func silence(at local: Date) -> TimeInterval? {
    heardAt.map { local.timeIntervalSince($0) }
  }

  /// Whether the node may take work: nobody can take it away, and when its time is over is known.
  package func mayClaim(at local: Date) -> Bool { isSettled && isHeld(at: local) }

  /// Whether nobody can have taken what the node has.
  package func isHeld(at local: Date) -> Bool {
    silence(at: local).map { $0 < lease } ?? false
  }

  /// For tests: as if the database had last heard of it so much longer ago.
  package mutating func loseTime(_ seconds: TimeInterval) {
    heardAt = heardAt?.addingTimeInterval(-seconds)
  }

  // MARK: Claims and lanes

  /// The answer to a claim did not come: whether it was committed is not known.
  package mutating func lose(claim: Int64, at local: Date) { lost[claim] = local }

  /// Claims that were lost not long ago, in rising order; what was taken once more has another.
  package mutating func lostClaims(at local: Date) -> [Int64] {
    let oldest = local.addingTimeInterval(-Self.lostLifetime)
    lost = lost.filter { $0.value > oldest }
    return lost.keys.sorted()
  }

  /// Words that were told under this number; none when the node has another one since.
  package func told(as id: Int64) -> Set<LaneWord> { told.id == id ? told.words : [] }

  package mutating func note(told words: Set<LaneWord>, as id: Int64) { told = (words, id) }

  // MARK: Other nodes

  /// The nodes that count as alive in the database were read.
  /// - Returns: Those of them that have died.
  package mutating func look(at others: [Peer], asked: Date, answered: Date) -> [Peer] {
    // Who could not look for a while has seen nobody's silence in that time: when the database was
    // away, each node gets its turn to tell that it lives before anybody is taken for dead.
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

  /// The time that all nodes share and that nobody sets; `nil` before the first heartbeat.
  package func steady(at local: Date) -> Date? {
    reading.map { $0.steady.addingTimeInterval(local.timeIntervalSince($0.local)) }
  }

  /// By how many milliseconds somebody has set the database's clock, when no node has told of it
  /// yet. It is told in the transaction of the heartbeat that the reading belongs to: who sees the
  /// heartbeat sees the step.
  /// - Parameter id: The number under which the heartbeat was taken.
  package func step(in new: Reading, as id: Int64) -> Int64? {
    guard isSettled, self.id == id, let old = reading, let ahead = ahead(new) else { return nil }
    let least = max(Self.leastStep, old.uncertainty + new.uncertainty)
    guard abs(ahead) > least else { return nil }
    // Another node has taken the step back: to that one the database's clock goes on as before, and it
    // was this machine's that stood still. To tell of it again would go on for ever.
    if let told = toldStep, told.steps != new.steps, abs(ahead - told.ahead) <= least { return nil }
    // The database's clock goes on as this node expects, and only the sum of steps differs: nodes whose
    // machines stood still disagree with the others. Each of them tells of it once.
    // A sum that differs by this node's own telling alone is no disagreement.
    if new.steps != toldStep?.steps ?? old.steps, let toldAt,
      new.local.timeIntervalSince(toldAt) < 2 * lease,
      let expected = now(at: new.local), abs(new.time.timeIntervalSince(expected)) <= least
    {
      return nil
    }
    return Int64((ahead * 1000).rounded())
  }

  /// How far a reading is ahead of what is expected, less what other nodes have told of: a second step
  /// may have come since. `nil` for the first.
  private func ahead(_ new: Reading) -> TimeInterval? {
    steady(at: new.local).map { new.steady.timeIntervalSince($0) }
  }

  private mutating func follow(_ new: Reading) {
    guard let old = reading, let ahead = ahead(new) else {
      reading = new
      return
    }
    // It goes on as before until the step has been told.
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

  /// Whether no step lies between a reading and the last heartbeat of the node that has been there
  /// longest, which knows the time: a step before that has been told. Where nobody is left who knows
  /// it, what the database says is the time.
  private func isShared(_ new: Reading, beside living: [Peer]) -> Bool {
    let elder = living.filter { $0.id < id }.min { $0.id < $1.id }
    guard let elder else { return true }
    let silence = new.time.timeIntervalSince(elder.heartbeat)
    // It beats five times in its lease; one that is late has the others wait for its next beat.
    return silence >= -Self.leastStep && silence <= elder.lease / 2
  }
}
