import Foundation

/// Decides what is read, delivered and put off next. Pure: it is told what has happened and answers
/// with actions, so that fairness is a matter of this type alone.
///
/// Hubs take turns by what they hold, each in proportion to its weight; within a hub all
/// notifications with pages left take turns, one page each, and one that has not been looked at
/// goes first. So a small send waits for one round and never for a broadcast. No hub can hold more
/// than half of what the memory is meant for, nor two more than two thirds, and so on: a hub whose
/// push service is stuck leaves room for the others.
///
/// A page read splits into one part for each lane; a part starts when the connections of its
/// credential have room (``DispatchPool``), which goes to the lane with the least under way for its
/// weight, and there to the notification with the least under way; a small part goes ahead of
/// pages. A notification reads on while its pages are under way, unless enough waits for a lane
/// already.
///
/// While a lane rests (its credential is refused, it is down, or it asked for a long pause) nothing
/// is read for it and nothing written: the unread rest of an audience is the cheapest place to
/// wait, a retry row that is due the next best, and what has been read stays in memory, which
/// bounds it. So an outage costs a probe now and then, however much waits for its end. Only two
/// things leave memory: retries go back to their rows as they were, and a template send that goes
/// on for the sake of another lane writes rows for the resting one's share. A stalled lane, which
/// may answer or not, gives up what waits, to become retry rows.
///
/// A refused credential is the answer to every target that has been read, and to the first page of
/// every notification that was there before: they are refused at once and not put off. What comes
/// later, and what waited for another try, waits for the probe.
struct DispatchSchedule {
  enum Action: Equatable {
    /// Read the next page of a notification.
    case read(Int)
    case deliver(PartKey, isProbe: Bool)
    /// Write a retry row for each target, due at once: it is read when the lane moves. Targets
    /// whose time is over have their outcome.
    case postpone(PartKey)
    /// Give each target the lane's refusal as its outcome.
    case refuse(PartKey)
    /// Leave each target to the retry row that it has.
    case release(PartKey)
  }

  /// A part as the schedule sees it.
  struct Part {
    let key: PartKey
    let lane: LaneKey
    let targets: Int
  }

  private struct Entry {
    let flow: FlowKey
    /// From here on pages need no lane any more: their targets are counted as abandoned or aborted.
    var deadline: Date
    /// How many refusals there had been when it came.
    let arrival: Int
    /// No page of it has been asked for.
    var isFresh = true
    /// Targets of the first page, until it is recorded.
    var first: Int?
    /// Stands in its hub's ``HubTurns``.
    var hasPages: Bool
    var isReading = false
    var pages = 0
    var waiting = 0
    var targets = 0
    /// Lanes that pages of a template send have used so far.
    var seen: Set<LaneKey> = []
  }

  /// What bounds each other: native notifications of a hub to one push service, and those of a hub
  /// by templates.
  struct FlowKey: Hashable {
    let hub: Hub.ID
    /// `nil` for sends by templates.
    let lane: LaneKey?
  }

  private let limits: DispatchLimits
  private var entries: [Int: Entry] = [:]
  private var hubs: [Hub.ID: HubTurns] = [:]
  /// Targets read and not recorded, by flow; without first pages, so that many small sends do not
  /// keep a broadcast from being read.
  private var flows: [FlowKey: Int] = [:]
  /// Pages being read, by flow.
  private var reading: [FlowKey: Int] = [:]
  private(set) var lanes: [LaneKey: DispatchLane] = [:]
  private var pools: [PoolKey: DispatchPool] = [:]
  private var weights: [Hub.ID: Double] = [:]
  private var targets = 0
  /// Refused batches so far, of all lanes: tells what came before which refusal.
  private var refusals = 0
  /// Counts what was served; see ``DispatchLane/served``.
  private var served = 0

  init(limits: DispatchLimits) { self.limits = limits }

  /// Targets read and not yet recorded, those that a page under way may bring included.
  var targetsHeld: Int { targets }
  /// How many more may be held.
  private var free: Int { limits.targets - targets }

  // MARK: What happens

  /// - Parameter weights: The shares of hubs in relation to each other; 1 for those not named.
  mutating func setWeights(_ weights: [Hub.ID: Double]) {
    self.weights = weights
    for (hub, weight) in hubs.keys.map({ ($0, weight(of: $0)) }) { hubs[hub]?.weight = weight }
    for (lane, weight) in lanes.keys.map({ ($0, weight(of: $0.hub)) }) {
      lanes[lane]?.weight = weight
    }
  }

