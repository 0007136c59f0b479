import Foundation

/// Decides what is read, delivered and put off next. Pure: it is told what has happened and answers
/// with actions, so that fairness is a matter of this type alone.
///
/// All notifications with pages left take turns, one page each, so a small send waits for one round
/// and never for a broadcast. A page read splits into one part for each lane; a part starts when its
/// lane has room, in the order of arrival. A notification reads on while its pages are under way,
/// unless one of its parts waits for a lane: then it has its next page ready and needs no other.
///
/// A lane that rests (its credential is refused, it cannot be reached, or it asked for a pause), is
/// being probed or is stalled gives up what waits for it, to become retry rows; native
/// notifications read no further for it until it moves again, since the unread rest of an audience
/// is the cheapest place to wait.
///
/// A refused credential is the answer to every target that has been read, and to the first page of
/// every notification that was there before: they are refused at once and not put off. Only what
/// comes later waits for the probe.
struct DispatchSchedule {
  enum Action: Equatable {
    /// Read the next page of a notification.
    case read(Int)
    case deliver(PartKey, isProbe: Bool)
    /// Write a retry row for each target, due then.
    case postpone(PartKey, until: Date)
    /// Give each target the lane's refusal as its outcome.
    case refuse(PartKey)
  }

  /// A part as the schedule sees it.
  struct Part {
    let key: PartKey
    let lane: LaneKey
    let targets: Int
  }

  private struct Entry {
    /// Known in advance for a native send.
    let lane: LaneKey?
    /// From here on pages need no lane any more: their targets are counted as abandoned.
    let deadline: Date
    /// How many refusals there had been when it came.
    let arrival: Int
    /// No page of it has been asked for.
    var isFresh = true
    /// Stands in ``DispatchSchedule/order``.
    var hasPages: Bool
    var isReading = false
    var pages = 0
    var waiting = 0
    var targets = 0
    /// Lanes that pages of a template send have used so far.
    var seen: Set<LaneKey> = []
  }

  private let limits: DispatchLimits
  private var entries: [Int: Entry] = [:]
  /// Notifications with pages left; ``turn`` is the place of the next.
  private var order: [Int] = []
  private var turn = 0
  private var lanes: [LaneKey: DispatchLane] = [:]
  private var targets = 0
  /// Refused batches so far, of all lanes: tells what came before which refusal.
  private var refusals = 0

  init(limits: DispatchLimits) { self.limits = limits }

  /// Targets read and not yet recorded, those that a page under way may bring included.
  var targetsHeld: Int { targets }

  /// What stands in each lane, for those who look from outside.
  var laneStates: [LaneKey: DispatchLane] { lanes }

  // MARK: What happens

  mutating func add(_ notification: Int, lane: LaneKey?, deadline: Date, hasPages: Bool) {
    entries[notification] = Entry(
      lane: lane, deadline: deadline, arrival: refusals, hasPages: hasPages)
    if hasPages { order.append(notification) }
  }

  mutating func remove(_ notification: Int) {
    guard let entry = entries.removeValue(forKey: notification) else { return }
    targets -= entry.targets
    if entry.hasPages { leaveOrder(notification) }
    guard entry.waiting > 0 else { return }
    for key in lanes.keys { lanes[key]?.forget(notification: notification) }
  }

  /// A page has come: its parts wait for their lanes.
  mutating func pageRead(_ notification: Int, parts: [Part], targets count: Int, isLast: Bool) {
    guard let entry = entries[notification] else { return }
    entries[notification]?.isReading = false
    entries[notification]?.isFresh = false
    entries[notification]?.targets += count - limits.pageSize
    targets += count - limits.pageSize
    if isLast {
      entries[notification]?.hasPages = false
      leaveOrder(notification)
    }
    enqueue(notification, parts, since: entry.isFresh ? entry.arrival : refusals)
  }

  /// A page of retries has come.
  mutating func retriesRead(_ notification: Int, parts: [Part]) {
    guard let entry = entries[notification] else { return }
    enqueue(notification, parts, since: entry.arrival)
  }

  private mutating func enqueue(_ notification: Int, _ parts: [Part], since: Int) {
    for part in parts {
      entries[notification]?.waiting += 1
      entries[notification]?.seen.insert(part.lane)
      lanes[part.lane, default: DispatchLane()].wait(
        .init(part: part.key, notification: notification, targets: part.targets, since: since))
    }
  }

  /// A part that was in flight has its results.
  mutating func partDone(_ lane: LaneKey, targets: Int, at now: Date) {
    lanes[lane]?.leave(targets: targets, at: now)
  }

  /// A page of the audience is recorded.
  mutating func pageDone(_ notification: Int, targets count: Int) {
    guard entries[notification] != nil else { return }
    entries[notification]?.pages -= 1
    entries[notification]?.targets -= count
    targets -= count
  }

