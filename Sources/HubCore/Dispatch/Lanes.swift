import Foundation
import NotificationHubs

/// The lanes of all hubs, and the send windows that lanes with one credential share. Says whether
/// something may start or be read for a lane; ``DispatchSchedule`` decides what.
struct Lanes {
  private let limits: DispatchLimits
  private var lanes: [LaneKey: Lane] = [:]
  private var pools: [PoolKey: DispatchPool] = [:]
  private var weights: [Hub.ID: Double] = [:]
  /// Refused batches so far, of all lanes: tells what came before which refusal.
  private(set) var refusals = 0
  /// Counts the parts that were started; see ``Lane/served``.
  private var served = 0

  init(limits: DispatchLimits) { self.limits = limits }

  subscript(key: LaneKey) -> Lane? { lanes[key] }

  private mutating func addIfNew(_ key: LaneKey) {
    guard lanes[key] == nil else { return }
    lanes[key] = Lane(
      page: limits.pageSize, weight: weight(of: key.hub), deadHandleShare: limits.deadHandleShare)
  }

  // MARK: Weights

  /// - Parameter weights: The shares of hubs in relation to each other; 1 for those not named.
  mutating func setWeights(_ weights: [Hub.ID: Double]) {
    self.weights = weights
    for (key, weight) in lanes.keys.map({ ($0, weight(of: $0.hub)) }) {
      lanes[key]?.weight = weight
    }
  }

  func weight(of hub: Hub.ID) -> Double { max(0.001, weights[hub] ?? 1) }

  // MARK: Parts

  mutating func append(_ waiting: LaneQueue.Waiting, to key: LaneKey) {
    if lanes[key]?.pool == nil { assign(key, to: nil) }
    lanes[key]?.queue.append(waiting)
  }

  /// See ``LaneQueue/prepend(_:)``.
  mutating func prepend(_ waiting: LaneQueue.Waiting, to key: LaneKey) {
    lanes[key]?.queue.prepend(waiting)
  }

  /// Starts the part of a lane that is next.
  mutating func start(_ key: LaneKey, at now: Date) -> LaneQueue.Waiting? {
    guard let pool = lanes[key]?.pool, let epoch = pools[pool]?.epoch,
      let started = lanes[key]?.queue.start(in: pool, epoch: epoch, at: now)
    else { return nil }
    pools[pool]?.enter(started.targets)
    served += 1
    lanes[key]?.served = served
    return started
  }

  /// A part that was under way has its answers.
  /// - Parameter jitter: 0 up to 1.
  mutating func finish(
    _ part: PartKey, of key: LaneKey, _ answers: AnswerSummary = AnswerSummary(),
    jitter: Double = 0,
    at now: Date
  ) {
    guard let done = lanes[key]?.queue.finish(part, at: now) else { return }
    pools[done.pool]?.leave(done.targets, sent: done.epoch, answers, jitter: jitter, at: now)
    if lanes[key]?.pool != done.pool { dropIfUnused(done.pool) }
  }

  /// See ``LaneQueue/didReview(removing:_:end:at:)``.
  mutating func didReview(
    _ key: LaneKey, removing parts: Set<PartKey>, _ block: LaneQueue.Block, end: Date?, at now: Date
  ) {
    lanes[key]?.queue.didReview(removing: parts, block, end: end, at: now)
  }

  /// Removes the parts of a notification that wait.
  mutating func forget(notification: Int) {
    for key in lanes.keys { lanes[key]?.queue.forget(notification: notification) }
  }

  /// The same, and tells which they were.
  mutating func remove(notification: Int) -> [PartKey] {
    var parts: [PartKey] = []
    for (key, lane) in lanes {
      let waiting = lane.queue.allWaiting.filter { $0.notification == notification }
      guard !waiting.isEmpty else { continue }
      lanes[key]?.queue.forget(notification: notification)
      parts += waiting.map(\.part)
    }
    return parts.sorted { ($0.page, $0.index) < ($1.page, $1.index) }
  }

  // MARK: Pools

  /// The send window of a lane.
  func pool(of key: LaneKey) -> DispatchPool? { lanes[key].flatMap(pool) }

  func pool(of lane: Lane) -> DispatchPool? { lane.pool.flatMap { pools[$0] } }