  private func weight(of hub: Hub.ID) -> Double { max(0.001, weights[hub] ?? 1) }

  /// - Parameter lane: Known in advance for a native send.
  mutating func add(
    _ notification: Int, hub: Hub.ID, lane: LaneKey?, deadline: Date, hasPages: Bool
  ) {
    let flow = FlowKey(hub: hub, lane: lane)
    entries[notification] = Entry(
      flow: flow, deadline: deadline, arrival: refusals, hasPages: hasPages)
    guard hasPages else { return }
    let weight = weight(of: hub)
    hubs[hub, default: HubTurns(weight: weight)].join(notification, flow)
  }

  mutating func remove(_ notification: Int) {
    guard let entry = entries.removeValue(forKey: notification) else { return }
    if entry.hasPages { hubs[entry.flow.hub]?.leave(notification, entry.flow) }
    endReading(entry)
    let read = entry.targets - (entry.isReading ? limits.pageSize : 0) - (entry.first ?? 0)
    Self.take(read, from: &flows, entry.flow)
    hold(-entry.targets, entry.flow.hub)
    guard entry.waiting > 0 else { return }
    for key in lanes.keys { lanes[key]?.forget(notification: notification) }
  }

  /// A notification ends before its time.
  /// - Returns: Its parts that wait for their lanes, which do not wait any more.
  mutating func end(_ notification: Int, at now: Date) -> [PartKey] {
    guard let entry = entries[notification] else { return [] }
    entries[notification]?.deadline = min(entry.deadline, now)
    guard entry.waiting > 0 else { return [] }
    var parts: [PartKey] = []
    for (key, lane) in lanes {
      let waiting = lane.allWaiting.filter { $0.notification == notification }
      guard !waiting.isEmpty else { continue }
      lanes[key]?.forget(notification: notification)
      parts += waiting.map(\.part)
    }
    entries[notification]?.waiting -= parts.count
    return parts.sorted { ($0.page, $0.index) < ($1.page, $1.index) }
  }

  /// A page is asked for, and its memory set aside.
  private mutating func reads(_ notification: Int) {
    guard let entry = entries[notification] else { return }
    entries[notification]?.isReading = true
    entries[notification]?.pages += 1
    entries[notification]?.targets += limits.pageSize
    hold(limits.pageSize, entry.flow.hub)
    // What the first page holds is anybody's guess; it does not count against the others yet.
    if !entry.isFresh {
      flows[entry.flow, default: 0] += limits.pageSize
      reading[entry.flow, default: 0] += 1
    }
    served += 1
    hubs[entry.flow.hub]?.read(notification, entry.flow, as: served)
  }

  private mutating func endReading(_ entry: Entry) {
    guard entry.isReading, !entry.isFresh else { return }
    Self.take(1, from: &reading, entry.flow)
    Self.take(limits.pageSize, from: &flows, entry.flow)
  }

  private static func take(_ count: Int, from counts: inout [FlowKey: Int], _ flow: FlowKey) {
    let rest = counts[flow, default: 0] - count
    counts[flow] = rest > 0 ? rest : nil
  }

  private mutating func hold(_ count: Int, _ hub: Hub.ID) {
    targets += count
    hubs[hub]?.held += count
    if let turns = hubs[hub], turns.isEmpty, turns.held <= 0 { hubs[hub] = nil }
  }

  /// A page has come: its parts wait for their lanes.
  mutating func pageRead(_ notification: Int, parts: [Part], targets count: Int, isLast: Bool) {
    guard let entry = entries[notification] else { return }
    entries[notification]?.isReading = false
    entries[notification]?.isFresh = false
    entries[notification]?.targets += count - limits.pageSize
    endReading(entry)
    if entry.isFresh {
      entries[notification]?.first = count
    } else {
      flows[entry.flow, default: 0] += count
    }
    hold(count - limits.pageSize, entry.flow.hub)
    if isLast {
      entries[notification]?.hasPages = false
      hubs[entry.flow.hub]?.leave(notification, entry.flow)
    }
    enqueue(notification, parts, since: entry.isFresh ? entry.arrival : refusals)
  }

  /// A page of retries has come.
  mutating func retriesRead(_ notification: Int, parts: [Part]) {
    guard entries[notification] != nil else { return }
    enqueue(notification, parts, since: refusals, isRetry: true)
  }

