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
    _ part: PartKey, of key: LaneKey, _ signs: PartSigns = PartSigns(), jitter: Double = 0,
    at now: Date
  ) {
    guard let done = lanes[key]?.queue.finish(part, at: now) else { return }
    pools[done.pool]?.leave(done.targets, sent: done.epoch, signs, jitter: jitter, at: now)
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
    // Announcements of other nodes may have come before anything was sent.
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

  /// How many retries of a lane may be read: as many as it will take before long, none while it
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
    // Without a credential every target has its outcome at once, whatever others said of the last
    // one. Other nodes may have announced something of the new one already.
    guard credential != nil, let announced = lanes[key]?.announcements else { return }
    adopt(believed(announced, at: now))
  }

  /// The lane's credential was replaced: what was said to the old one, a pause that was asked for
  /// included, does not count. Which connections the new one uses shows when something is read.
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

  /// A lane's credential is being replaced; ``use(_:for:at:)`` says by which.
  mutating func forgetAnswers(of key: LaneKey) { lanes[key]?.forgetAnswers() }

  // MARK: Dead handles

  /// A hub may be gone, and its alarms with it.
  mutating func forgetHandles(of hub: Hub.ID) {
    for key in lanes.keys where key.hub == hub { lanes[key]?.forgetHandles() }
  }

  /// An alarm may have come after a page was judged and before it is recorded: spares its handles.
  func sparingDoubted(_ checkpoint: Checkpoint) -> Checkpoint {
    guard !checkpoint.deadHandles.isEmpty || !checkpoint.replacedHandles.isEmpty else {
      return checkpoint
    }
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

  /// This node's own findings that others, with the same credential, would meet as well.
  /// - Parameter least: Shorter pauses are over before anybody has heard of them, in seconds.
  func findings(longerThan least: Double, at now: Date) -> Set<LaneWord> {
    var found: Set<LaneWord> = []
    for (key, lane) in lanes {
      guard let credential = lane.credential else { continue }
      if let refusal = lane.refusal, refusal.number > 0 {
        found.insert(
          LaneWord(
            key, .refused, credential: credential, time: lane.restsUntil ?? now,
            count: lane.failures, reason: refusal.answer?.reason))
      }
      if let pool = pool(of: lane), pool.isRestOwn, let end = pool.restsUntil,
        end.timeIntervalSince(now) >= least
      {
        found.insert(LaneWord(key, .pause, credential: credential, time: end))
      }
      if let alarm = lane.ownAlarm {
        found.insert(
          LaneWord(
            key, .alarm, credential: credential, time: alarm.since, count: alarm.condemned,
            judged: alarm.judged))
      }
    }
    return found
  }

  /// Lanes that have recovered from a refusal, which other nodes are told once.
  mutating func takeRecovered() -> Set<LaneKey> {
    let recovered = Set(lanes.filter { $0.value.mustAnnounceRecovery }.keys)
    for key in recovered { lanes[key]?.mustAnnounceRecovery = false }
    return recovered
  }

  /// Other nodes could not be told.
  mutating func putBack(recovered: Set<LaneKey>) {
    for key in recovered { lanes[key]?.mustAnnounceRecovery = true }
  }

  /// Takes the announcements of other nodes in the place of those before.
  /// - Parameter lifted: Lanes whose refusal another node has found to be over.
  /// - Returns: Lanes with a new alarm, in order, and since when their removals are in doubt.
  mutating func hear(
    _ words: [LaneWord], lifted: Set<LaneKey>, at now: Date
  ) -> [(lane: LaneKey, since: Date)] {
    for key in lanes.keys { lanes[key]?.announcements = [] }
    for word in words {
      addIfNew(word.lane)
      lanes[word.lane]?.announcements.append(word)
    }
    let believed = believed(words, at: now)
    let refused = Set(believed.lazy.filter { $0.kind == .refused }.map(\.lane))
    for (key, lane) in lanes {
      let isOver = lane.isRefusedElsewhere && !refused.contains(key)
      if isOver || lifted.contains(key) { lanes[key]?.lift() }
      lanes[key]?.isRefusedElsewhere = false
    }
    adopt(believed)
    return setAlarms(believed.filter { $0.kind == .alarm })
  }

  private mutating func believed(_ words: [LaneWord], at now: Date) -> [LaneWord] {
    words.filter { lanes[$0.lane]?.believes($0, at: now) ?? false }
  }

  /// Lets lanes rest as other nodes have been asked to.
  private mutating func adopt(_ words: [LaneWord]) {
    for word in words {
      if lanes[word.lane]?.pool == nil { assign(word.lane, to: nil) }
      switch word.kind {
      case .refused: lanes[word.lane]?.adoptRefusal(word)
      case .pause:
        if let pool = lanes[word.lane]?.pool { pools[pool]?.rest(until: word.time, isOwn: false) }
      case .alarm: break
      }
    }
  }

  private mutating func setAlarms(_ words: [LaneWord]) -> [(lane: LaneKey, since: Date)] {
    let before = Set(lanes.filter { $0.value.othersAlarm != nil }.keys)
    for key in before { lanes[key]?.othersAlarm = nil }
    for word in words {
      lanes[word.lane]?.othersAlarm = .init(
        condemned: word.count, judged: word.judged, since: word.time)
    }
    return lanes.compactMap { key, lane in
      before.contains(key) ? nil : lane.othersAlarm.map { (key, $0.since) }
    }.sorted { $0.lane < $1.lane }
  }
}
