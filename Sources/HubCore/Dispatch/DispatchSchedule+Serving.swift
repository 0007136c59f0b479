import Foundation

extension DispatchSchedule {
  /// Starts what waits and has room, and gives up what waits for nothing.
  mutating func serve(at now: Date, _ actions: inout [Action]) {
    var waiting = lanes.filter { $0.value.isWaiting }.map(\.key)
    // Which comes first must not hang on the order of a dictionary.
    if waiting.count > 1 {
      waiting.sort { ($0.hub, $0.platform.ordinal) < ($1.hub, $1.platform.ordinal) }
    }
    waiting.removeAll { key in
      guard let block = block(key, at: now) else { return false }
      review(key, block, at: now, &actions)
      return true
    }
    while let place = neediest(waiting) {
      let key = waiting[place]
      guard let lane = lanes[key], let part = lane.next, let pool = pools[lane.pool],
        !pool.isResting(at: now),
        // A lane with nothing under way may always have one part, no matter who fills the connections.
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
    if let end = pools[lane.pool]?.restsUntil, end.timeIntervalSince(now) > limits.stall {
      return .rest
    }
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
    var wakes: [Date] = []
    for lane in lanes.values {
      if let rest = lane.restsUntil { wakes.append(rest) }
      if lane.isWaiting, lane.parts > 0 { wakes.append(lane.stalls(after: limits.stall)) }
      if let end = lane.earliestEnd { wakes.append(end) }
    }
    for pool in pools.values {
      if let rest = pool.restsUntil { wakes.append(rest) }
    }
    let closed = Set(lanes.keys.lazy.filter { !self.moves($0, at: now) })
    if !closed.isEmpty {
      for notification in hubs.values.lazy.flatMap(\.candidates) {
        guard let entry = entries[notification], let lane = entry.flow.lane, closed.contains(lane)
        else { continue }
        wakes.append(entry.deadline)
      }
    }
    return wakes.filter { $0 > now }.min()
  }
}
