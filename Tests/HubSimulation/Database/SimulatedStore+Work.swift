package import Foundation
package import HubCore
import NotificationHubs
import Synchronization

/// Unfinished deliveries, and the nodes that own them.
extension SimulatedStore {
  package func unfinishedNotifications() async throws -> FoundNotifications {
    try await read { state in
      FoundNotifications(state.notifications.active(where: \.isOpen).map { $0.shown() })
    }
  }

  package func claimWork(limit: Int) async throws -> FoundNotifications {
    guard let node = livingID, limit > 0 else { return FoundNotifications() }
    let claim = max(1, Int64(random() >> 1))
    let (now, steady) = (machine.steady(), clock.steady().stored)
    let lost = process.withLock { $0.lease?.lostClaims(at: now) ?? [] }
    do {
      return try await write(ifUnclear: .refuse, isIdle: \.records.isEmpty) { state in
        state.claim(claim, limit: limit, afterLosing: lost, at: node)
        state.date(claim, steady)
        return state.parts(of: claim, at: node)
      }
    } catch {
      // It may have been done, or be so in a while: later claims take what this one has.
      let now = machine.steady()
      process.withLock { $0.lease?.lose(claim: claim, at: now) }
      throw error
    }
  }

  package func unclaimedWork(
    dueBy moment: Date, beside known: Set<WorkID>
  ) async throws -> UnclaimedWork {
    let node = nodeID
    let steady = moment.addingTimeInterval(clock.steady().timeIntervalSince(clock.now()))
    return try await read { state in
      var found = UnclaimedWork(count: 0)
      for row in state.notifications.active {
        let record = row.record
        guard row.isOpen else {
          if let due = record.scheduledFor, due <= moment { found.count += 1 }
          continue
        }
        guard record.steadyRelease.map({ $0 <= steady }) ?? (record.releasedAt <= moment) else {
          continue
        }
        // Parts that this node owns and does not know of wait for nobody else.
        let forgotten = Set(row.forgotten(by: node, beside: known))
        let open = row.parts.indices.filter { !row.parts[$0].isDone }
        let isClaimed = open.contains { index in
          guard row.parts[index].epoch > 0, let owner = row.parts[index].owner else { return false }
          return state.isAlive(owner) && !forgotten.contains(index)
        }
        if !open.isEmpty, !isClaimed { found.count += 1 }
        if !forgotten.isEmpty { found.isForgotten = true }
      }
      return found
    }
  }

  package func releaseWork() async throws {
    guard let node = owner else { return }
    try await write(ifUnclear: .again) { $0.release(node) }
  }

  package func releaseWork(_ lease: WorkLease, of id: NotificationID, hub: Hub.ID) async throws {
    guard let node = owner else { return }
    try await write(ifUnclear: .again) { state in
      guard let row = state.notification(id, hub: hub), let index = row.index(of: lease.part),
        row.parts[index].isOpen(at: node), row.parts[index].epoch == lease.epoch
      else { return }
      state.notifications.change(row.number) { $0.parts[index].owner = nil }
    }
  }

  package func releaseWork(beside known: Set<WorkID>) async throws {
    guard let node = owner else { return }
    try await write(ifUnclear: .again) { state in
      for row in state.notifications.active(where: \.isOpen) {
        let forgotten = row.forgotten(by: node, beside: known)
        guard !forgotten.isEmpty else { continue }
        state.notifications.change(row.number) { row in
          for index in forgotten { row.parts[index].owner = nil }
        }
      }
    }
  }

  package func directTargets(
    of id: NotificationID, hub: Hub.ID, after: RegistrationID, limit: Int
  ) async throws -> TargetPage {
    try await read { state in
      guard let row = state.notification(id, hub: hub), limit > 0 else { return TargetPage() }
      let numbers = row.targets.indices.map { RegistrationID($0 + 1) }.filter { $0 > after }
      var page = row.directPage(of: Array(numbers.prefix(limit)))
      if numbers.count > limit { page.next = page.targets.last?.registration }
      return page
    }
  }

  // MARK: Retries

  package func dueRetries(
    of lane: LaneKey, asOf now: Date, limit: Int
  ) async throws -> [DueRetries] {
    let (node, now) = (owner, now.stored)
    return try await read { [self] state in
      let due = state.retries(of: lane, at: node).enumerated().filter { $1.retry.due <= now }
        .sorted { ($0.element.retry.due, $0.offset) < ($1.element.retry.due, $1.offset) }
        .prefix(max(0, limit)).sorted { $0.offset < $1.offset }
      return grouped(due.map(\.element), state)
    }
  }

  package func retries(
    of lane: LaneKey, notification: NotificationID, part: Int, limit: Int
  ) async throws -> [DueRetries] {
    let node = owner
    return try await read { [self] state in
      try state.requireHub(lane.hub)
      let all = state.retries(of: lane, at: node).filter {
        $0.row.record.id == notification && $0.part == part
      }
      return grouped(Array(all.prefix(max(0, limit))), state)
    }
  }

  package func nextRetry(of lane: LaneKey) async throws -> Date? {
    let node = owner
    return try await read { $0.retries(of: lane, at: node).map(\.retry.due).min() }
  }

  package func retryLanes() async throws -> [LaneKey: Date] {
    let node = owner
    return try await read { state in
      var lanes: [LaneKey: Date] = [:]
      for found in state.retries(at: node) {
        let lane = LaneKey(hub: found.row.record.hub, platform: found.retry.platform)
        lanes[lane] = min(lanes[lane] ?? found.retry.due, found.retry.due)
      }
      return lanes
    }
  }

