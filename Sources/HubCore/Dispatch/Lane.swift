import Foundation
package import NotificationHubs

/// Names a lane: the delivery queue from one hub to one push service.
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

/// The reason why a lane as a whole cannot go on.
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

/// One lane: the parts that wait and that are under way, whether the lane rests and why, its
/// credential and the push service's answers to it, and the findings of other nodes.
struct Lane {
  /// An event of a lane that the log, other nodes, or both are to hear of.
  enum Change: Equatable {
    /// No handle is removed any more, and what was removed since the alarm's start comes back.
    case alarm(Alarm)
    /// A push service whose outage was logged answers again.
    case serviceBack
    /// A push has succeeded after a refusal.
    case recovered
    /// The credential was refused: the lane rests.
    case refused(until: Date, reason: String?)
    /// The push service is down, which is to be logged.
    case down(until: Date, reason: String?)
  }

  /// The removal of handles has stopped for a lane.
  struct Alarm: Equatable {
    /// Number of the last answers that called a handle dead.
    let condemned: Int
    let judged: Int
    /// Removals since then are in doubt.
    let since: Date
  }

  /// A refusal of the credential, from which the lane has not recovered.
  struct Refusal {
    /// Its number among the refusals of all lanes, from 1; 0 when another node has reported it.
    var number: Int
    /// `nil` when the credential has been replaced since, and is not known to be another yet.
    var answer: PushResult?
  }

  /// A push service that is down.
  private struct Outage {
    /// The service's answer, or the reason why there was none.
    var reason: String?
    /// When it was logged; `nil` while the failure may still be a passing one.
    var reportedAt: Date?
  }

  /// Faults in a row that are the service's; fewer may be bad luck.
  static let mostFaults = 8
  /// An outage that lasts is logged this often, in seconds.
  private static let outagePeriod = 600.0
  /// For so long after a success here, other nodes are not believed that the credential is refused,
  /// in seconds: the fault may be theirs, such as a clock that is wrong.
  private static let trust = 60.0

  var queue: LaneQueue
  /// The send window that counts its parts; `nil` until something waits for the lane, or another
  /// node has found something about it.
  var pool: PoolKey?
  /// The hub's share of a pool, relative to others.
  var weight: Double
  /// When it was last served, as a number; of lanes with equal claims the one that waited longer
  /// goes first.
  var served = 0

  private(set) var restsUntil: Date?
  /// After a failure of the lane itself, one part goes ahead alone.
  private(set) var mustProbe = false
  /// Failures of the lane in a row, one for each probe.
  private(set) var failures = 0
  /// Pushes in a row that met a fault of the service, without one that it answered.
  private var faults = 0
  private var outage: Outage?

  /// When the credential that the lane is used with was last changed; `nil` when there is none.
  private(set) var credential: Date?
  private(set) var refusal: Refusal?
  /// Whether the credential was refused to this node itself.
  var isRefusedHere: Bool { refusal.map { $0.number > 0 } ?? false }
  /// When a push last succeeded with the credential, where nodes share the work.
  private var succeededAt: Date?
  private var handleGuard: DeadHandleGuard?
  private let deadHandleShare: Double

  /// Findings of other nodes as of the last exchange, for whichever credential.
  var othersFindings: [LaneFinding] = []
  /// The alarm of another node.
  var othersAlarm: Alarm?
  /// The lane rests because of another node's refusal.
  var isRefusedElsewhere = false
  /// The lane has recovered from a refusal, and other nodes have not heard of it.
  var mustAnnounceRecovery = false

  init(page: Int, weight: Double, deadHandleShare: Double) {
    queue = LaneQueue(page: page)
    self.weight = weight
    self.deadHandleShare = deadHandleShare
  }

  /// Targets under way, in units of its share.
  var load: Double { Double(queue.targets) / weight }

  // MARK: Rest

  func isResting(at now: Date) -> Bool { restsUntil.map { now < $0 } ?? false }

  /// Whether a probe is under way: nobody follows it until it has its answer.
  var isProbing: Bool { mustProbe && queue.parts > 0 }

  /// Whether parts that have waited since then are answered by a refusal of the credential.
  /// - Parameter since: As of ``LaneQueue/Waiting/since``.
  func isRefused(since: Int, at now: Date) -> Bool {
    isResting(at: now) && refusal.map { $0.number > since } ?? false
  }

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

  /// The push service does not accept the credential.
  /// - Parameter refusals: Number of refusals so far, of all lanes.
  mutating func refuse(_ answer: PushResult?, refusals: inout Int, at now: Date) -> Date? {
    refusals += 1
    refusal = Refusal(number: refusals, answer: answer)
    return fail(.refused, at: now)
  }

  /// A push succeeded, or the credential was replaced.
  mutating func recover() {
    failures = 0
    faults = 0
    refusal = nil
    mustProbe = false
    restsUntil = nil
  }

  // MARK: Answers

