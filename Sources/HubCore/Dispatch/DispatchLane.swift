import Foundation
package import NotificationHubs

/// A hub's way to one push service: what is in flight, waits and rests is counted by it.
package struct LaneKey: Hashable, Comparable, Sendable {
  package let hub: Hub.ID
  package let platform: PushPlatform

  package init(hub: Hub.ID, platform: PushPlatform) {
    self.hub = hub
    self.platform = platform
  }

  /// For lanes that come out of a dictionary: which comes first must not hang on its order.
  package static func < (one: LaneKey, other: LaneKey) -> Bool {
    (one.hub, one.platform.ordinal) < (other.hub, other.platform.ordinal)
  }
}

/// One platform's share of a page.
struct PartKey: Hashable, Sendable {
  let page: Int
  let index: Int
}

/// Why a lane as a whole cannot go on.
enum LaneFailure: Equatable, Sendable {
  /// The push service does not accept the credential.
  case refused
  /// Not one push of a batch got an answer.
  case unreachable
  /// The push service answers one push after the other with a fault of its own.
  case unavailable

  /// - Parameter failures: In a row, from 1.
  /// - Returns: Seconds.
  func rest(failures: Int) -> Double {
    switch self {
    case .refused: RetryPolicy.credentialPause(refusals: failures)
    case .unreachable, .unavailable: RetryPolicy.outagePause(failures: failures)
    }
  }
}

/// The state of one lane.
struct DispatchLane {
  struct Waiting {
    let part: PartKey
    let notification: Int
    let targets: Int
    /// How many refusals the schedule had seen when the part's wait began; a later one is an answer
    /// to it as well.
    let since: Int
    /// Its targets have rows, which are as good a place to wait as memory.
    var isRetry = false
  }

  /// Why nothing of a lane can start.
  enum Block: Equatable {
    case rest
    case probe
    case stall
  }

  /// A part under way.
  struct Started {
    let notification: Int
    let targets: Int
    let pool: PoolKey
    /// See ``DispatchPool/epoch``.
    let epoch: Int
  }

  /// The parts that wait: small ones, which go ahead of pages, and pages.
  private var small: [Waiting] = []
  private var large: [Waiting] = []
  /// Targets that went ahead of the pages that wait.
  private var overtaken = 0
  private(set) var waitingTargets = 0
  private var started: [PartKey: Started] = [:]
  private(set) var targets = 0
  /// Targets under way, by notification.
  private var inFlight: [Int: Int] = [:]
  var pool: PoolKey
  /// The hub's share of a pool, relative to others.
  var weight = 1.0
  /// When it was last served, as a number; of lanes with equal claims the one that waited longer
  /// goes first.
  var served = 0
  /// When a part last left or, with nothing in flight, entered it.
  private var movedAt = Date.distantPast
  private(set) var restsUntil: Date?
  /// After a failure of the lane itself, one part goes ahead alone.
  private(set) var mustProbe = false
  /// Failures of the lane in a row, one for each probe.
  private(set) var failures = 0
  /// The number of the last refusal of the credential, counted over all lanes from 1; 0 when
  /// another node has reported it, `nil` when there was none since the lane last recovered.
  private(set) var refusal: Int?
  /// Pushes in a row that met a fault of the service, without one that it answered.
  private var faults = 0
  /// When what waits was last looked through while nothing could start, why nothing could, and when
  /// the first of it ends; `nil` when something has come since.
  private var reviewed: (at: Date, block: Block, end: Date?)?
  private let page: Int

  /// So many faults in a row are the service's; fewer may be bad luck.
  static let mostFaults = 8

  init(pool: PoolKey, page: Int) {
    self.pool = pool
    self.page = page
  }

  var parts: Int { started.count }
  /// Targets that wait in other than small parts.
  var waitingInPages: Int { large.reduce(0) { $0 + $1.targets } }
  var isWaiting: Bool { !small.isEmpty || !large.isEmpty }
  /// What the lane has under way, in units of its share.
  var load: Double { Double(targets) / weight }

  mutating func wait(_ waiting: Waiting) {
    if waiting.targets * 10 <= page { small.append(waiting) } else { large.append(waiting) }
    waitingTargets += waiting.targets
    reviewed = nil
  }

  /// What is left of a part that met trouble waits ahead of the others.
  mutating func waitFirst(_ waiting: Waiting) {
    if waiting.targets * 10 <= page {
      small.insert(waiting, at: 0)
    } else {
      large.insert(waiting, at: 0)
    }
    waitingTargets += waiting.targets
    reviewed = nil
  }

  /// The part that is next: a small one, unless pages have let two pages' worth of those pass; of
  /// pages, that of the notification with the least under way.
  var next: Waiting? {
    guard let least = leastServed else { return small.first }
    return small.isEmpty || overtaken >= 2 * page ? large[least] : small.first
  }

  private var leastServed: Int? {
    large.indices.min {
      inFlight[large[$0].notification, default: 0]
        < inFlight[large[$1].notification, default: 0]
    }
  }