  /// Says which connections a lane uses and how many pushes they carry.
  mutating func assign(_ key: LaneKey, to connections: GatewayPool?) {
    let pool = connections.map { PoolKey.shared($0.id) } ?? .own(key)
    let ceiling =
      connections.map { min(limits.targets / 2, $0.capacity + 2 * limits.pageSize) }
      ?? limits.laneTargets
    pools[pool, default: DispatchPool(ceiling: ceiling, page: limits.pageSize)].setCeiling(ceiling)
    let before = lanes[key]?.pool
    guard before != pool else { return }
    addIfNew(key)
    lanes[key]?.pool = pool
    guard let before else { return }
    // Findings of other nodes may have come before anything was sent.
    if let old = pools[before], !old.isRestOwn, let end = old.restsUntil {
      pools[pool]?.rest(until: end, isOwn: false)
    }
    dropIfUnused(before)
  }

  private mutating func dropIfUnused(_ pool: PoolKey) {
    guard pools[pool]?.targets == 0, !lanes.values.contains(where: { $0.pool == pool }) else {
      return
    }
    pools[pool] = nil
  }

  // MARK: Whether lanes move

  /// Whether what is read for the lane may soon be sent.
  func moves(_ key: LaneKey, at now: Date) -> Bool { lanes[key].map { moves($0, at: now) } ?? true }

  func moves(_ lane: Lane, at now: Date) -> Bool {
    !lane.isResting(at: now) && !lane.isProbing
      && !lane.queue.isStalled(after: limits.stall, at: now)
      && pool(of: lane)?.isResting(at: now) != true
  }

  /// The reason why nothing of the lane's can start; `nil` when it can, or will before long.
  func block(_ key: LaneKey, at now: Date) -> LaneQueue.Block? {
    guard let lane = lanes[key] else { return nil }
    if lane.isResting(at: now) { return .rest }
    if lane.isProbing { return .probe }
    if restsLong(lane, at: now) { return .rest }
    return lane.queue.isStalled(after: limits.stall, at: now) ? .stall : nil
  }

  private func restsLong(_ lane: Lane, at now: Date) -> Bool {
    guard let end = pool(of: lane)?.restsUntil else { return false }
    return end.timeIntervalSince(now) > limits.stall
  }

  /// Until when the lane itself or its credential rests; `nil` when neither does.
  func restsUntil(_ key: LaneKey, at now: Date) -> Date? {
    guard let lane = lanes[key] else { return nil }
    return [lane.restsUntil, pool(of: lane)?.restsUntil].compactMap { $0 }.filter { $0 > now }.max()
  }

  /// Lanes with parts that wait, in order.
  var waiting: [LaneKey] {
    var found: [LaneKey] = []
    for (key, lane) in lanes where lane.queue.isWaiting { found.append(key) }
    return found.count > 1 ? found.sorted() : found
  }

  /// Lanes that have failed, by a refusal or an outage, and have not recovered, and those whose
  /// credential rests for long; in order.
  func inTrouble(at now: Date) -> [LaneKey] {
    var found: [LaneKey] = []
    for (key, lane) in lanes where lane.mustProbe || restsLong(lane, at: now) { found.append(key) }
    return found.sorted()
  }

  /// Lanes to report, in order: those that something was sent or waits for. An alarm lasts although
  /// nothing is sent.
  var known: [LaneKey] {
    lanes.filter { $0.value.pool != nil || $0.value.alarm != nil }.keys.sorted()
  }

  /// Number of retries that may be read for a lane: as many as it will take before long, none while it
  /// rests.
  func retryRoom(_ key: LaneKey, at now: Date) -> Int {
    guard let lane = lanes[key], let pool = pool(of: lane) else { return limits.pageSize }
    guard moves(key, at: now) else { return 0 }
    let isIdle = lane.queue.parts == 0 && !lane.queue.isWaiting
    // One goes ahead; a few stand by to follow it.
    if lane.mustProbe { return isIdle ? DispatchPool.least : 0 }
    let free = pool.window - pool.targets - lane.queue.waitingTargets
    return isIdle ? max(DispatchPool.least, free) : max(0, free)
  }

