import Foundation

/// Decides which page is read, and which part is delivered or put off next. Pure: its methods
/// are events, and it answers with actions, so that fairness is a matter of this type alone.
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
/// wait, a retry row that is due the next best, and pages that were read stay in memory, which is
/// bounded. So an outage costs a probe now and then, however much waits for its end. Only two
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
    /// Number of refusals when it came.
    let arrival: Int
    /// No page of it has been asked for.
    var isFresh = true
    /// Targets of the first page, until it is recorded.
    var first: Int?
    /// Stands in its hub's ``HubRotation``.
    var hasPages: Bool
    var isReading = false
    var pages = 0
    var waiting = 0
    var targets = 0
    /// Lanes that pages of a template send have used so far.
    var seen: Set<LaneKey> = []
  }

  /// Notifications with a common bound: native ones of a hub to one push service, and those of a hub
  /// by templates.
  struct FlowKey: Hashable {
    let hub: Hub.ID
    /// `nil` for sends by templates.
    let lane: LaneKey?
  }

  private let limits: DispatchLimits
  private var entries: [Int: Entry] = [:]
  private var hubs: [Hub.ID: HubRotation] = [:]
  /// Targets read and not recorded, by flow; without first pages, so that many small sends do not
  /// keep a broadcast from being read.
  private var flows: [FlowKey: Int] = [:]
  /// Pages being read, by flow.
  private var reading: [FlowKey: Int] = [:]
  var lanes: Lanes
  private var targets = 0
  /// Counts the pages that were asked for; see ``HubRotation/served``.
  private var served = 0

  init(limits: DispatchLimits) {
    self.limits = limits
    lanes = Lanes(limits: limits)
  }

  /// Targets read and not yet recorded, those that a page under way may bring included.
  var targetsHeld: Int { targets }
  /// Targets that may be held in addition.
  private var free: Int { limits.targets - targets }

  // MARK: Events

  /// - Parameter weights: The shares of hubs in relation to each other; 1 for those not named.
  mutating func setWeights(_ weights: [Hub.ID: Double]) {
    lanes.setWeights(weights)
    for (hub, weight) in hubs.keys.map({ ($0, lanes.weight(of: $0)) }) {
      hubs[hub]?.weight = weight
    }
  }

  /// - Parameter lane: Known in advance for a native send.
  mutating func add(
    _ notification: Int, hub: Hub.ID, lane: LaneKey?, deadline: Date, hasPages: Bool
  ) {
    let flow = FlowKey(hub: hub, lane: lane)
    entries[notification] = Entry(
      flow: flow, deadline: deadline, arrival: lanes.refusals, hasPages: hasPages)
    guard hasPages else { return }
    let weight = lanes.weight(of: hub)
    hubs[hub, default: HubRotation(weight: weight)].join(notification, flow)
  }

  mutating func remove(_ notification: Int) {
    guard let entry = entries.removeValue(forKey: notification) else { return }
    if entry.hasPages { hubs[entry.flow.hub]?.leave(notification, entry.flow) }
    endReading(entry)
    let read = entry.targets - (entry.isReading ? limits.pageSize : 0) - (entry.first ?? 0)
    Self.subtract(read, from: &flows, entry.flow)
    hold(-entry.targets, entry.flow.hub)
    guard entry.waiting > 0 else { return }
    lanes.forget(notification: notification)
  }

  /// A notification ends before its time.
  /// - Returns: Its parts that wait for their lanes, which do not wait any more.
  mutating func end(_ notification: Int, at now: Date) -> [PartKey] {
    guard let entry = entries[notification] else { return [] }
    entries[notification]?.deadline = min(entry.deadline, now)
    guard entry.waiting > 0 else { return [] }
    let parts = lanes.remove(notification: notification)
    entries[notification]?.waiting -= parts.count
    return parts
  }

  /// A page is asked for, and its memory set aside.
  private mutating func reads(_ notification: Int) {
    guard let entry = entries[notification] else { return }
    entries[notification]?.isReading = true
    entries[notification]?.pages += 1
    entries[notification]?.targets += limits.pageSize
    hold(limits.pageSize, entry.flow.hub)
    // The size of the first page is not known; it does not count against the others yet.
    if !entry.isFresh {
      flows[entry.flow, default: 0] += limits.pageSize
      reading[entry.flow, default: 0] += 1
    }
    served += 1
    hubs[entry.flow.hub]?.read(notification, entry.flow, as: served)
  }

  private mutating func endReading(_ entry: Entry) {
    guard entry.isReading, !entry.isFresh else { return }
    Self.subtract(1, from: &reading, entry.flow)
    Self.subtract(limits.pageSize, from: &flows, entry.flow)
  }

  private static func subtract(_ count: Int, from counts: inout [FlowKey: Int], _ flow: FlowKey) {
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
    enqueue(notification, parts, since: entry.isFresh ? entry.arrival : lanes.refusals)
  }

  /// A page of retries has come.
  mutating func retriesRead(_ notification: Int, parts: [Part]) {
    guard entries[notification] != nil else { return }
    enqueue(notification, parts, since: lanes.refusals, isRetry: true)
  }

  /// The unsent rest of a part that failed, or was not the probe, waits in memory again.
  mutating func returned(_ notification: Int, _ part: Part) {
    guard entries[notification] != nil else { return }
    entries[notification]?.waiting += 1
    lanes.prepend(
      .init(
        part: part.key, notification: notification, targets: part.targets, since: lanes.refusals),
      to: part.lane)
  }

  private mutating func enqueue(
    _ notification: Int, _ parts: [Part], since: Int, isRetry: Bool = false
  ) {
    for part in parts {
      entries[notification]?.waiting += 1
      entries[notification]?.seen.insert(part.lane)
      lanes.append(
        .init(
          part: part.key, notification: notification, targets: part.targets, since: since,
          isRetry: isRetry),
        to: part.lane)
    }
  }

  /// A page of the audience is recorded.
  mutating func pageDone(_ notification: Int, targets count: Int) {
    guard let entry = entries[notification] else { return }
    entries[notification]?.pages -= 1
    entries[notification]?.targets -= count
    // Pages are recorded in their order.
    if entry.first == nil { Self.subtract(count, from: &flows, entry.flow) }
    entries[notification]?.first = nil
    hold(-count, entry.flow.hub)
  }

  // MARK: Decisions

  mutating func next(at now: Date) -> [Action] {
    var actions: [Action] = []
    serve(at: now, &actions)
    read(at: now, &actions)
    return actions
  }

  // MARK: Reading

  /// Asks for pages as long as there is memory for them.
  private mutating func read(at now: Date, _ actions: inout [Action]) {
    var turns: [Hub.ID] = []
    for (hub, held) in hubs where !held.isEmpty { turns.append(hub) }
    guard !turns.isEmpty, free >= limits.pageSize else { return }
    if turns.count > 1 { turns.sort() }
    let most = turns.reduce(0) { max($0, lanes.weight(of: $1)) }
    while free >= limits.pageSize, let index = neediest(turns) {
      let hub = turns[index]
      // A hub's bound shrinks with what is left: however many are stuck, some is left.
      guard let own = hubs[hub], own.held <= free,
        let next = own.next(where: { [self] in canRead($0, share: own.weight / most, at: now) })
      else {
        turns.remove(at: index)
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
      guard let lane = lanes[key], lane.pool != nil else { return true }
      return lanes.moves(lane, at: now) && mayWait(lane.queue, entry)
        || entry.isFresh && lane.isRefused(since: entry.arrival, at: now)
    }
    // A lane that rests or is stalled does not hold up a template send, whose share for it is put off;
    // but some lane must gain by the page.
    guard entry.seen.isEmpty || entry.seen.contains(where: { lanes.moves($0, at: now) }) else {
      return false
    }
    return entry.seen.allSatisfy { key in
      guard let lane = lanes[key] else { return true }
      return mayWait(lane.queue, entry) || lane.isResting(at: now)
    }
  }

  /// Whether more may wait for a lane in memory. A notification that was not read yet may be small: a
  /// backlog of pages is no reason to let it wait unread, nor are many small ones one for pages.
  private func mayWait(_ queue: LaneQueue, _ entry: Entry) -> Bool {
    if entry.isFresh { return queue.waitingTargets < 4 * limits.laneBacklog }
    let coming = reading[entry.flow, default: 0] * limits.pageSize
    return queue.waitingInPages + coming < limits.laneBacklog
  }

  /// Number of pages that a notification, and its flow, may have under way: enough to keep the
  /// connections busy.
  private func pages(of entry: Entry) -> Int {
    var beyond = 0
    for key in entry.flow.lane.map({ [$0] }) ?? entry.seen {
      guard let pool = lanes.pool(of: key) else { continue }
      beyond += max(0, pool.window - limits.laneTargets) / limits.pageSize
    }
    return limits.pagesPerNotification + beyond
  }

  /// Whether a notification only waits for push services that take nothing at the moment.
  func isHeldBack(_ notification: Int, at now: Date) -> Bool {
    guard let entry = entries[notification], !entry.isReading else { return false }
    guard let lane = entry.flow.lane else {
      return !entry.seen.isEmpty && entry.seen.allSatisfy { !lanes.moves($0, at: now) }
    }
    return !lanes.moves(lane, at: now)
  }

  // MARK: Serving

  /// Starts parts that have room, and gives up those that wait for nothing.
  private mutating func serve(at now: Date, _ actions: inout [Action]) {
    var waiting = lanes.waiting
    waiting.removeAll { key in
      guard let block = lanes.block(key, at: now) else { return false }
      review(key, block, at: now, &actions)
      return true
    }
    while let index = neediest(waiting) {
      let key = waiting[index]
      guard let lane = lanes[key], let part = lane.queue.next, let pool = lanes.pool(of: lane),
        !pool.isResting(at: now),
        // A lane with nothing under way may always have one part, no matter who fills the
        // connections.
        lane.queue.parts == 0 || pool.hasRoom(for: part.targets)
      else {
        waiting.remove(at: index)
        continue
      }
      let isProbe = lane.mustProbe
      guard let started = lanes.start(key, at: now) else { break }
      entries[started.notification]?.waiting -= 1
      actions.append(.deliver(started.part, isProbe: isProbe))
      if isProbe, let block = lanes.block(key, at: now) {
        review(key, block, at: now, &actions)
        waiting.remove(at: index)
      } else if lanes[key]?.queue.isWaiting != true {
        waiting.remove(at: index)
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

  /// Decides what becomes of the parts that wait for a lane of which nothing can start.
  private mutating func review(
    _ key: LaneKey, _ block: LaneQueue.Block, at now: Date, _ actions: inout [Action]
  ) {
    guard let lane = lanes[key], lane.queue.needsReview(block, at: now) else { return }
    var removed: Set<PartKey> = []
    var end: Date?
    for part in lane.queue.allWaiting {
      if let action = action(part, key, lane, block, at: now) {
        removed.insert(part.part)
        entries[part.notification]?.waiting -= 1
        actions.append(action)
      } else if let deadline = entries[part.notification]?.deadline {
        end = min(end ?? deadline, deadline)
      }
    }
    lanes.didReview(key, removing: removed, block, end: end, at: now)
  }

  /// - Returns: `nil` for a part that stays in memory.
  private func action(
    _ part: LaneQueue.Waiting, _ key: LaneKey, _ lane: Lane, _ block: LaneQueue.Block,
    at now: Date
  ) -> Action? {
    if lane.isRefused(since: part.since, at: now) { return .refuse(part.part) }
    guard let entry = entries[part.notification] else { return nil }
    if entry.deadline <= now { return .postpone(part.part) }
    if part.isRetry { return block == .probe ? nil : .release(part.part) }
    if block == .stall { return .postpone(part.part) }
    // A template send goes on for the sake of the lanes that move; this one's share must not keep
    // its pages open.
    let goesOn =
      entry.flow.lane == nil && entry.seen.contains { $0 != key && lanes.moves($0, at: now) }
    return goesOn ? .postpone(part.part) : nil
  }

  /// When time alone will allow something new; `nil` when only events can.
  func nextWake(after now: Date) -> Date? {
    var wake = EarliestMoment(after: now)
    let closed = lanes.addWakes(to: &wake, at: now)
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

/// The order in which a hub's notifications have their pages read, and the hub's turn among others.
struct HubRotation {
  /// Notifications of one flow of which no page has been asked for, in the order they came. A reason
  /// not to read the first is one for all.
  private struct Newcomers {
    var list: [Int] = []
    var head = 0

    var first: Int? { head < list.count ? list[head] : nil }

    mutating func removeFirst() {
      head += 1
      guard head * 2 > list.count else { return }
      list.removeFirst(head)
      head = 0
    }
  }

  /// The hub's share in relation to others.
  var weight: Double
  private var newcomers: [DispatchSchedule.FlowKey: Newcomers] = [:]
  /// The others with pages left; ``turn`` is the index of the next.
  private var order: [Int] = []
  private var turn = 0
  /// Newcomers that have gone ahead since one of the others had its turn.
  private var ahead = 0
  /// Targets read and not recorded.
  var held = 0
  /// When it last had a page read, as a number.
  private(set) var served = 0

  /// Newcomers that may go ahead of the notification whose turn it is.
  private static let mostAhead = 8

  init(weight: Double) { self.weight = weight }

  /// Targets that it holds, in units of its share.
  var load: Double { Double(held) / weight }
  var isEmpty: Bool { newcomers.isEmpty && order.isEmpty }
  /// Notifications that may be next.
  var candidates: [Int] { newcomers.values.compactMap(\.first) + order }

  mutating func join(_ notification: Int, _ flow: DispatchSchedule.FlowKey) {
    newcomers[flow, default: Newcomers()].list.append(notification)
  }

  mutating func leave(_ notification: Int, _ flow: DispatchSchedule.FlowKey) {
    if let index = order.firstIndex(of: notification) {
      order.remove(at: index)
      if index < turn { turn -= 1 }
    } else if newcomers[flow]?.first == notification {
      removeFirst(of: flow)
    } else {
      newcomers[flow]?.list.removeAll { $0 == notification }
    }
  }

  private mutating func removeFirst(of flow: DispatchSchedule.FlowKey) {
    newcomers[flow]?.removeFirst()
    if newcomers[flow]?.first == nil { newcomers[flow] = nil }
  }

  /// The notification to read next of those that can be read.
  func next(where canRead: (Int) -> Bool) -> Int? {
    let newcomer = newcomers.values.compactMap(\.first).filter(canRead).min()
    if ahead < Self.mostAhead, let newcomer { return newcomer }
    for step in order.indices {
      let notification = order[(turn + step) % order.count]
      if canRead(notification) { return notification }
    }
    return newcomer
  }

  /// Notes that a page is being read.
  mutating func read(_ notification: Int, _ flow: DispatchSchedule.FlowKey, as number: Int) {
    served = number
    if newcomers[flow]?.first == notification {
      removeFirst(of: flow)
      order.append(notification)
      ahead += 1
    } else if let index = order.firstIndex(of: notification) {
      // Not wrapped round: a hub that joins now stands at the end, and is next.
      turn = index + 1
      ahead = 0
    }
  }
}
