import Foundation
import NotificationHubs

// The path of retries: rows that are due, or whose notification's time is over, are read, the
// targets are planned as a page, which goes the way of all pages, and rows are counted when they
// seem to be missing.

// MARK: Reading

extension DispatchState {
  /// Reads retries of notifications whose time is over, and those that are due, as many as their
  /// lane will take.
  mutating func readRetries() {
    let now = now.steady
    if let (ended, context, limit, pause) = retries.nextEnded(at: now, of: jobs) {
      return start(.readEndedRetries(ended, context, limit: limit, pause: pause))
    }
    let next = retries.next(at: now) { [lanes = schedule.lanes] in lanes.retryRoom($0, at: now) }
    if let next { start(.readRetries(next, at: now)) }
  }
}

extension DispatchWork {
  func readRetries(_ turn: RetryTurns.Turn, at now: Date) async -> DispatchReport {
    let answer = await askOnce(againIn: turn.pause) {
      (
        try await store.dueRetries(of: turn.lane, asOf: now, limit: turn.asked),
        try await store.nextRetry(of: turn.lane)
      )
    }
    switch answer {
    case .value(let (groups, next)): return .retries(turn, groups, next: next, at: now)
    // Its notifications are counted.
    case .gone: return .retries(turn, [], next: nil, at: now)
    case .lost, .stopped, nil: return .retries(turn, nil, next: nil, at: now)
    }
  }

  func readEndedRetries(
    _ ended: EndedRetries, of context: DispatchContext, limit: Int, againIn pause: Double
  ) async -> DispatchReport {
    let answer = await askOnce(againIn: pause) {
      try await store.retries(
        of: ended.lane, notification: context.id, part: context.lease.part, limit: limit)
    }
    return .endedRetries(ended, answer)
  }
}

extension DispatchState {
  mutating func handleRetries(
    _ turn: RetryTurns.Turn, _ groups: [DueRetries]?, next: Date?, at asked: Date
  ) {
    guard let groups else { return retries.fail(turn, at: now.steady) }
    let found = groups.reduce(0) { $0 + $1.attempts.count }
    let started = groups.reduce(0) { $0 + plan($1, of: turn.lane) }
    retries.finish(turn, found: found, started: started, next: next, at: asked)
    guard next == nil, found == 0 else { return }
    // The lane has no rows; those of its notifications that count on some are mistaken.
    let mistaken = jobs.numbers {
      $0.context.hub == turn.lane.hub && $0.context.lane.map { $0 == turn.lane } ?? true
    }
    for number in mistaken { countRetries(of: number, lane: turn.lane) }
  }

  mutating func handleEndedRetries(_ turn: EndedRetries, _ answer: StoreAnswer<[DueRetries]>?) {
    guard let answer else { return retries.fail(turn, at: now.steady) }
    guard case .value(let groups) = answer else {
      retries.finish(turn, started: 0)
      return forget(turn.notification)
    }
    let started = groups.reduce(0) { $0 + plan($1, of: turn.lane) }
    retries.finish(turn, started: started)
    if groups.isEmpty { countRetries(of: turn.notification, lane: turn.lane) }
  }
}

// MARK: - Planning

extension DispatchState {
  /// - Returns: How many targets are under way now that were not before.
  private mutating func plan(_ found: DueRetries, of lane: LaneKey) -> Int {
    guard let number = jobs.number(of: found.notification, part: found.part),
      let context = jobs[number]?.context,
      let (group, page) = retries.start(found, of: number, lane)
    else { return 0 }
    start(.planRetries(group, of: number, context, page))
    return page.attempts.count
  }
}

extension DispatchWork {
  func planRetries(
    _ group: DueRetries, of number: Int, _ context: DispatchContext, _ retries: RetryPage
  ) async -> DispatchReport {
    var (page, gone) = (group.page, group.gone)
    if let platform = context.lane?.platform {
      // Its device is reached by another push service by now, to which the message says nothing.
      gone += page.targets.filter { $0.platform != platform }.map(\.registration)
      page.targets.removeAll { $0.platform != platform }
    }
    let planned = await plan(page, context, isRetry: true)
    guard case .value(var plan) = planned else { return planned.report(on: number) }
    plan.fail(gone: gone, context: context, platform: retries.lane.platform)
    return .retryPlan(number, plan, retries)
  }
}

extension DispatchState {
  mutating func handleRetryPlan(_ number: Int, _ plan: PagePlan, _ page: RetryPage) {
    guard jobs[number] != nil else { return }
    let parts = jobs.open(plan, of: number, retries: page)
    recordComplete(number)
    schedule.retriesRead(number, parts: noteUse(by: parts))
    settleAborted(number)
  }
}

// MARK: - Counting

extension DispatchState {
  /// Counts the rows that the store has for a notification of which nothing else is left: users
  /// that are erased, and hubs that are deleted, take theirs along. One that has more under way, and
  /// rows by its own count, is looked at again.
  private mutating func countRetries(of number: Int, lane: LaneKey) {
    guard let job = jobs[number], job.retryRows != 0 else { return }
    guard hasOnlyWaitingRetries(number) else { return scheduleRetryRead(lane) }
    askRetryRows(of: number, job, lane: lane)
  }

  mutating func askRetryRows(of number: Int, _ job: DispatchJob, lane: LaneKey?) {
    let count = RowCount(lane: lane, checkpoint: job.lastRecorded)
    start(.countRetries(of: number, job.context, count))
  }
}

extension DispatchWork {
  /// Counts the rows that the store has for a notification, if it is still there.
  func countRetries(
    of number: Int, _ context: DispatchContext, _ count: RowCount
  ) async -> DispatchReport {
    let answer = await ask {
      // That the hub is gone shows in its notification; rows of both go some time later.
      guard try await store.notification(context.id, hub: context.hub) != nil else {
        throw StoreError.noHub
      }
      return try await store.waitingRetries(
        context.id, part: context.lease.part, hub: context.hub)
    }
    guard case .value(let rows) = answer else { return answer.report(on: number) }
    return .retryRows(number, rows, count)
  }
}

extension DispatchState {
  mutating func handleRetryRows(_ number: Int, _ rows: Int, _ count: RowCount) {
    // They were not found a moment ago: somebody must look again.
    if rows > 0, let lane = count.lane { scheduleRetryRead(lane) }
    // Retries that have begun meanwhile have a count of their own, and rows that were written
    // meanwhile are looked for when they are due.
    guard hasOnlyWaitingRetries(number), let checkpoint = count.checkpoint,
      jobs[number]?.lastRecorded == checkpoint
    else { return }
    jobs.note(retryRows: rows, of: number)
    if rows > 0, let end = jobs[number]?.context.end {
      retries.noteEnd(max(end, now.steady.addingTimeInterval(1)))
    }
    recordComplete(number)
  }

  private mutating func scheduleRetryRead(_ lane: LaneKey) {
    retries.add(lane, due: now.steady.addingTimeInterval(1))
  }

  func hasOnlyWaitingRetries(_ number: Int) -> Bool {
    jobs[number]?.hasOnlyRetryRows == true && !retries.isUnderWay(number)
  }
}