  /// Adds the moments at which time alone will let lanes go on.
  /// - Returns: Lanes that take nothing at the moment.
  func addWakes(to wake: inout EarliestMoment, at now: Date) -> Set<LaneKey> {
    var closed: Set<LaneKey> = []
    for (key, lane) in lanes {
      wake.add(lane.restsUntil)
      let queue = lane.queue
      if queue.isWaiting, queue.parts > 0 { wake.add(queue.stalls(after: limits.stall)) }
      wake.add(queue.earliestEnd)
      if !moves(lane, at: now) { closed.insert(key) }
    }
    for pool in pools.values { wake.add(pool.restsUntil) }
    return closed
  }

  // MARK: Answers

  /// Derives from a part's answers whether its lane goes on, and spares handles when the push
  /// service's judgement of them is in doubt.
  /// - Parameters:
  ///   - isShared: Nodes share the work.
  ///   - now: As of ``HubClock/steady``.
  ///   - wall: As of ``HubClock/now``.
  mutating func settle(
    _ outcome: inout PageOutcome, _ settlement: PartSettlement, of key: LaneKey, isShared: Bool,
    at now: Date, wall: Date
  ) -> [Lane.Change] {
    addIfNew(key)
    var changes: [Lane.Change] = []
    if let alarm = lanes[key]?.judge(&outcome, settlement, platform: key.platform, at: wall) {
      changes.append(.alarm(alarm))
    }
    changes += lanes[key]?.note(settlement, isShared: isShared, refusals: &refusals, at: now) ?? []
    return changes
  }

  // MARK: Credentials

  /// Sets which credential a lane is used with; `nil` when it has none.
  mutating func use(_ credential: Date?, for key: LaneKey, at now: Date) {
    if credential != nil { addIfNew(key) }
    guard lanes[key]?.setCredential(credential) == true else { return }
    replaced(key)
    // Without a credential every target has its outcome at once, whatever others have found with
    // the last one. Findings about the new one may have come already.
    guard credential != nil, let others = lanes[key]?.othersFindings else { return }
    adopt(believed(others, at: now))
  }

  /// The lane's credential was replaced: answers to the old one, also a pause that was asked for,
  /// do not count. Which connections the new one uses shows when something is read.
  mutating func replaced(_ key: LaneKey) {
    guard let before = lanes[key]?.pool else { return }
    lanes[key]?.recover()
    pools[.own(key)]?.endRest()
    guard before != .own(key) else { return }
    if pools[.own(key)] == nil {
      pools[.own(key)] = DispatchPool(ceiling: limits.laneTargets, page: limits.pageSize)
    }
    lanes[key]?.pool = .own(key)
    dropIfUnused(before)
  }

  /// A lane's credential is being replaced; ``use(_:for:at:)`` follows.
  mutating func forgetAnswers(of key: LaneKey) { lanes[key]?.forgetAnswers() }

  // MARK: Dead handles

  /// A hub may be gone, and its alarms with it.
  mutating func forgetHandles(of hub: Hub.ID) {
    for key in lanes.keys where key.hub == hub { lanes[key]?.forgetHandles() }
  }

  /// An alarm may have come after a page was judged and before it is recorded: spares its handles.
  func sparingDoubted(_ checkpoint: Checkpoint) -> Checkpoint {
    guard checkpoint.changesHandles else { return checkpoint }
    var checkpoint = checkpoint
    let hub = checkpoint.hub
    func isDoubted(_ handle: Checkpoint.Condemned) -> Bool {
      lanes[LaneKey(hub: hub, platform: handle.platform)]?.alarm != nil
    }
    let spared = checkpoint.deadHandles.filter(isDoubted)
    checkpoint.spared.formUnion(spared.map(\.registration))
    checkpoint.deadHandles.removeAll(where: isDoubted)
    checkpoint.replacedHandles.removeAll(where: isDoubted)
    return checkpoint
  }

  // MARK: Other nodes

  /// Findings of this node itself, which others with the same credential would make as well.
  /// - Parameter least: Shorter pauses are over before anybody has heard of them, in seconds.
  func ownFindings(longerThan least: Double, at now: Date) -> Set<LaneFinding> {
    var found: Set<LaneFinding> = []
    for (key, lane) in lanes {
      guard let credential = lane.credential else { continue }
      if let refusal = lane.refusal, lane.isRefusedHere {
        found.insert(
          LaneFinding(
            key, .refused, credential: credential, time: lane.restsUntil ?? now,
            count: lane.failures, reason: refusal.answer?.reason))
      }
      if let pool = pool(of: lane), pool.isRestOwn, let end = pool.restsUntil,
        end.timeIntervalSince(now) >= least
      {
        found.insert(LaneFinding(key, .pause, credential: credential, time: end))
      }
      if let alarm = lane.ownAlarm {
        found.insert(
          LaneFinding(
            key, .alarm, credential: credential, time: alarm.since, count: alarm.condemned,
            judged: alarm.judged))
      }
    }
    return found
  }