  /// - Returns: Until when the lane rests; `nil` when it did already.
  mutating func fail(_ lane: LaneKey, _ failure: LaneFailure, at now: Date) -> Date? {
    if failure == .refused {
      refusals += 1
      lanes[lane]?.refuse(refusals)
    }
    return lanes[lane]?.fail(failure, at: now)
  }
  mutating func rest(_ lane: LaneKey, until: Date) { lanes[lane]?.rest(until: until) }
  mutating func recover(_ lane: LaneKey) { lanes[lane]?.recover() }

  /// Lanes that rest because their credential is refused.
  func refusedLanes(at now: Date) -> [LaneKey] {
    lanes.filter { $0.value.refusal != nil && $0.value.isResting(at: now) }.map(\.key)
  }

  private mutating func leaveOrder(_ notification: Int) {
    guard let index = order.firstIndex(of: notification) else { return }
    order.remove(at: index)
    if index < turn { turn -= 1 }
  }

  // MARK: What to do

  mutating func next(at now: Date) -> [Action] {
    var actions: [Action] = []
    for (key, lane) in lanes where !lane.queue.isEmpty { serve(key, at: now, &actions) }
    read(at: now, &actions)
    return actions
  }

  private mutating func serve(_ key: LaneKey, at now: Date, _ actions: inout [Action]) {
    guard var lane = lanes[key] else { return }
    if lane.isResting(at: now) || lane.isProbing || lane.isStalled(after: limits.stall, at: now) {
      let moves = now.addingTimeInterval(lane.isProbing ? limits.probe : limits.stall)
      let until = lane.isResting(at: now) ? lane.restsUntil ?? moves : moves
      for waiting in lane.clear() {
        entries[waiting.notification]?.waiting -= 1
        let isRefused = lane.isRefused(since: waiting.since, at: now)
        actions.append(isRefused ? .refuse(waiting.part) : .postpone(waiting.part, until: until))
      }
    } else {
      let isProbe = lane.mustProbe
      for started in lane.admit(limit: limits.laneTargets, at: now) {
        entries[started.notification]?.waiting -= 1
        actions.append(.deliver(started.part, isProbe: isProbe))
      }
      if isProbe, !lane.queue.isEmpty {
        lanes[key] = lane
        return serve(key, at: now, &actions)
      }
    }
    lanes[key] = lane
  }

  private mutating func read(at now: Date, _ actions: inout [Action]) {
    let count = order.count
    let first = turn < count ? turn : 0
    for step in 0..<count {
      guard targets + limits.pageSize <= limits.targets else { break }
      let place = (first + step) % count
      let notification = order[place]
      guard canRead(notification, at: now) else { continue }
      entries[notification]?.isReading = true
      entries[notification]?.pages += 1
      entries[notification]?.targets += limits.pageSize
      targets += limits.pageSize
      actions.append(.read(notification))
      // Not wrapped round: whoever joins now stands at the end, and is next.
      turn = place + 1
    }
  }

  private func canRead(_ notification: Int, at now: Date) -> Bool {
    guard let entry = entries[notification], !entry.isReading, entry.waiting == 0,
      entry.pages < limits.pagesPerNotification
    else { return false }
    if now >= entry.deadline { return true }
    if let key = entry.lane {
      guard let lane = lanes[key] else { return true }
      return isOpen(lane, at: now)
        || entry.isFresh && lane.isRefused(since: entry.arrival, at: now)
    }
    // What rests or is stalled takes nothing from a template send; its share is put off.
    return entry.seen.allSatisfy { key in
      guard let lane = lanes[key] else { return true }
      return lane.waitingTargets < limits.laneBacklog || lane.isResting(at: now)
    }
  }

  private func isOpen(_ lane: DispatchLane, at now: Date) -> Bool {
    lane.waitingTargets < limits.laneBacklog && !lane.isResting(at: now) && !lane.isProbing
      && !lane.isStalled(after: limits.stall, at: now)
  }

  /// When time alone will allow something new; `nil` when only events can.
  func nextWake(after now: Date) -> Date? {
    var wakes: [Date] = []
    for lane in lanes.values {
      if let rest = lane.restsUntil { wakes.append(rest) }
      if !lane.queue.isEmpty, lane.parts > 0 { wakes.append(lane.stalls(after: limits.stall)) }
    }
    let closed = Set(lanes.lazy.filter { !self.isOpen($0.value, at: now) }.map(\.key))
    if !closed.isEmpty {
      for notification in order {
        guard let entry = entries[notification], let lane = entry.lane, closed.contains(lane)
        else { continue }
        wakes.append(entry.deadline)
      }
    }
    return wakes.filter { $0 > now }.min()
  }
}