  package func waitingRetries(_ id: NotificationID, part: Int?, hub: Hub.ID) async throws -> Int {
    let node = owner
    return try await read { state in
      guard let row = state.notification(id, hub: hub) else { return 0 }
      if let part, let node, let index = row.index(of: part), row.parts[index].owner != node {
        throw StoreError.leaseLost
      }
      return row.parts.lazy.filter { part == nil || $0.part == part }
        .reduce(0) { $0 + $1.retries.count }
    }
  }

  /// - Parameter found: Of one lane, those of a part beside each other.
  private func grouped(_ found: [WaitingRetry], _ state: State) -> [DueRetries] {
    var groups: [[WaitingRetry]] = []
    for one in found {
      if let last = groups.last?[0], (last.row.number, last.part) == (one.row.number, one.part) {
        groups[groups.count - 1].append(one)
      } else {
        groups.append([one])
      }
    }
    return groups.map { group in
      let (row, part) = (group[0].row, group[0].part)
      let numbers = group.map(\.retry.registration)
      let page =
        row.record.request.isDirect
        ? row.directPage(of: numbers)
        : self.page(of: numbers.compactMap { state.registration($0, hub: row.record.hub) }, state)
      let live = Set(page.targets.map(\.registration))
      return DueRetries(
        notification: row.record.id, part: part, hub: row.record.hub, page: page,
        attempts: Dictionary(
          uniqueKeysWithValues: group.map { ($0.retry.registration, $0.retry.attempts) }),
        gone: numbers.filter { !live.contains($0) })
    }
  }
}

/// A retry and the part that it belongs to.
private struct WaitingRetry {
  let row: NotificationRow
  let part: Int
  let retry: Checkpoint.Retry
}

extension NotificationRow {
  /// Indices of the parts that a node has claimed and that are not among the known ones.
  fileprivate func forgotten(by node: Int64, beside known: Set<WorkID>) -> [Int] {
    parts.indices.filter { index in
      let part = parts[index]
      return part.owner == node && part.epoch > 0 && !part.isDone
        && !known.contains(WorkID(record.id, part: part.part))
    }
  }

  /// Targets of a direct send by their numbers, which are in rising order.
  fileprivate func directPage(of numbers: [RegistrationID]) -> TargetPage {
    var page = TargetPage()
    for number in numbers {
      guard let target = target(number) else { continue }
      page.targets.append(
        Target(
          registration: number, handle: page.append(target.handle), platform: target.platform,
          template: -1, variables: -1, confirmedAt: 0,
          isDuplicate: targets[Int(number) - 1].isDuplicate))
    }
    return page
  }
}

extension SimulatedDatabase.State {
  /// The most parts of one notification that a node owns at a time, so that others find some.
  private static let claimedParts = 4

  /// Takes parts that no living node has, of the oldest notifications first; each node begins with
  /// other parts of a notification.
  fileprivate mutating func claim(
    _ claim: Int64, limit: Int, afterLosing lost: [Int64], at node: Int64
  ) {
    func isLost(_ part: WorkPart) -> Bool { part.claim.map { lost.contains($0) } ?? false }
    func isFree(_ part: WorkPart) -> Bool {
      guard let owner = part.owner else { return true }
      if owner == node { return part.epoch == 0 || isLost(part) }
      return !isAlive(owner)
    }
    // Work that a dead node claims would be free at once.
    var left = isAlive(node) ? limit : 0
    for row in notifications.active(where: \.isOpen) where left > 0 {
      let own = row.parts.count { $0.isOpen(at: node) && $0.epoch > 0 && !isLost($0) }
      let free = row.parts.indices.filter { !row.parts[$0].isDone && isFree(row.parts[$0]) }
        .sorted { mixed(row.parts[$0].part, node) < mixed(row.parts[$1].part, node) }
        .prefix(min(left, max(0, Self.claimedParts - own)))
      guard !free.isEmpty else { continue }
      left -= free.count
      notifications.change(row.number) { row in
        for index in free {
          row.parts[index].owner = node
          row.parts[index].epoch += 1
          row.parts[index].claim = claim
        }
      }
    }
  }

  /// Dates notifications that were accepted by a node without a settled clock: they count from
  /// their first claim.
  fileprivate mutating func date(_ claim: Int64, _ steady: Date) {
    let undated = notifications.active { row in
      row.record.steadyRelease == NotificationRecord.unknownRelease
        && row.parts.contains { $0.claim == claim }
    }
    for row in undated {
      notifications.change(row.number) { $0.record.steadyRelease = steady }
    }
  }

  /// The parts that a claim has taken, as one record each, the oldest notification first.
  fileprivate func parts(of claim: Int64, at node: Int64) -> FoundNotifications {
    FoundNotifications(
      notifications.active { $0.parts.contains { $0.claim == claim } }.flatMap { row in
        row.parts.filter { $0.claim == claim && $0.owner == node }.map { part in
          var record = row.record(of: part.part)
          record.lease = part.lease
          return record
        }
      })
  }

  /// Retries of the work that a node has, in the order of their numbers.
  fileprivate func retries(of lane: LaneKey? = nil, at node: Int64?) -> [WaitingRetry] {
    notifications.active { lane == nil || $0.record.hub == lane?.hub }.flatMap { row in
      row.parts.filter { node != nil && $0.isOpen(at: node) }.flatMap { part in
        part.retries.values.filter { lane == nil || $0.platform == lane?.platform }
          .sorted { $0.registration < $1.registration }
          .map { WaitingRetry(row: row, part: part.part, retry: $0) }
      }
    }
  }
}

/// A hash by which each node begins with other parts of a notification.
private func mixed(_ part: Int, _ node: Int64) -> UInt64 {
  var mixed = (UInt64(part) &+ UInt64(bitPattern: node) &* 1_000) &* 0x9e37_79b9_7f4a_7c15
  mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
  return mixed ^ (mixed >> 31)
}
