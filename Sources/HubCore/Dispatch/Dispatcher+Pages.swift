import Foundation
import NotificationHubs

/// What a task of the dispatcher hands back.
enum DispatchReport: Sendable {
  /// The next page of a notification; its end, and whether it was the last.
  case page(Int, PagePlan, targets: Int, end: RegistrationID, isLast: Bool)
  case part(PartKey, LaneKey, PartSettlement)
  case recorded(Int, Checkpoint, [DispatchPage])
  case retries(RetryTurns.Turn, [DueRetries], next: Date?, at: Date)
  case retryPlan(Int, PagePlan, targets: Int, RetryPage)
  /// Scheduled notifications whose time has come, and when that of the next does.
  case released([NotificationRecord], next: Date?)
  /// The credentials that lanes have now; `nil` for a lane that has none.
  case credentials([LaneKey: Date?])
  /// Retries that waited behind a refused credential are due since then.
  case hastened(LaneKey, Date)
  /// The notification's hub is gone.
  case gone(Int)
  /// The store has closed, or the dispatcher is being stopped.
  case nothing
}

extension Dispatcher {
  func take(_ report: DispatchReport) {
    switch report {
    case .page(let number, let plan, let targets, let end, let isLast):
      takePage(number, plan, targets: targets, end: end, isLast: isLast)
    case .part(let key, let lane, let settlement): takePart(key, lane, settlement)
    case .recorded(let number, let checkpoint, let recorded):
      takeRecorded(number, checkpoint, recorded)
    case .retries(let turn, let groups, let next, let at):
      takeRetries(turn, groups, next: next, at: at)
    case .retryPlan(let number, let plan, let targets, let retries):
      takeRetryPlan(number, plan, targets: targets, retries)
    case .released(let records, let next): takeReleased(records, next: next)
    case .credentials(let found): takeCredentials(found)
    case .hastened(let lane, let due): retryTurns.add(lane, due: due)
    case .gone(let number): remove(number)
    case .nothing: break
    }
    pump()
  }

  /// Starts everything that may start.
  func pump() {
    guard phase == .running else { return }
    let now = clock.now()
    for action in schedule.next(at: now) {
      switch action {
      case .read(let number): read(number)
      case .deliver(let key, let isProbe): deliver(key, isProbe: isProbe)
      case .postpone(let key, let until): postpone(key, until: until, at: now)
      case .refuse(let key): refuse(key, at: now)
      }
    }
    readRetries(at: now)
    watchCredentials(at: now)
    releaseSchedules(at: now)
    setAlarm(after: now)
  }

  // MARK: Reading

  private func read(_ number: Int) {
    guard let job = jobs[number] else { return }
    let (context, cursor) = (job.context, job.readCursor)
    spawn { [self] in
      let answer = await ask { [store, limits] in
        guard context.request.isDirect else {
          return try await store.targets(context.query, after: cursor, limit: limits.pageSize)
        }
        return try await store.directTargets(
          of: context.id, hub: context.hub, after: cursor, limit: limits.pageSize)
      }
      guard case .value(let page) = answer else { return answer.isGone ? .gone(number) : .nothing }
      let planned = await plan(page, context: context, isRetry: false)
      guard case .value(let plan) = planned else {
        return planned.isGone ? .gone(number) : .nothing
      }
      let end = page.next ?? page.targets.last?.registration ?? cursor
      return .page(
        number, plan, targets: page.targets.count, end: end, isLast: page.next == nil)
    }
  }

  /// Finds the gateways and takes the page apart.
  nonisolated func plan(
    _ page: TargetPage, context: DispatchContext, isRetry: Bool
  ) async -> StoreAnswer<PagePlan> {
    await ask { [routes, clock] in
      try await routes.refresh()
      var found = [GatewayRoute?](repeating: nil, count: PushPlatform.allCases.count)
      for platform in PagePlan.platforms(of: page) {
        found[platform.ordinal] = try await routes.route(
          LaneKey(hub: context.hub, platform: platform))
      }
      return PagePlan(
        page, context: context, routes: found, isRetry: isRetry, at: clock.now())
    }
  }

  private func takePage(
    _ number: Int, _ plan: PagePlan, targets: Int, end: RegistrationID, isLast: Bool
  ) {
    guard var job = jobs[number] else { return }
    let page = DispatchPage(
      notification: number, sequence: job.nextSequence, end: end, targets: targets,
      retries: nil, waitingParts: plan.parts, openParts: plan.parts.count,
      outcome: plan.outcome)
    job.nextSequence += 1
    job.readCursor = end
    if isLast { job.isAudienceRead = true }
    jobs[number] = job
    let parts = open(page)
    schedule.pageRead(number, parts: parts, targets: targets, isLast: isLast)
  }

