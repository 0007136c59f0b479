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
      guard let end = blocked(key, at: now) else { return false }
      giveUp(key, until: end, at: now, &actions)
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
      if isProbe, let end = blocked(key, at: now) { giveUp(key, until: end, at: now, &actions) }
      if lanes[key]?.isWaiting != true { waiting.remove(at: place) }
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

  /// Until when nothing of the lane's can start; `nil` when it can, or will before long.
  private func blocked(_ key: LaneKey, at now: Date) -> Date? {
    guard let lane = lanes[key] else { return nil }
    if lane.isResting(at: now), let end = lane.restsUntil { return end }
    if lane.isProbing { return now.addingTimeInterval(limits.probe) }
    if let end = pools[lane.pool]?.restsUntil, end.timeIntervalSince(now) > limits.stall {
      return end
    }
    return lane.isStalled(after: limits.stall, at: now)
      ? now.addingTimeInterval(limits.stall) : nil
  }

  private mutating func giveUp(
    _ key: LaneKey, until: Date, at now: Date, _ actions: inout [Action]
  ) {
    for waiting in takeBack(key) {
      let isRefused = lanes[key]?.isRefused(since: waiting.since, at: now) ?? false
      actions.append(isRefused ? .refuse(waiting.part) : .postpone(waiting.part, until: until))
    }
  }

  /// When time alone will allow something new; `nil` when only events can.
  func nextWake(after now: Date) -> Date? {
    var wakes: [Date] = []
    for lane in lanes.values {
      if let rest = lane.restsUntil { wakes.append(rest) }
      if lane.isWaiting, lane.parts > 0 { wakes.append(lane.stalls(after: limits.stall)) }
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
