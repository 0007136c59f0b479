import Foundation
import NotificationHubs

extension Dispatcher {
  /// Looks for retries that are due. Rows under way are still in the store; they are asked for on
  /// top and left out, so none is sent twice at once.
  func readRetries(at now: Date) {
    guard !isReadingRetries, let due = retryDue, due <= now,
      retryTargets + limits.pageSize <= limits.retryTargets
    else { return }
    isReadingRetries = true
    retryDue = nil  // rows that are written from here on set it again
    let asked = limits.pageSize + retryTargets
    spawn { [self] in
      let answer = await ask { [store] in
        (
          try await store.dueRetries(asOf: now, limit: asked),
          try await store.nextRetry()
        )
      }
      guard case .value(let (groups, next)) = answer else { return .nothing }
      return .retries(groups, asked: asked, next: next, at: now)
    }
  }

  func takeRetries(_ groups: [DueRetries], asked: Int, next: Date?, at now: Date) {
    isReadingRetries = false
    let found = groups.reduce(0) { $0 + $1.page.targets.count + $1.gone.count }
    // Rows under way hide behind `next` as long as they are not recorded, and the next row may
    // stand right behind them: a look a second finds it.
    let later = next.map { $0 > now ? $0 : found >= asked ? now : now.addingTimeInterval(1) }
    retryDue = [retryDue, later].compactMap { $0 }.min()
    for group in groups { take(group) }
    releaseRecordedRetries()
  }

  /// Their rows are gone or carry a later date; from here on they may come back.
  func releaseRecordedRetries() {
    for (number, registrations) in recordedWhileReading where jobs[number] != nil {
      jobs[number]?.retriesUnderWay.subtract(registrations)
      retryTargets -= registrations.count
    }
    recordedWhileReading = []
  }

  private func take(_ group: DueRetries) {
    guard let number = numbers[group.notification], let job = jobs[number] else { return }
    var group = group
    if !job.retriesUnderWay.isEmpty {
      group.page.targets.removeAll { job.retriesUnderWay.contains($0.registration) }
      group.gone.removeAll { job.retriesUnderWay.contains($0) }
    }
    let context = job.context
    let platform = job.lastPlatform
    let (page, gone) = (group.page, group.gone)
    let count = page.targets.count + gone.count
    guard count > 0 else { return }
    var attempts: [RegistrationID: Int] = [:]
    for id in page.targets.lazy.map(\.registration) { attempts[id] = group.attempts[id] ?? 1 }
    for id in gone { attempts[id] = group.attempts[id] ?? 1 }
    jobs[number]?.retriesUnderWay.formUnion(attempts.keys)
    retryTargets += count
    spawn { [self, attempts] in
      let planned = await plan(page, context: context, isRetry: true)
      guard case .value(var plan) = planned else {
        return planned.isGone ? .gone(number) : .nothing
      }
      plan.fail(gone: gone, context: context, platform: platform)
      return .retryPlan(number, plan, targets: count, attempts: attempts)
    }
  }

  func takeRetryPlan(
    _ number: Int, _ plan: PagePlan, targets: Int, attempts: [RegistrationID: Int]
  ) {
    guard jobs[number] != nil else { return }
    let parts = open(
      DispatchPage(
        notification: number, sequence: nil, end: 0, targets: targets, attempts: attempts,
        waitingParts: plan.parts, openParts: plan.parts.count, outcome: plan.outcome))
    schedule.retriesRead(number, parts: parts)
  }
}