  /// Enters a page into the books; one without parts is complete at once.
  /// - Returns: Its parts for the schedule.
  func open(_ page: DispatchPage) -> [DispatchSchedule.Part] {
    let key = nextPage
    nextPage += 1
    pages[key] = page
    var parts: [DispatchSchedule.Part] = []
    for (index, part) in page.waitingParts.enumerated() {
      guard let part else { continue }
      if credentials.updateValue(part.credential, forKey: part.lane) != part.credential {
        replaced(part.lane)
      }
      schedule.assign(part.lane, to: part.gateway.pool)
      parts.append(
        .init(
          key: PartKey(page: key, index: index), lane: part.lane,
          targets: part.batch.requests.count))
    }
    if page.isComplete { completed(key) }
    return parts
  }

  // MARK: Delivering

  private func deliver(_ key: PartKey, isProbe: Bool) {
    guard let part = pages[key.page]?.waitingParts[key.index],
      let page = pages[key.page], let context = jobs[page.notification]?.context
    else { return }
    pages[key.page]?.waitingParts[key.index] = nil
    let delivery = PartDelivery(
      part, isProbe: isProbe, pace: schedule.pace(of: part.lane), page: limits.pageSize)
    spawn { [clock, random] in
      let (results, pace) = await delivery.run()
      var settlement = PartSettlement(
        part, context: context, attempts: page.retries?.attempts, at: clock.now())
      settlement.settle(results, random: random)
      settlement.signs.pace = pace
      return .part(key, part.lane, settlement)
    }
  }

  private func takePart(_ key: PartKey, _ lane: LaneKey, _ settlement: PartSettlement) {
    let now = clock.now()
    schedule.partDone(lane, key, settlement.signs, jitter: random(), at: now)
    var outcome = settlement.outcome
    let verdict = guards[lane, default: DeadHandleGuard()].admit(
      dead: outcome.dead.count, hadSuccess: settlement.hadSuccess,
      sinceSuccess: settlement.deadSinceSuccess, at: now)
    outcome.dead.removeLast(outcome.dead.count - verdict.removable)
    if verdict.alarm {
      report(
        .deadHandlesSuspicious(
          hub: lane.hub, platform: lane.platform, inARow: DeadHandleGuard.limit))
    }
    if settlement.hadSuccess { recover(lane) }
    if let refusal = settlement.refusal {
      // One that has been replaced meanwhile says nothing about the lane.
      guard settlement.credential == credentials[lane] else { return close(key, outcome) }
      refusals[lane] = refusal
      if let until = schedule.fail(lane, .refused, at: now) {
        report(
          .credentialPaused(
            hub: lane.hub, platform: lane.platform, until: until, reason: refusal.reason))
      }
    } else if settlement.isUnreachable {
      _ = schedule.fail(lane, .unreachable, at: now)
    }
    close(key, outcome)
  }

  /// Puts off a part whose lane rests or is stalled.
  private func postpone(_ key: PartKey, until: Date, at now: Date) {
    settle(key, at: now) { settlement, refusal in
      settlement.postpone(until: until, refusal: refusal, random: random)
    }
  }

  /// Answers a part with the refusal of its lane's credential.
  private func refuse(_ key: PartKey, at now: Date) {
    settle(key, at: now) { settlement, refusal in
      settlement.refuse(refusal ?? PushResult(outcome: .invalidCredentials))
    }
  }

  /// Ends a part that is not sent.
  private func settle(
    _ key: PartKey, at now: Date, _ body: (inout PartSettlement, PushResult?) -> Void
  ) {
    guard let page = pages[key.page], let part = page.waitingParts[key.index],
      let context = jobs[page.notification]?.context
    else { return }
    pages[key.page]?.waitingParts[key.index] = nil
    var settlement = PartSettlement(
      part, context: context, attempts: page.retries?.attempts, at: now)
    body(&settlement, refusals[part.lane])
    close(key, settlement.outcome)
  }

  private func close(_ key: PartKey, _ outcome: PageOutcome) {
    guard pages[key.page] != nil else { return }
    pages[key.page]?.outcome.merge(outcome)
    pages[key.page]?.openParts -= 1
    if pages[key.page]?.isComplete == true { completed(key.page) }
  }

  /// When stopping: what waits in a page of which something was sent becomes retries, so that the
  /// page can be recorded; a page of which nothing was sent is read again by the next start.
  func putOffStartedPages() {
    let now = clock.now()
    for (key, page) in pages where page.hasStarted {
      for index in page.waitingParts.indices where page.waitingParts[index] != nil {
        postpone(PartKey(page: key, index: index), until: now, at: now)
      }
    }
  }
}