  /// Lanes that have recovered from a refusal since the last call.
  mutating func drainRecovered() -> Set<LaneKey> {
    let recovered = Set(lanes.filter { $0.value.mustAnnounceRecovery }.keys)
    for key in recovered { lanes[key]?.mustAnnounceRecovery = false }
    return recovered
  }

  /// Other nodes could not be told.
  mutating func putBack(recovered: Set<LaneKey>) {
    for key in recovered { lanes[key]?.mustAnnounceRecovery = true }
  }

  /// Replaces the findings of other nodes.
  /// - Parameter lifted: Lanes whose refusal another node has found to be over.
  /// - Returns: Lanes with a new alarm, in order, and since when their removals are in doubt.
  mutating func update(
    _ findings: [LaneFinding], lifted: Set<LaneKey>, at now: Date
  ) -> [(lane: LaneKey, since: Date)] {
    for key in lanes.keys { lanes[key]?.othersFindings = [] }
    for finding in findings {
      addIfNew(finding.lane)
      lanes[finding.lane]?.othersFindings.append(finding)
    }
    let believed = believed(findings, at: now)
    let refused = Set(believed.lazy.filter { $0.kind == .refused }.map(\.lane))
    for (key, lane) in lanes {
      // A node that has ended takes its finding along; what this one was told itself stays.
      let isOver = lane.isRefusedElsewhere && !lane.isRefusedHere && !refused.contains(key)
      if isOver || lifted.contains(key) { lanes[key]?.lift() }
      lanes[key]?.isRefusedElsewhere = false
    }
    adopt(believed)
    return setAlarms(believed.filter { $0.kind == .alarm })
  }

  private mutating func believed(_ findings: [LaneFinding], at now: Date) -> [LaneFinding] {
    findings.filter { lanes[$0.lane]?.believes($0, at: now) ?? false }
  }

  /// Lets lanes rest as other nodes have been asked to.
  private mutating func adopt(_ findings: [LaneFinding]) {
    for finding in findings {
      if lanes[finding.lane]?.pool == nil { assign(finding.lane, to: nil) }
      switch finding.kind {
      case .refused: lanes[finding.lane]?.adoptRefusal(finding)
      case .pause:
        if let pool = lanes[finding.lane]?.pool {
          pools[pool]?.rest(until: finding.time, isOwn: false)
        }
      case .alarm: break
      }
    }
  }

  private mutating func setAlarms(_ findings: [LaneFinding]) -> [(lane: LaneKey, since: Date)] {
    let before = Set(lanes.filter { $0.value.othersAlarm != nil }.keys)
    for key in before { lanes[key]?.othersAlarm = nil }
    for finding in findings {
      lanes[finding.lane]?.othersAlarm = .init(
        condemned: finding.count, judged: finding.judged, since: finding.time)
    }
    return lanes.compactMap { key, lane in
      before.contains(key) ? nil : lane.othersAlarm.map { (key, $0.since) }
    }.sorted { $0.lane < $1.lane }
  }
}

/// The unit of a send window: gateways that share connections, or a lane by itself.
enum PoolKey: Hashable, Sendable {
  case shared(Int)
  case own(LaneKey)
}

/// Counts of the answers to a part that say something about the credential as a whole.
struct AnswerSummary: Equatable, Sendable {
  /// Pushes that the service took, or refused for reasons of their own.
  var answered = 0
  /// Pushes that met a fault of the service (5xx) or no answer in time, or for which the service that
  /// issues tokens had one.
  var failed = 0
  /// The service limits this sender.
  var isThrottled = false
  /// The pause that the service asks of this sender, in seconds.
  var pause: Double?
  /// Number of pushes at a time at the end of the part, when it was sent in steps.
  var pace: Int?

  mutating func note(_ result: PushResult) {
    guard result.concernsOthers else { return }
    switch result.outcome {
    case .throttled:
      isThrottled = true
      notePause(result)
    case .pnsUnavailable:
      failed += 1
      notePause(result)
    case let outcome where outcome.isFaultOfService: failed += 1
    default: answered += 1
    }
  }