  /// What is left of a part that met trouble, or was not the probe, waits in memory again.
  mutating func returned(_ notification: Int, _ part: Part) {
    guard entries[notification] != nil else { return }
    entries[notification]?.waiting += 1
    lanes[part.lane]?.waitFirst(
      .init(part: part.key, notification: notification, targets: part.targets, since: refusals))
  }

  private mutating func enqueue(
    _ notification: Int, _ parts: [Part], since: Int, isRetry: Bool = false
  ) {
    for part in parts {
      entries[notification]?.waiting += 1
      entries[notification]?.seen.insert(part.lane)
      if lanes[part.lane] == nil { assign(part.lane, to: nil) }
      lanes[part.lane]?.wait(
        .init(
          part: part.key, notification: notification, targets: part.targets, since: since,
          isRetry: isRetry))
    }
  }

  /// Says which connections a lane uses and how far these reach.
  mutating func assign(_ key: LaneKey, to pool: GatewayPool?) {
    let place = pool.map { PoolKey.shared($0.id) } ?? .own(key)
    let ceiling = pool.map { min(limits.targets / 2, $0.capacity + 2 * limits.pageSize) }
    pools[
      place, default: DispatchPool(ceiling: ceiling ?? limits.laneTargets, page: limits.pageSize)
    ]
    .setCeiling(ceiling ?? limits.laneTargets)
    guard let before = lanes[key]?.pool else {
      var lane = DispatchLane(pool: place, page: limits.pageSize)
      lane.weight = weight(of: key.hub)
      lanes[key] = lane
      return
    }
    guard before != place else { return }
    lanes[key]?.pool = place
    // What other nodes have told may have come before anything was sent.
    if let pool = pools[before], !pool.isRestOwn, let end = pool.restsUntil {
      pools[place]?.rest(until: end, isOwn: false)
    }
    dropIfUnused(before)
  }

  private mutating func dropIfUnused(_ pool: PoolKey) {
    guard pools[pool]?.targets == 0, !lanes.values.contains(where: { $0.pool == pool }) else {
      return
    }
    pools[pool] = nil
  }

  /// A part that was in flight has its results.
  /// - Parameter jitter: 0 up to 1.
  mutating func partDone(
    _ key: LaneKey, _ part: PartKey, _ signs: PartSigns = PartSigns(), jitter: Double = 0,
    at now: Date
  ) {
    guard let left = lanes[key]?.leave(part, at: now) else { return }
    pools[left.pool]?.leave(left.targets, sent: left.epoch, signs, jitter: jitter, at: now)
    if lanes[key]?.pool != left.pool { dropIfUnused(left.pool) }
  }

  /// A page of the audience is recorded.
  mutating func pageDone(_ notification: Int, targets count: Int) {
    guard let entry = entries[notification] else { return }
    entries[notification]?.pages -= 1
    entries[notification]?.targets -= count
    // Pages are recorded in their order.
    if entry.first == nil { Self.take(count, from: &flows, entry.flow) }
    entries[notification]?.first = nil
    hold(-count, entry.flow.hub)
  }

  /// - Returns: Until when the lane rests; `nil` when it did already.
  mutating func fail(_ lane: LaneKey, _ failure: LaneFailure, at now: Date) -> Date? {
    if failure == .refused {
      refusals += 1
      lanes[lane]?.refuse(refusals)
    }
    return lanes[lane]?.fail(failure, at: now)
  }

  mutating func recover(_ lane: LaneKey) { lanes[lane]?.recover() }

  /// The lane's credential was replaced: what was said to the old one, a pause that was asked for
  /// included, does not count. Which connections the new one uses shows when something is read.
  mutating func replaced(_ key: LaneKey) {
    guard let before = lanes[key]?.pool else { return }
    lanes[key]?.recover()
    pools[.own(key)]?.endRest()
    guard before != .own(key) else { return }
    pools[.own(key)] =
      pools[.own(key)] ?? DispatchPool(ceiling: limits.laneTargets, page: limits.pageSize)
    lanes[key]?.pool = .own(key)
    dropIfUnused(before)
  }

  /// Failures of the lane in a row.
  func failures(of lane: LaneKey) -> Int { lanes[lane]?.failures ?? 0 }

  /// Takes note of what a part's answers say about the service.
  /// - Returns: Whether it is down.
  mutating func isDown(_ lane: LaneKey, _ signs: PartSigns) -> Bool {
    lanes[lane]?.isDown(signs) ?? false
  }