  /// Derives from a part's answers whether the push service and the credential are well.
  /// - Parameters:
  ///   - isShared: Nodes share the work.
  ///   - refusals: Number of refusals so far, of all lanes.
  mutating func note(
    _ settlement: PartSettlement, isShared: Bool, refusals: inout Int, at now: Date
  ) -> [Change] {
    var changes: [Change] = []
    let isDown = isDown(settlement.answers)
    if settlement.answers.answered > 0, endOutage() { changes.append(.serviceBack) }
    let isCurrent = credential == settlement.credential
    if settlement.hadSuccess {
      if isShared, isCurrent {
        succeededAt = now
        if refusal != nil {
          mustAnnounceRecovery = true
          changes.append(.recovered)
        }
      }
      recover()
    }
    if let answer = settlement.refusal {
      // The refusal of a credential that was replaced meanwhile does not count.
      guard isCurrent else { return changes }
      if let until = refuse(answer, refusals: &refusals, at: now) {
        changes.append(.refused(until: until, reason: answer.reason))
      }
    } else if settlement.isUnreachable || isDown {
      let reason = settlement.fault?.reason
      if let until = fail(settlement.isUnreachable ? .unreachable : .unavailable, at: now),
        noteOutage(reason: reason, at: now)
      {
        changes.append(.down(until: until, reason: reason))
      }
    }
    return changes
  }

  /// Counts faults of the service.
  /// - Returns: Whether it is down: a probe met a fault, or so many pushes in a row did.
  mutating func isDown(_ answers: AnswerSummary) -> Bool {
    if answers.answered > 0 {
      faults = 0
      if refusal == nil { recover() }
      return false
    }
    faults += answers.failed
    return answers.failed > 0 && (mustProbe || faults >= Self.mostFaults)
  }

  /// The push service is down, and the lane rests.
  /// - Parameter reason: The service's answer, or the reason why there was none.
  /// - Returns: Whether it is to be logged.
  mutating func noteOutage(reason: String?, at now: Date) -> Bool {
    outage = Outage(reason: reason, reportedAt: outage?.reportedAt)
    // The first failure may be a connection that had to be made again.
    guard failures > 1,
      outage?.reportedAt.map({ now.timeIntervalSince($0) >= Self.outagePeriod }) ?? true
    else { return false }
    outage?.reportedAt = now
    return true
  }

  /// The push service has answered.
  /// - Returns: Whether its outage was logged.
  mutating func endOutage() -> Bool {
    defer { outage = nil }
    return outage?.reportedAt != nil
  }

  var isServiceDown: Bool { outage != nil }

  /// The push service's answer to the credential, or the reason why it counts as down.
  var reason: String? { refusal?.answer?.reason ?? outage?.reason }

  // MARK: Credential

  /// - Returns: Whether it is another than before, which starts without trust and without a refusal.
  mutating func setCredential(_ new: Date?) -> Bool {
    guard credential != new else { return false }
    credential = new
    succeededAt = nil
    forgetAnswers()
    return true
  }

  /// Answers to an earlier credential do not count.
  mutating func forgetAnswers() {
    handleGuard = nil
    refusal?.answer = nil
  }

  // MARK: Dead handles

  /// Leaves handles alone when the push service's judgement of them is in doubt.
  /// - Returns: The alarm, when it begins.
  mutating func judge(
    _ outcome: inout PageOutcome, _ settlement: PartSettlement, platform: PushPlatform, at now: Date
  ) -> Alarm? {
    // Answers to a credential that was replaced meanwhile say nothing about the lane.
    guard credential == settlement.credential else {
      outcome.spare(platform)
      return nil
    }
    if handleGuard == nil {
      handleGuard = DeadHandleGuard(credential: settlement.credential, share: deadHandleShare)
    }
    let verdict = handleGuard?.judge(
      settlement.judged,
      condemned: outcome.dead.count + outcome.replaced.count - settlement.condemnedByOthers,
      hadSuccess: settlement.hadSuccess, credential: settlement.credential, at: now)
    if verdict != .remove || othersAlarm != nil { outcome.spare(platform) }
    return verdict == .alarm ? alarm : nil
  }

  /// `nil` while handles go as they should.
  var alarm: Alarm? { ownAlarm ?? othersAlarm }

  /// The alarm by this node's own answers.
  var ownAlarm: Alarm? {
    guard let found = handleGuard, found.isAlarmed else { return nil }
    return Alarm(condemned: found.condemned, judged: found.judged, since: found.doubtsSince)
  }

  mutating func forgetHandles() {
    handleGuard = nil
    othersAlarm = nil
  }

  // MARK: Other nodes

  /// Whether another node's finding counts here.
  mutating func believes(_ finding: LaneFinding, at now: Date) -> Bool {
    if credential == nil { _ = setCredential(finding.credential) }
    guard credential == finding.credential else { return false }
    guard finding.kind == .refused, let succeededAt else { return true }
    return now.timeIntervalSince(succeededAt) >= Self.trust
  }

  /// Another node has had its credential refused. That answers nothing here: parts go on waiting,
  /// and one goes ahead once the rest is over.
  mutating func adoptRefusal(_ finding: LaneFinding) {
    restsUntil = max(restsUntil ?? finding.time, finding.time)
    mustProbe = true
    failures = max(failures, finding.count)
    let answer = PushResult(outcome: .invalidCredentials, reason: finding.reason)
    refusal = Refusal(number: refusal?.number ?? 0, answer: refusal?.answer ?? answer)
    isRefusedElsewhere = true
  }

