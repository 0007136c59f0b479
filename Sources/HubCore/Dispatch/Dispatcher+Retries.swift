import Foundation
import NotificationHubs

/// Retries that are looked up by their notification, because its time is over.
struct EndedRetries {
  let notification: Int
  let lane: LaneKey
}

extension Dispatcher {
  /// Looks for retries that are due, as many as their lane will take, and for those of notifications
  /// whose time is over. Rows under way are still in the store; they are asked for on top and left
  /// out, so none is sent twice at once.
  func readRetries(at now: Date) {
    guard !isReadingRetries else { return }
    if readEndedRetries(at: now) { return }
    guard let turn = retryTurns.next(at: now, most: { schedule.retryRoom($0, at: now) }) else {
      return
    }
    isReadingRetries = true
    spawn { [self] in
      let answer = await ask { [store] in
        (
          try await store.dueRetries(of: turn.lane, asOf: now, limit: turn.asked),
          try await store.nextRetry(of: turn.lane)
        )
      }
      guard case .value(let (groups, next)) = answer else { return .nothing }
      return .retries(turn, groups, next: next, at: now)
    }
  }

  /// A notification whose time is over waits for no lane: its retries have their outcome now.
  /// - Returns: Whether some are being read.
  private func readEndedRetries(at now: Date) -> Bool {
    if let end = nextEnd, end <= now {
      nextEnd = nil
      for (number, job) in jobs {
        if job.context.end > now {
          // A look a second at most, however close together the ends lie.
          noteEnd(max(job.context.end, now.addingTimeInterval(1)))
        } else if job.retryRows > 0 {
          let lanes = job.context.lane.map { [$0] } ?? retryTurns.lanes(of: job.context.hub)
          ended += lanes.map { EndedRetries(notification: number, lane: $0) }
        }
      }
    }
    while let next = ended.last {
      guard retryTurns.held < limits.retryTargets else { return false }
      guard let job = jobs[next.notification], job.retryRows > 0 else {
        ended.removeLast()
        continue
      }
      isReadingRetries = true
      let underWay = job.retriesUnderWay[next.lane]?.count ?? 0
      let (id, limit) = (job.context.id, limits.pageSize + underWay)
      spawn { [self] in
        let answer = await ask { [store] in
          try await store.retries(of: next.lane, notification: id, limit: limit)
        }
        switch answer {
        case .value(let groups): return .endedRetries(next, groups)
        case .gone: return .endedRetries(next, nil)
        case .stopped: return .nothing
        }
      }
      return true
    }
    return false
  }

  func takeEndedRetries(_ turn: EndedRetries, _ found: [DueRetries]?) {
    isReadingRetries = false
    guard let groups = found else {
      releaseRecordedRetries()
      return forget(hubOf: turn.notification)
    }
    let taken = groups.reduce(0) { $0 + take($1, of: turn.lane) }
    if taken == 0 {
      ended.removeAll { $0.notification == turn.notification && $0.lane == turn.lane }
    }
    releaseRecordedRetries()
    if groups.isEmpty { countRetries(of: turn.notification) }
  }

  /// Remembers when a notification's time will be over.
  func noteEnd(_ end: Date) { nextEnd = min(nextEnd ?? end, end) }

  /// Counts the rows that the store has for a notification: users that are erased, and hubs that are
  /// deleted, take theirs along.
  func countRetries(of number: Int) {
    guard let job = jobs[number], job.isAwaitingRetries else { return }
    let (id, hub) = (job.context.id, job.context.hub)
    spawn { [self] in
      let answer = await ask { [store] in
        // That the hub is gone shows in its notification; rows of both go some time later.
        guard try await store.notification(id, hub: hub) != nil else { throw StoreError.noHub }
        return try await store.waitingRetries(id, hub: hub)
      }
      guard case .value(let rows) = answer else { return answer.isGone ? .gone(number) : .nothing }
      return .retryRows(number, rows)
    }
  }