  /// Takes what ``next`` names.
  mutating func start(epoch: Int, at now: Date) -> Waiting? {
    guard let taken = next else { return nil }
    if let first = small.first, first.part == taken.part {
      small.removeFirst()
      if !large.isEmpty { overtaken += taken.targets }
    } else {
      large.removeAll { $0.part == taken.part }
      overtaken = 0
    }
    waitingTargets -= taken.targets
    if started.isEmpty { movedAt = now }
    started[taken.part] = Started(
      notification: taken.notification, targets: taken.targets, pool: pool, epoch: epoch)
    targets += taken.targets
    inFlight[taken.notification, default: 0] += taken.targets
    return taken
  }

  /// Whether what waits has to be looked through: something has come, the reason is another, or a
  /// second has passed in which others may have begun to move.
  func needsReview(_ block: Block, at now: Date) -> Bool {
    guard isWaiting else { return false }
    guard let reviewed, reviewed.block == block else { return true }
    return now.timeIntervalSince(reviewed.at) >= 1 || reviewed.end.map { $0 <= now } ?? false
  }

  /// When the first notification ends of which something waits here, as the last look had it.
  var earliestEnd: Date? { isWaiting ? reviewed?.end : nil }

  /// Everything that waits, small parts first.
  var allWaiting: [Waiting] { small + large }

  /// Takes parts from among those that wait, after they have been looked through.
  /// - Parameter end: When the first of the others ends.
  mutating func take(_ parts: Set<PartKey>, reviewed block: Block, end: Date?, at now: Date) {
    reviewed = (now, block, end)
    guard !parts.isEmpty else { return }
    remove { parts.contains($0.part) }
  }

  mutating func forget(notification: Int) { remove { $0.notification == notification } }

  private mutating func remove(where isTaken: (Waiting) -> Bool) {
    small.removeAll(where: isTaken)
    large.removeAll(where: isTaken)
    if large.isEmpty { overtaken = 0 }
    waitingTargets = (small + large).reduce(0) { $0 + $1.targets }
  }

  /// - Returns: `nil` for a part that is not under way.
  mutating func leave(_ part: PartKey, at now: Date) -> Started? {
    guard let left = started.removeValue(forKey: part) else { return nil }
    targets -= left.targets
    movedAt = now
    let rest = inFlight[left.notification, default: 0] - left.targets
    inFlight[left.notification] = rest > 0 ? rest : nil
    return left
  }

  // MARK: Rest

  /// Takes note of what answers say about the service.
  /// - Returns: Whether it is down: a probe met a fault, or so many pushes in a row did.
  mutating func isDown(_ signs: PartSigns) -> Bool {
    if signs.answered > 0 {
      faults = 0
      if refusal == nil { recover() }
      return false
    }
    faults += signs.failed
    return signs.failed > 0 && (mustProbe || faults >= Self.mostFaults)
  }

  func isResting(at now: Date) -> Bool { restsUntil.map { now < $0 } ?? false }

  /// Whether what is in flight has not moved for so many seconds.
  func isStalled(after seconds: Double, at now: Date) -> Bool {
    parts > 0 && now.timeIntervalSince(movedAt) >= seconds
  }

  /// When it will count as stalled, if nothing moves before.
  func stalls(after seconds: Double) -> Date { movedAt.addingTimeInterval(seconds) }

  /// Another node has had its credential refused. That answers nothing here: what waits goes on
  /// waiting, and one part goes ahead once the rest is over.
  mutating func adopt(refusals: Int, until: Date) {
    restsUntil = max(restsUntil ?? until, until)
    mustProbe = true
    failures = max(failures, refusals)
    refusal = refusal ?? 0
  }

  /// Another node has found that the credential is accepted: one part goes ahead now.
  mutating func lift() {
    guard refusal != nil else { return }
    restsUntil = nil
    refusal = nil
  }

  /// Whether a probe is under way: nobody follows it until it has its answer.
  var isProbing: Bool { mustProbe && parts > 0 }

  /// The lane itself failed: it rests, then probes. Failures of batches that were in flight
  /// together count once.
  /// - Returns: Until when; `nil` when it rested already.
  mutating func fail(_ failure: LaneFailure, at now: Date) -> Date? {
    guard !isResting(at: now) else { return nil }
    failures += 1
    mustProbe = true
    let until = now.addingTimeInterval(failure.rest(failures: failures))
    restsUntil = until
    return until
  }

  mutating func refuse(_ number: Int) { refusal = number }

  /// Whether what has waited since then is answered by a refusal of the credential.
  func isRefused(since: Int, at now: Date) -> Bool {
    isResting(at: now) && refusal.map { $0 > since } ?? false
  }

  /// A push succeeded, or the credential was replaced.
  mutating func recover() {
    failures = 0
    faults = 0
    refusal = nil
    mustProbe = false
    restsUntil = nil
  }
}
