import Foundation
import NotificationHubs

/// What a task of the dispatcher hands back.
enum DispatchReport: Sendable {
  /// The next page of a notification; its end, and whether it was the last.
  case page(Int, PagePlan, targets: Int, end: RegistrationID, isLast: Bool)
  case part(PartKey, LaneKey, PartSettlement)
  case recorded(Int, Checkpoint, [DispatchPage])
  case retries(RetryTurns.Turn, [DueRetries], next: Date?, at: Date)
  /// `nil`: the hub is gone.
  case endedRetries(EndedRetries, [DueRetries]?)
  case retryPlan(Int, PagePlan, targets: Int, RetryPage)
  /// Scheduled notifications whose time has come, and when that of the next does.
  case released(FoundNotifications, next: Date?)
  /// The credentials that lanes have now; `nil` for a lane that has none.
  case credentials([LaneKey: Date?])
  /// How many retry rows a notification has in the store.
  case retryRows(Int, Int)
  /// So many registrations have been brought back whose removal was in doubt.
  case broughtBack(LaneKey, Int)
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
    case .endedRetries(let turn, let groups): takeEndedRetries(turn, groups)
    case .retryPlan(let number, let plan, let targets, let retries):
      takeRetryPlan(number, plan, targets: targets, retries)
    case .released(let found, let next): takeReleased(found, next: next)
    case .credentials(let found): takeCredentials(found)
    case .retryRows(let number, let rows): takeRetryRows(number, rows)
    case .broughtBack(let lane, let count): takeBroughtBack(lane, count)
    case .gone(let number): forget(hubOf: number)
    case .nothing: break
    }
    pump()
  }

  /// A notification's hub is gone, and with it all that was known of its lanes.
  func forget(hubOf number: Int) {
    if let hub = jobs[number]?.context.hub { guards = guards.filter { $0.key.hub != hub } }
    remove(number)
  }

  /// Starts everything that may start.
  func pump() {
    guard phase == .running else { return }
    let now = clock.steady()
    for action in schedule.next(at: now) {
      switch action {
      case .read(let number): read(number)
      case .deliver(let key, let isProbe): deliver(key, isProbe: isProbe, at: now)
      case .postpone(let key): postpone(key, at: now)
      case .refuse(let key): refuse(key, at: now)
      case .release(let key): release(key, at: now)
      }
    }
    readRetries(at: now)
    watchCredentials(at: now)
    releaseSchedules(at: clock.now())
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
      let last = max(
        page.targets.last?.registration ?? cursor, page.unreadable.last?.registration ?? cursor)
      return .page(
        number, plan, targets: page.targets.count, end: page.next ?? last,
        isLast: page.next == nil)
    }
  }

  /// Finds the gateways and takes the page apart.
  nonisolated func plan(
    _ page: TargetPage, context: DispatchContext, isRetry: Bool
  ) async -> StoreAnswer<PagePlan> {
    for target in page.unreadable {
      report(
        .unreadableTarget(
          hub: context.hub, context.id, registration: target.registration, reason: target.reason))
    }
    return await ask { [routes, clock] in
      try await routes.refresh()
      var found = [GatewayRoute?](repeating: nil, count: PushPlatform.allCases.count)
      for platform in PagePlan.platforms(of: page) {
        found[platform.ordinal] = try await routes.route(
          LaneKey(hub: context.hub, platform: platform))
      }
      return PagePlan(
        page, context: context, routes: found, isRetry: isRetry, at: clock.steady())
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

  private func deliver(_ key: PartKey, isProbe: Bool, at now: Date) {
    guard let waiting = pages[key.page]?.waitingParts[key.index],
      let page = pages[key.page], let context = jobs[page.notification]?.context
    else { return }
    pages[key.page]?.waitingParts[key.index] = nil
    let (part, over) = waiting.withoutOver(context, at: now)
    if !over.isEmpty {
      let group = OutcomeGroup(
        platform: part.lane.platform, isTemplate: context.isTemplate,
        isRetry: page.retries != nil)
      for registration in over {
        pages[key.page]?.outcome.fail(
          registration, .abandonedNotificationMessages, reason: "the message's time is over",
          in: group)
      }
      if part.registrations.isEmpty {
        schedule.partDone(part.lane, key, at: now)
        return close(key, PageOutcome())
      }
    }
    pages[key.page]?.hasStarted = true
    let delivery = PartDelivery(
      part, isProbe: isProbe, pace: schedule.pace(of: part.lane), page: limits.pageSize)
    spawn { [clock, random] in
      let (results, pace) = await delivery.run()
      var settlement = PartSettlement(
        part, context: context, attempts: page.retries?.attempts, at: clock.steady())
      settlement.settle(results, random: random)
      settlement.signs.pace = pace
      return .part(key, part.lane, settlement)
    }
  }

  private func takePart(_ key: PartKey, _ lane: LaneKey, _ settlement: PartSettlement) {
    let now = clock.steady()
    schedule.partDone(lane, key, settlement.signs, jitter: random(), at: now)
    var outcome = settlement.outcome
    judge(&outcome, of: lane, settlement, at: clock.now())
    let isDown = schedule.isDown(lane, settlement.signs)
    if settlement.signs.answered > 0 { noteRecovery(lane) }
    if settlement.hadSuccess { recover(lane) }
    if let refusal = settlement.refusal {
      // One that has been replaced meanwhile says nothing about the lane.
      if settlement.credential == credentials[lane] {
        refusals[lane] = refusal
        if let until = schedule.fail(lane, .refused, at: now) {
          report(
            .credentialPaused(
              hub: lane.hub, platform: lane.platform, until: wallTime(until),
              reason: refusal.reason))
        }
      }
    } else if settlement.isUnreachable || isDown {
      let failure: LaneFailure = settlement.isUnreachable ? .unreachable : .unavailable
      if schedule.fail(lane, failure, at: now) != nil { noteOutage(lane, settlement, at: now) }
    }
    keep(settlement.unsent, of: key, at: now)
    close(key, outcome)
  }

  /// A part that comes back unsent waits: in its rows when it has rows, in memory otherwise.
  private func keep(_ unsent: PagePart?, of key: PartKey, at now: Date) {
    guard let unsent, let page = pages[key.page] else { return }
    pages[key.page]?.waitingParts[key.index] = unsent
    // Closing the part that was sent must not close this one.
    pages[key.page]?.openParts += 1
    if page.retries != nil {
      release(key, at: now)
    } else if phase == .running {
      schedule.returned(
        page.notification,
        .init(key: key, lane: unsent.lane, targets: unsent.batch.requests.count))
    } else {
      postpone(key, at: now)
    }
  }

  /// Leaves the targets of a page of retries to their rows, which are as they were.
  private func release(_ key: PartKey, at now: Date) {
    guard let page = pages[key.page], let retries = page.retries,
      let part = page.waitingParts[key.index]
    else { return }
    // It waits for another lane than its rows say.
    guard part.lane == retries.lane else { return postpone(key, at: now) }
    pages[key.page]?.waitingParts[key.index] = nil
    for registration in part.registrations {
      pages[key.page]?.retries?.attempts[registration] = nil
    }
    jobs[page.notification]?.retriesUnderWay[retries.lane]?.subtract(part.registrations)
    retryTurns.ended(retries.lane, part.registrations.count)
    retryTurns.add(retries.lane, due: now)
    close(key, PageOutcome())
  }

  /// Puts off a part whose lane rests or is stalled.
  private func postpone(_ key: PartKey, at now: Date) {
    settle(key, at: now) { settlement, refusal in settlement.postpone(refusal: refusal) }
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
    let now = clock.steady()
    for (key, page) in pages where page.hasStarted {
      for index in page.waitingParts.indices where page.waitingParts[index] != nil {
        let part = PartKey(page: key, index: index)
        if page.retries == nil { postpone(part, at: now) } else { release(part, at: now) }
      }
    }
  }
}