  /// How many pushes of a part may be sent to the lane at once; `nil`: all.
  func pace(of lane: LaneKey) -> Int? { lanes[lane].flatMap { pools[$0.pool]?.pace } }

  /// Until when the lane itself or its credential rests; `nil` when neither does.
  func restsUntil(_ key: LaneKey, at now: Date) -> Date? {
    guard let lane = lanes[key] else { return nil }
    return [lane.restsUntil, pools[lane.pool]?.restsUntil].compactMap { $0 }.filter { $0 > now }
      .max()
  }

  /// Lanes that have failed, by a refusal or an outage, and have not recovered, and those whose
  /// credential rests for long; in order.
  func lanesInTrouble(at now: Date) -> [LaneKey] {
    var found: [LaneKey] = []
    for (key, lane) in lanes where lane.mustProbe || restsLong(lane, at: now) { found.append(key) }
    return found.sorted()
  }

  private func restsLong(_ lane: DispatchLane, at now: Date) -> Bool {
    guard let end = pools[lane.pool]?.restsUntil else { return false }
    return end.timeIntervalSince(now) > limits.stall
  }

  // MARK: What other nodes know

  /// What this node itself has met that others, with the same credential, would meet as well.
  /// - Parameter least: Shorter pauses are over before anybody has heard of them, in seconds.
  func learnt(
    longerThan least: Double, at now: Date
  ) -> [(lane: LaneKey, kind: LaneWord.Kind, until: Date)] {
    lanes.flatMap { key, lane -> [(lane: LaneKey, kind: LaneWord.Kind, until: Date)] in
      var found: [(lane: LaneKey, kind: LaneWord.Kind, until: Date)] = []
      if let refusal = lane.refusal, refusal > 0 {
        found.append((key, .refused, lane.restsUntil ?? now))
      }
      if let pool = pools[lane.pool], pool.isRestOwn, let end = pool.restsUntil,
        end.timeIntervalSince(now) >= least
      {
        found.append((key, .pause, end))
      }
      return found
    }
  }

  /// Another node has met something.
  mutating func adopt(_ kind: LaneWord.Kind, of key: LaneKey, count: Int, until: Date) {
    if lanes[key] == nil { assign(key, to: nil) }
    switch kind {
    case .refused: lanes[key]?.adopt(refusals: count, until: until)
    case .pause: if let pool = lanes[key]?.pool { pools[pool]?.rest(until: until, isOwn: false) }
    case .alarm: break
    }
  }

  /// A refusal is over, as another node has found.
  mutating func lift(_ lane: LaneKey) { lanes[lane]?.lift() }

  /// Whether the lane's credential was refused, here or elsewhere, and no push has succeeded since.
  func isRefused(_ lane: LaneKey) -> Bool { lanes[lane]?.refusal != nil }

  // MARK: What to do

  mutating func next(at now: Date) -> [Action] {
    var actions: [Action] = []
    serve(at: now, &actions)
    read(at: now, &actions)
    return actions
  }

  /// Sets a part going.
  private mutating func start(_ key: LaneKey, at now: Date) -> DispatchLane.Waiting? {
    guard let pool = lanes[key]?.pool, let epoch = pools[pool]?.epoch,
      let started = lanes[key]?.start(epoch: epoch, at: now)
    else { return nil }
    pools[pool]?.enter(started.targets)
    served += 1
    lanes[key]?.served = served
    entries[started.notification]?.waiting -= 1
    return started
  }

  /// Takes parts from among those that wait for a lane, after they have been looked through.
  private mutating func take(
    _ parts: [DispatchLane.Waiting], from key: LaneKey, reviewed block: DispatchLane.Block,
    end: Date?, at now: Date
  ) {
    for part in parts { entries[part.notification]?.waiting -= 1 }
    lanes[key]?.take(Set(parts.map(\.part)), reviewed: block, end: end, at: now)
  }

  // MARK: Reading

  /// Asks for pages as long as there is memory for them.
  private mutating func read(at now: Date, _ actions: inout [Action]) {
    var turns: [Hub.ID] = []
    for (hub, held) in hubs where !held.isEmpty { turns.append(hub) }
    guard !turns.isEmpty, free >= limits.pageSize else { return }
    if turns.count > 1 { turns.sort() }
    let most = turns.reduce(0) { max($0, weight(of: $1)) }
    while free >= limits.pageSize, let place = neediest(turns) {
      let hub = turns[place]
      // What one hub may hold shrinks with what is left: however many are stuck, some is left.
      guard let own = hubs[hub], own.held <= free,
        let next = own.next(where: { canRead($0, share: own.weight / most, at: now) })
      else {
        turns.remove(at: place)
        continue
      }
      reads(next)
      actions.append(.read(next))
    }
  }