  /// Another node has found that the credential is accepted: one part goes ahead now.
  mutating func lift() {
    guard refusal != nil else { return }
    restsUntil = nil
    refusal = nil
  }
}

/// One platform's share of a page.
struct PartKey: Hashable, Sendable {
  let page: Int
  let index: Int
}

/// The parts of a lane that wait and that are under way.
struct LaneQueue {
  struct Waiting {
    let part: PartKey
    let notification: Int
    let targets: Int
    /// Number of refusals when the part's wait began; a later one is an answer to it as well.
    let since: Int
    /// Its targets have rows, in which they can wait as well as in memory.
    var isRetry = false
  }

  /// The reason why nothing of a lane can start.
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
  /// Targets under way.
  private(set) var targets = 0
  /// Targets under way, by notification.
  private var inFlight: [Int: Int] = [:]
  /// When a part last left or, with nothing in flight, entered it.
  private var movedAt = Date.distantPast
  /// When the waiting parts were last looked through while nothing could start, why nothing could,
  /// and when the first of them ends; `nil` when one has come since.
  private var reviewed: (at: Date, block: Block, end: Date?)?
  private let page: Int

  init(page: Int) { self.page = page }

  /// Number of parts under way.
  var parts: Int { started.count }
  /// Targets that wait in other than small parts.
  var waitingInPages: Int { large.reduce(0) { $0 + $1.targets } }
  var isWaiting: Bool { !small.isEmpty || !large.isEmpty }
  /// Everything that waits, small parts first.
  var allWaiting: [Waiting] { small + large }

  private func isSmall(_ waiting: Waiting) -> Bool { waiting.targets * 10 <= page }

  mutating func append(_ waiting: Waiting) {
    if isSmall(waiting) { small.append(waiting) } else { large.append(waiting) }
    waitingTargets += waiting.targets
    reviewed = nil
  }

  /// Puts the unsent rest of a failed part at the head of the queue.
  mutating func prepend(_ waiting: Waiting) {
    if isSmall(waiting) { small.insert(waiting, at: 0) } else { large.insert(waiting, at: 0) }
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

  /// Starts the part that ``next`` names.
  mutating func start(in pool: PoolKey, epoch: Int, at now: Date) -> Waiting? {
    guard let first = next else { return nil }
    if small.first?.part == first.part {
      small.removeFirst()
      if !large.isEmpty { overtaken += first.targets }
    } else {
      large.removeAll { $0.part == first.part }
      overtaken = 0
    }
    waitingTargets -= first.targets
    if started.isEmpty { movedAt = now }
    started[first.part] = Started(
      notification: first.notification, targets: first.targets, pool: pool, epoch: epoch)
    targets += first.targets
    inFlight[first.notification, default: 0] += first.targets
    return first
  }

  /// A part has its answers.
  /// - Returns: `nil` for a part that is not under way.
  mutating func finish(_ part: PartKey, at now: Date) -> Started? {
    guard let done = started.removeValue(forKey: part) else { return nil }
    targets -= done.targets
    movedAt = now
    let rest = inFlight[done.notification, default: 0] - done.targets
    inFlight[done.notification] = rest > 0 ? rest : nil
    return done
  }

  /// Whether parts under way have had no answer for so many seconds.
  func isStalled(after seconds: Double, at now: Date) -> Bool {
    parts > 0 && now.timeIntervalSince(movedAt) >= seconds
  }

  /// When it will count as stalled, if nothing moves before.
  func stalls(after seconds: Double) -> Date { movedAt.addingTimeInterval(seconds) }

  // MARK: Review

  /// Whether the waiting parts have to be looked through: one has come, the reason is another, or a
  /// second has passed in which others may have begun to move.
  func needsReview(_ block: Block, at now: Date) -> Bool {
    guard isWaiting else { return false }
    guard let reviewed, reviewed.block == block else { return true }
    return now.timeIntervalSince(reviewed.at) >= 1 || reviewed.end.map { $0 <= now } ?? false
  }

  /// When the first notification ends of which something waits here, as the last review had it.
  var earliestEnd: Date? { isWaiting ? reviewed?.end : nil }

  /// Removes parts after all that wait have been looked through.
  /// - Parameter end: When the first of the others ends.
  mutating func didReview(removing parts: Set<PartKey>, _ block: Block, end: Date?, at now: Date) {
    reviewed = (now, block, end)
    guard !parts.isEmpty else { return }
    remove { parts.contains($0.part) }
  }

  mutating func forget(notification: Int) { remove { $0.notification == notification } }

  private mutating func remove(where isRemoved: (Waiting) -> Bool) {
    small.removeAll(where: isRemoved)
    large.removeAll(where: isRemoved)
    if large.isEmpty { overtaken = 0 }
    waitingTargets = (small + large).reduce(0) { $0 + $1.targets }
  }
}
