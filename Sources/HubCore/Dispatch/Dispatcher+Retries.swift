import Foundation
import NotificationHubs

extension Dispatcher {
  /// Looks for retries that are due. Rows under way are still in the store; they are asked for on
  /// top and left out, so none is sent twice at once.
  func readRetries(at now: Date) {
    guard !isReadingRetries, let turn = retryTurns.next(at: now) else { return }
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

  func takeRetries(
    _ turn: RetryTurns.Turn, _ groups: [DueRetries], next: Date?, at now: Date
  ) {
    isReadingRetries = false
    let found = groups.reduce(0) { $0 + $1.page.targets.count + $1.gone.count }
    let taken = groups.reduce(0) { $0 + take($1, of: turn.lane) }
    if let next {
      // Rows under way hide behind `next` as long as they are not recorded, and the next row may
      // stand right behind them: a look a second finds it. So does one while nothing comes of it.
      let isMore = found >= turn.asked && taken > 0
      retryTurns.add(
        turn.lane, due: next > now ? next : isMore ? now : now.addingTimeInterval(1))
    }
    releaseRecordedRetries()
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
      group.gone.removeAll { underWay.contains($0) }
    }
    let context = job.context
    let (page, gone) = (group.page, group.gone)
    let count = page.targets.count + gone.count
    guard count > 0 else { return 0 }
    var attempts: [RegistrationID: Int] = [:]
    for id in page.targets.lazy.map(\.registration) { attempts[id] = group.attempts[id] ?? 1 }
    for id in gone { attempts[id] = group.attempts[id] ?? 1 }
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
