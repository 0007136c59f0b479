import Foundation

/// Decides what is read, delivered and put off next. Pure: it is told what has happened and answers
/// with actions, so that fairness is a matter of this type alone.
///
/// Hubs take turns by what they hold, each in proportion to its weight; within a hub all
/// notifications with pages left take turns, one page each, and one that has not been looked at goes
/// first. So a small send waits for one round and never for a broadcast. No hub can hold more than
/// half of what the memory is meant for, nor two more than two thirds, and so on: a hub whose push
/// service is stuck leaves room for the others.
///
/// A page read splits into one part for each lane; a part starts when the connections of its
/// credential have room (``DispatchPool``), which goes to the lane with the least under way for its
/// weight, and there to the notification with the least under way; a small part goes ahead of pages.
/// A notification reads on while its pages are under way, unless enough waits for a lane already.
///
/// While a lane rests (its credential is refused, it is down, or it asked for a long pause) nothing
/// is read for it and nothing written: the unread rest of an audience is the cheapest place to wait,
/// a retry row that is due the next best, and what has been read stays in memory, which bounds it.
/// So an outage costs a probe now and then, however much waits for its end. Only two things leave
/// memory: retries go back to their rows as they were, and a template send that goes on for the sake
/// of another lane writes rows for the resting one's share. A stalled lane, which may answer or not,
/// gives up what waits, to become retry rows.
///
/// A refused credential is the answer to every target that has been read, and to the first page of
/// every notification that was there before: they are refused at once and not put off. What comes
/// later, and what waited for another try, waits for the probe.
struct DispatchSchedule {
  enum Action: Equatable {
    /// Read the next page of a notification.
    case read(Int)
    case deliver(PartKey, isProbe: Bool)
    /// Write a retry row for each target, due at once: it is read when the lane moves. Targets whose
    /// time is over have their outcome.
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

  struct Entry {
    let flow: FlowKey
    /// From here on pages need no lane any more: their targets are counted as abandoned.
    let deadline: Date
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

  let limits: DispatchLimits
  private(set) var entries: [Int: Entry] = [:]
  private(set) var hubs: [Hub.ID: HubTurns] = [:]
  /// Targets read and not recorded, by flow; without first pages, so that many small sends do not
  /// keep a broadcast from being read.
  private(set) var flows: [FlowKey: Int] = [:]
  /// Pages being read, by flow.
  private(set) var reading: [FlowKey: Int] = [:]
  var lanes: [LaneKey: DispatchLane] = [:]
  var pools: [PoolKey: DispatchPool] = [:]
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
  var free: Int { limits.targets - targets }

  /// What stands in each lane, for those who look from outside.
  var laneStates: [LaneKey: DispatchLane] { lanes }

  // MARK: What happens

  /// - Parameter weights: The shares of hubs in relation to each other; 1 for those not named.
  mutating func setWeights(_ weights: [Hub.ID: Double]) {
    self.weights = weights
    for (hub, weight) in hubs.keys.map({ ($0, weight(of: $0)) }) { hubs[hub]?.weight = weight }
    for (lane, weight) in lanes.keys.map({ ($0, weight(of: $0.hub)) }) {
      lanes[lane]?.weight = weight
    }
  }

  func weight(of hub: Hub.ID) -> Double { max(0.001, weights[hub] ?? 1) }

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

  /// A page is asked for, and its memory set aside.
  mutating func reads(_ notification: Int) {
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

  /// Lanes that rest because their credential is refused.
  func refusedLanes(at now: Date) -> [LaneKey] {
    lanes.filter { $0.value.refusal != nil && $0.value.isResting(at: now) }.map(\.key)
  }

  // MARK: What to do

  mutating func next(at now: Date) -> [Action] {
    var actions: [Action] = []
    serve(at: now, &actions)
    read(at: now, &actions)
    return actions
  }

  /// Sets a part going.
  mutating func start(_ key: LaneKey, at now: Date) -> DispatchLane.Waiting? {
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
  mutating func take(
    _ parts: [DispatchLane.Waiting], from key: LaneKey, reviewed block: DispatchLane.Block,
    end: Date?, at now: Date
  ) {
    for part in parts { entries[part.notification]?.waiting -= 1 }
    lanes[key]?.take(Set(parts.map(\.part)), reviewed: block, end: end, at: now)
  }
}