  /// `Throttled` and `PnsUnavailable` speak of the sender, not of one handle: so does the pause
  /// that they ask for (docs/protocol/push-services/README.md, section 3, rule 2).
  private mutating func notePause(_ result: PushResult) {
    guard result.retry == .backoff, let seconds = result.retryAfter, seconds > 0 else { return }
    pause = max(pause ?? 0, Double(seconds))
  }

  /// One fault in a page means nothing; one in twenty does.
  var isTroubled: Bool { isThrottled || pause != nil || failed >= 3 && failed * 20 >= answered }
}

extension NotificationOutcome {
  /// Whether it speaks of the service or the way to it, not of the push.
  var isFaultOfService: Bool {
    switch self {
    case .pnsUnreachable, .pnsServerError, .pnsUnavailable, .tokenProviderUnreachable,
      .tokenProviderInterfaceError:
      true
    default: false
    }
  }
}

/// The send window of a credential: the number of pushes that may be under way, adapted by additive
/// increase and multiplicative decrease.
///
/// The window opens to the capacity of the connections and two pages beyond, so that they never run
/// dry. It halves when the service throttles this sender or fails, once for all parts that were under
/// way together, and grows again by an eighth of a page for each window that went well. A window
/// smaller than a page has pages sent in steps.
struct DispatchPool {
  /// The least window: enough to notice that things go well again.
  static let least = 16

  private(set) var window: Int
  /// The largest window.
  private(set) var ceiling: Int
  private(set) var targets = 0
  private(set) var restsUntil: Date?
  /// The rest follows from this node's own answers, not from another node's.
  private(set) var isRestOwn = false
  /// Counts the decreases: a part is evidence only against the window it was sent under.
  private(set) var epoch = 0
  /// Decreases because of throttling in a row.
  private var throttles = 0
  private let page: Int

  init(ceiling: Int, page: Int) {
    self.ceiling = ceiling
    self.page = page
    window = ceiling
  }

  /// The connections carry more or less than before.
  mutating func setCeiling(_ new: Int) {
    guard new != ceiling else { return }
    window = window == ceiling ? new : min(window, new)
    ceiling = new
  }

  /// Whether so many more may be under way. A small part need not wait for a page to end.
  func hasRoom(for count: Int) -> Bool {
    targets + count <= window || count * 10 <= page && targets + count <= window + page
  }

  mutating func enter(_ count: Int) { targets += count }

  func isResting(at now: Date) -> Bool { restsUntil.map { now < $0 } ?? false }

  /// Number of pushes of a part that may be sent at once; `nil`: all.
  var pace: Int? { window < page ? window : nil }

  /// Growth of a pace after a step that went well.
  static func step(page: Int) -> Int { max(1, page / 8) }

  /// A part has its answers.
  /// - Parameters:
  ///   - sent: The epoch it was sent in.
  ///   - jitter: 0 up to 1; spreads a pause that the service set no length for.
  mutating func leave(
    _ count: Int, sent: Int, _ answers: AnswerSummary, jitter: Double, at now: Date
  ) {
    let inFlight = targets
    targets -= count
    if let pause = answers.pause { rest(until: now.addingTimeInterval(pause)) }
    if answers.isTroubled {
      guard sent == epoch else { return }
      epoch += 1
      window = max(min(Self.least, ceiling), min(window, max(inFlight, page)) / 2)
      guard answers.isThrottled else { return }
      throttles += 1
      if answers.pause == nil {
        let pause = RetryPolicy.connectionPause(failures: throttles) * (1 + jitter / 2)
        rest(until: now.addingTimeInterval(pause))
      }
    } else if answers.answered > 0, sent == epoch {
      throttles = 0
      let reached = max(window, answers.pace ?? 0)
      window = min(ceiling, reached + max(1, Self.step(page: page) * count / reached))
    }
  }

  mutating func endRest() {
    restsUntil = nil
    isRestOwn = false
    throttles = 0
  }

  /// - Parameter isOwn: `false` when another node has reported it.
  mutating func rest(until: Date, isOwn: Bool = true) {
    guard restsUntil.map({ $0 < until }) ?? true else { return }
    restsUntil = until
    isRestOwn = isOwn
  }
}
