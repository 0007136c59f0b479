import Foundation

extension DispatchSchedule {
  /// Asks for pages as long as there is memory for them.
  mutating func read(at now: Date, _ actions: inout [Action]) {
    var turns = hubs.filter { !$0.value.isEmpty }.map(\.key)
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
    // What rests or is stalled takes nothing from a template send, whose share for it is put off; but
    // somebody must gain by the page.
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
  func moves(_ key: LaneKey, at now: Date) -> Bool {
    guard let lane = lanes[key] else { return true }
    return !lane.isResting(at: now) && !lane.isProbing
      && !lane.isStalled(after: limits.stall, at: now)
      && pools[lane.pool]?.isResting(at: now) != true
  }
}