  /// The hub that holds the least for its weight.
  private func neediest(_ turns: [Hub.ID]) -> Int? {
    turns.indices.min { first, second in
      guard let one = hubs[turns[first]], let other = hubs[turns[second]] else { return false }
      return (one.load, one.served) < (other.load, other.served)
    }
  }

  /// - Parameter share: The hub's weight, as a part of the heaviest hub's that has pages left.
  private func canRead(_ notification: Int, share: Double, at now: Date) -> Bool {
    guard let entry = entries[notification], !entry.isReading else { return false }
    let most = pages(of: entry)
    guard entry.pages < most else { return false }
    if !entry.isFresh {
      let own = max(1, Int(share * Double(most)))
      guard flows[entry.flow, default: 0] + limits.pageSize <= own * limits.pageSize else {
        return false
      }
    }
    if now >= entry.deadline { return true }
    if let key = entry.flow.lane {
      guard let lane = lanes[key] else { return true }
      return moves(key, at: now) && mayWait(lane, entry)
        || entry.isFresh && lane.isRefused(since: entry.arrival, at: now)
    }
    // What rests or is stalled takes nothing from a template send, whose share for it is put off;
    // but somebody must gain by the page.
    guard entry.seen.isEmpty || entry.seen.contains(where: { moves($0, at: now) }) else {
      return false
    }
    return entry.seen.allSatisfy { key in
      guard let lane = lanes[key] else { return true }
      return mayWait(lane, entry) || lane.isResting(at: now)
    }
  }

  /// Whether more may wait for a lane in memory. Who has not been looked at may be small: a backlog
  /// of pages is no reason to let it wait unread, nor many small ones one to let pages.
  private func mayWait(_ lane: DispatchLane, _ entry: Entry) -> Bool {
    if entry.isFresh { return lane.waitingTargets < 4 * limits.laneBacklog }
    let coming = reading[entry.flow, default: 0] * limits.pageSize
    return lane.waitingInPages + coming < limits.laneBacklog
  }

  /// How many pages a notification, and its flow, may have under way: enough to keep the
  /// connections busy as far as they reach.
  private func pages(of entry: Entry) -> Int {
    var beyond = 0
    for key in entry.flow.lane.map({ [$0] }) ?? entry.seen {
      guard let pool = lanes[key].flatMap({ pools[$0.pool] }) else { continue }
      beyond += max(0, pool.window - limits.laneTargets) / limits.pageSize
    }
    return limits.pagesPerNotification + beyond
  }

  /// Whether what is read for the lane may soon be sent.
  private func moves(_ key: LaneKey, at now: Date) -> Bool {
    lanes[key].map { moves($0, at: now) } ?? true
  }

  private func moves(_ lane: DispatchLane, at now: Date) -> Bool {
    !lane.isResting(at: now) && !lane.isProbing
      && !lane.isStalled(after: limits.stall, at: now)
      && pools[lane.pool]?.isResting(at: now) != true
  }

  /// Whether a notification only waits for push services that take nothing at the moment.
  func isHeldBack(_ notification: Int, at now: Date) -> Bool {
    guard let entry = entries[notification], !entry.isReading else { return false }
    guard let lane = entry.flow.lane else {
      return !entry.seen.isEmpty && entry.seen.allSatisfy { !moves($0, at: now) }
    }
    return !moves(lane, at: now)
  }

  // MARK: Serving

  /// Starts what waits and has room, and gives up what waits for nothing.
  private mutating func serve(at now: Date, _ actions: inout [Action]) {
    var waiting: [LaneKey] = []
    for (key, lane) in lanes where lane.isWaiting { waiting.append(key) }
    if waiting.count > 1 { waiting.sort() }
    waiting.removeAll { key in
      guard let block = block(key, at: now) else { return false }
      review(key, block, at: now, &actions)
      return true
    }
    while let place = neediest(waiting) {
      let key = waiting[place]
      guard let lane = lanes[key], let part = lane.next, let pool = pools[lane.pool],
        !pool.isResting(at: now),
        // A lane with nothing under way may always have one part, no matter who fills the
        // connections.
        lane.parts == 0 || pool.hasRoom(for: part.targets)
      else {
        waiting.remove(at: place)
        continue
      }
      let isProbe = lane.mustProbe
      guard let started = start(key, at: now) else { break }
      actions.append(.deliver(started.part, isProbe: isProbe))
      if isProbe, let block = block(key, at: now) {
        review(key, block, at: now, &actions)
        waiting.remove(at: place)
      } else if lanes[key]?.isWaiting != true {
        waiting.remove(at: place)
      }
    }
  }