  /// Something of a hub has been deleted that may have taken notifications along.
  package func recheck(hub: Hub.ID) {
    guard phase == .running else { return }
    for (number, job) in jobs where job.context.hub == hub {
      let id = job.context.id
      spawn { [self] in
        let answer = await ask { [store] in try await store.notification(id, hub: hub) != nil }
        guard case .value(let isThere) = answer else {
          return answer.isGone ? .gone(number) : .nothing
        }
        return isThere ? .nothing : .gone(number)
      }
    }
  }

  func takeRetryRows(_ number: Int, _ rows: Int) {
    // What has begun meanwhile keeps its own books.
    guard jobs[number]?.isAwaitingRetries == true else { return }
    jobs[number]?.retryRows = rows
    recordComplete(number)
  }

  func takeRetries(
    _ turn: RetryTurns.Turn, _ groups: [DueRetries], next: Date?, at now: Date
  ) {
    isReadingRetries = false
    let found = groups.reduce(0) { $0 + $1.attempts.count }
    let taken = groups.reduce(0) { $0 + take($1, of: turn.lane) }
    if let next {
      // Rows under way hide behind `next` as long as they are not recorded, and the next row may
      // stand right behind them: a look a second finds it. So does one while nothing comes of it.
      let isMore = found >= turn.asked && taken > 0
      retryTurns.add(
        turn.lane, due: next > now ? next : isMore ? now : now.addingTimeInterval(1))
    }
    releaseRecordedRetries()
    guard next == nil, found == 0 else { return }
    // The lane has no rows; those of its notifications that count on some are mistaken.
    for (number, job) in jobs
    where job.context.hub == turn.lane.hub && job.isAwaitingRetries
      && job.context.lane.map({ $0 == turn.lane }) ?? true
    {
      countRetries(of: number)
    }
  }

  /// Their rows are gone or carry a later date; from here on they may come back.
  func releaseRecordedRetries() {
    for (number, lane, registrations) in recordedWhileReading where jobs[number] != nil {
      jobs[number]?.retriesUnderWay[lane]?.subtract(registrations)
      retryTurns.ended(lane, registrations.count)
    }
    recordedWhileReading = []
  }

  /// - Returns: How many targets are under way now that were not before.
  private func take(_ group: DueRetries, of lane: LaneKey) -> Int {
    guard let number = numbers[group.notification], let job = jobs[number] else { return 0 }
    var group = group
    if let underWay = job.retriesUnderWay[lane], !underWay.isEmpty {
      group.page.targets.removeAll { underWay.contains($0.registration) }
      group.page.unreadable.removeAll { underWay.contains($0.registration) }
      group.gone.removeAll { underWay.contains($0) }
    }
    let context = job.context
    let (page, gone) = (group.page, group.gone)
    var attempts: [RegistrationID: Int] = [:]
    for id in page.targets.lazy.map(\.registration) { attempts[id] = group.attempts[id] ?? 1 }
    for id in page.unreadable.lazy.map(\.registration) { attempts[id] = group.attempts[id] ?? 1 }
    for id in gone { attempts[id] = group.attempts[id] ?? 1 }
    let count = attempts.count
    guard count > 0 else { return 0 }
    jobs[number]?.retriesUnderWay[lane, default: []].formUnion(attempts.keys)
    retryTurns.started(lane, count)
    let retries = RetryPage(lane: lane, attempts: attempts)
    spawn { [self] in
      let planned = await plan(page, context: context, isRetry: true)
      guard case .value(var plan) = planned else {
        return planned.isGone ? .gone(number) : .nothing
      }
      plan.fail(gone: gone, context: context, platform: lane.platform)
      return .retryPlan(number, plan, targets: count, retries)
    }
    return count
  }

  func takeRetryPlan(_ number: Int, _ plan: PagePlan, targets: Int, _ retries: RetryPage) {
    guard jobs[number] != nil else { return }
    let parts = open(
      DispatchPage(
        notification: number, sequence: nil, end: 0, targets: targets, retries: retries,
        waitingParts: plan.parts, openParts: plan.parts.count, outcome: plan.outcome))
    schedule.retriesRead(number, parts: parts)
  }
}