  /// The lane with the least under way for its weight.
  private func neediest(_ waiting: [LaneKey]) -> Int? {
    waiting.indices.min { first, second in
      guard let one = lanes[waiting[first]], let other = lanes[waiting[second]] else {
        return false
      }
      return (one.load, one.served) < (other.load, other.served)
    }
  }

  /// Why nothing of the lane's can start; `nil` when it can, or will before long.
  private func block(_ key: LaneKey, at now: Date) -> DispatchLane.Block? {
    guard let lane = lanes[key] else { return nil }
    if lane.isResting(at: now) { return .rest }
    if lane.isProbing { return .probe }
    if restsLong(lane, at: now) { return .rest }
    return lane.isStalled(after: limits.stall, at: now) ? .stall : nil
  }

  /// Decides what becomes of the parts that wait for a lane of which nothing can start.
  private mutating func review(
    _ key: LaneKey, _ block: DispatchLane.Block, at now: Date, _ actions: inout [Action]
  ) {
    guard let lane = lanes[key], lane.needsReview(block, at: now) else { return }
    var taken: [DispatchLane.Waiting] = []
    var end: Date?
    for part in lane.allWaiting {
      if let action = action(part, key, lane, block, at: now) {
        taken.append(part)
        actions.append(action)
      } else if let deadline = entries[part.notification]?.deadline {
        end = min(end ?? deadline, deadline)
      }
    }
    take(taken, from: key, reviewed: block, end: end, at: now)
  }

  /// - Returns: `nil` for a part that stays in memory.
  private func action(
    _ part: DispatchLane.Waiting, _ key: LaneKey, _ lane: DispatchLane, _ block: DispatchLane.Block,
    at now: Date
  ) -> Action? {
    if lane.isRefused(since: part.since, at: now) { return .refuse(part.part) }
    guard let entry = entries[part.notification] else { return nil }
    if entry.deadline <= now { return .postpone(part.part) }
    if part.isRetry { return block == .probe ? nil : .release(part.part) }
    if block == .stall { return .postpone(part.part) }
    // A template send goes on for the sake of the lanes that move; this one's share must not keep
    // its pages open.
    let goesOn = entry.flow.lane == nil && entry.seen.contains { $0 != key && moves($0, at: now) }
    return goesOn ? .postpone(part.part) : nil
  }

  /// How many retries of a lane may be read: as many as it will take before long, none while it
  /// rests.
  func retryRoom(_ key: LaneKey, at now: Date) -> Int {
    guard let lane = lanes[key], let pool = pools[lane.pool] else { return limits.pageSize }
    guard moves(key, at: now) else { return 0 }
    // One goes ahead; a few stand by to follow it.
    if lane.mustProbe { return lane.isWaiting || lane.parts > 0 ? 0 : DispatchPool.least }
    let free = pool.window - pool.targets - lane.waitingTargets
    return lane.parts == 0 && !lane.isWaiting ? max(DispatchPool.least, free) : max(0, free)
  }

  /// When time alone will allow something new; `nil` when only events can.
  func nextWake(after now: Date) -> Date? {
    var wake = EarliestMoment(after: now)
    var closed: Set<LaneKey> = []
    for (key, lane) in lanes {
      wake.add(lane.restsUntil)
      if lane.isWaiting, lane.parts > 0 { wake.add(lane.stalls(after: limits.stall)) }
      wake.add(lane.earliestEnd)
      if !moves(lane, at: now) { closed.insert(key) }
    }
    for pool in pools.values { wake.add(pool.restsUntil) }
    if !closed.isEmpty {
      for hub in hubs.values {
        for notification in hub.candidates {
          guard let entry = entries[notification], let lane = entry.flow.lane, closed.contains(lane)
          else { continue }
          wake.add(entry.deadline)
        }
      }
    }
    return wake.moment
  }
}
