import Foundation
import NotificationHubs

// The path of a page: it is read from the audience, its parts are delivered, and its outcomes are
// recorded. Each stage is started and handled by the state; its task is in between.

// MARK: Reading

extension DispatchState {
  mutating func read(_ number: Int) {
    guard let job = jobs[number] else { return }
    start(.readPage(number, job.context, after: job.readCursor))
  }
}

extension DispatchWork {
  func readPage(
    of number: Int, _ context: DispatchContext, after cursor: RegistrationID
  ) async -> DispatchReport {
    guard context.node == store.nodeID else { return .lost(number) }
    let answer = await ask {
      guard context.request.isDirect else {
        return try await store.targets(context.query, after: cursor, limit: limits.pageSize)
      }
      return try await store.directTargets(
        of: context.id, hub: context.hub, after: cursor, limit: limits.pageSize)
    }
    guard case .value(let page) = answer else { return answer.report(on: number) }
    let planned = await plan(page, context, isRetry: false)
    guard case .value(let plan) = planned else { return planned.report(on: number) }
    let last = max(
      page.targets.last?.registration ?? cursor, page.unreadable.last?.registration ?? cursor)
    return .page(
      number, plan, targets: page.targets.count, end: page.next ?? last, isLast: page.next == nil)
  }

  /// Finds the gateways and splits the page.
  func plan(
    _ page: TargetPage, _ context: DispatchContext, isRetry: Bool
  ) async -> StoreAnswer<PagePlan> {
    for target in page.unreadable {
      report(
        .unreadableTarget(
          hub: context.hub, context.id, registration: target.registration, reason: target.reason))
    }
    return await ask {
      PagePlan(
        page, context: context, routes: try await routes(of: page, hub: context.hub),
        isRetry: isRetry, at: clock.steady())
    }
  }
}

extension DispatchState {
  mutating func handlePage(
    _ number: Int, _ plan: PagePlan, targets: Int, end: RegistrationID, isLast: Bool
  ) {
    guard jobs[number] != nil else { return }
    let parts = jobs.open(plan, of: number, targets: targets, end: end, isLast: isLast)
    recordComplete(number)
    schedule.pageRead(number, parts: noteUse(by: parts), targets: targets, isLast: isLast)
    settleAborted(number)
  }

  /// Notes which credentials and connections parts use that have been read.
  mutating func noteUse(
    by parts: [(key: PartKey, part: PagePart)]
  ) -> [DispatchSchedule.Part] {
    parts.map { key, part in
      use(part.credential, for: part.lane)
      schedule.lanes.assign(part.lane, to: part.gateway.pool)
      return .init(key: key, lane: part.lane, targets: part.batch.requests.count)
    }
  }

  /// Notes which credential a lane has; `nil` when it has none.
  mutating func use(_ credential: Date?, for lane: LaneKey) {
    schedule.lanes.use(credential, for: lane, at: now.steady)
  }
}

// MARK: - Delivery

extension DispatchState {
  mutating func deliver(_ key: PartKey, isProbe: Bool) {
    guard let started = jobs.start(key, at: now.steady) else { return }
    let lane = started.part.lane
    guard !started.part.registrations.isEmpty else {
      schedule.lanes.finish(key, of: lane, at: now.steady)
      return close(key, PageOutcome(), of: started.notification)
    }
    let pace = schedule.lanes.pool(of: lane)?.pace
    start(.deliver(key, started, isProbe: isProbe, pace: pace))
  }
}

extension DispatchWork {
  /// - Parameter pace: How many go at once at first; `nil`: all.
  func deliver(
    _ key: PartKey, _ started: DispatchJobs.WaitingPart, isProbe: Bool, pace: Int?
  ) async -> DispatchReport {
    let context = started.context
    var part = started.part
    // A node that stood still sends nothing before it has been heard of again, and then nothing that
    // others may have claimed meanwhile.
    guard isOwn(context) else { return .unowned(key, part.lane) }
    // The page may have waited for long, and a probe is for the credential that there is now.
    if isProbe { try? await routes.refresh() }
    var isRedirected = false
    let results: [PushResult]
    var handovers: [RegistrationID: Handover] = [:]
    var pace = pace
    switch try? await routes.route(part.lane) {
    case .refused(let outcome, let reason):
      let answer = PushResult(outcome: outcome, reason: reason)
      results = Array(repeating: answer, count: part.batch.requests.count)
    case .open(let gateway, let credential):
      isRedirected = part.redirect(to: gateway, credential: credential)
      fallthrough
    case nil:
      let delivery = PartDelivery(
        part, of: context, isProbe: isProbe, pace: pace, page: limits.pageSize
      ) { isOwn(context) }
      (results, pace) = await delivery.run()
      handovers = await delivery.handOver(results)
    }
    var settlement = PartSettlement(
      part, context: context, attempts: started.retries?.attempts, at: clock.steady())
    settlement.settle(results, handovers: handovers, random: random)
    settlement.answers.pace = pace
    return .part(key, part.lane, settlement, isRedirected: isRedirected)
  }

  /// Whether other nodes leave a part that this one has claimed to it.
  private func isOwn(_ context: DispatchContext) -> Bool {
    store.holdsLeases && context.node == store.nodeID
  }
}

extension DispatchState {
  /// A part that had waited was sent with a newer credential than its page was read with.
  mutating func redirect(_ lane: LaneKey, _ settlement: PartSettlement) {
    use(settlement.credential, for: lane)
    schedule.lanes.assign(lane, to: settlement.pool)
  }

  mutating func handlePart(_ key: PartKey, _ lane: LaneKey, _ settlement: PartSettlement) {
    schedule.lanes.finish(
      key, of: lane, settlement.answers, jitter: random.unit(), at: now.steady)
    var outcome = settlement.outcome
    let changes = schedule.lanes.settle(
      &outcome, settlement, of: lane, isShared: isShared, at: now.steady, wall: now.wall)
    for change in changes { handle(change, of: lane) }
    guard let number = jobs.notification(of: key) else { return }
    if let unsent = settlement.unsent { putBack(unsent, key, of: number) }
    close(key, outcome, of: number)
  }

  /// Tells the log and other nodes of a lane's change.
  private mutating func handle(_ change: Lane.Change, of lane: LaneKey) {
    let (hub, platform) = (lane.hub, lane.platform)
    switch change {
    case .alarm(let alarm):
      report(
        .deadHandlesSuspicious(
          hub: hub, platform: platform, dead: alarm.condemned, of: alarm.judged))
      restore(lane, since: alarm.since)
      exchangeSoon()
    case .serviceBack: report(.serviceBack(hub: hub, platform: platform))
    case .recovered: exchangeSoon()
    case .refused(let until, let reason):
      exchangeSoon()
      report(
        .credentialPaused(hub: hub, platform: platform, until: now.wall(at: until), reason: reason))
    case .down(let until, let reason):
      report(.serviceDown(hub: hub, platform: platform, until: now.wall(at: until), reason: reason))
    }
  }

  /// Nothing of a part was sent, since other nodes may have its work by now.
  mutating func handleUnowned(_ key: PartKey, _ lane: LaneKey) {
    schedule.lanes.finish(key, of: lane, at: now.steady)
    if let number = jobs.notification(of: key) { loseLease(number) }
  }

  /// A part that comes back unsent waits: in its rows when it has rows, in memory otherwise.
  private mutating func putBack(_ unsent: PagePart, _ key: PartKey, of number: Int) {
    jobs.putBack(unsent, key)
    if jobs[number]?.context.isAborted == true {
      postpone(key)
    } else if jobs.waiting(key)?.retries != nil {
      release(key)
    } else if phase == .running {
      schedule.returned(
        number, .init(key: key, lane: unsent.lane, targets: unsent.batch.requests.count))
    } else {
      postpone(key)
    }
  }

  /// Leaves the targets of a page of retries to their rows, which are as they were.
  mutating func release(_ key: PartKey) {
    guard let waiting = jobs.waiting(key), let lane = waiting.retries?.lane else { return }
    // It waits for another lane than its rows say.
    guard waiting.part.lane == lane else { return postpone(key) }
    jobs.release(key)
    retries.release(
      waiting.part.registrations, of: waiting.notification, lane, at: now.steady)
    recordComplete(waiting.notification)
  }

  /// Puts off a part whose lane rests or is stalled.
  mutating func postpone(_ key: PartKey) {
    settle(key) { settlement, refusal in settlement.postpone(refusal: refusal) }
  }

  /// Answers a part with the refusal of its lane's credential.
  mutating func refuse(_ key: PartKey) {
    settle(key) { settlement, refusal in
      settlement.refuse(refusal ?? PushResult(outcome: .invalidCredentials))
    }
  }

  /// Ends a part that is not sent.
  private mutating func settle(
    _ key: PartKey, _ body: (inout PartSettlement, PushResult?) -> Void
  ) {
    guard let waiting = jobs.waiting(key) else { return }
    let refusal = schedule.lanes[waiting.part.lane]?.refusal?.answer
    jobs.settle(key, at: now.steady) { body(&$0, refusal) }
    recordComplete(waiting.notification)
  }

  private mutating func close(_ key: PartKey, _ outcome: PageOutcome, of number: Int) {
    jobs.close(key, outcome)
    recordComplete(number)
  }

  /// When stopping: parts that wait in a page of which something was sent become retries, so that
  /// the page can be recorded; a page of which nothing was sent is read again by the next start.
  mutating func putOffStartedPages() {
    for (key, isRetry) in jobs.waitingInStartedPages {
      if isRetry { release(key) } else { postpone(key) }
    }
  }
}

// MARK: - Recording

extension DispatchState {
  /// Records the pages that are complete, if any.
  mutating func recordComplete(_ number: Int) {
    guard let checkpoint = jobs.checkpoint(number, at: now.wall) else { return }
    start(.record(schedule.lanes.sparingDoubted(checkpoint), of: number))
  }
}

extension DispatchWork {
  func record(_ checkpoint: Checkpoint, of number: Int) async -> DispatchReport {
    let answer = await ask { try await store.checkpoint(checkpoint) }
    guard case .value(let known) = answer else { return answer.report(on: number) }
    return .recorded(number, checkpoint, known)
  }
}

extension DispatchState {
  mutating func handleRecorded(
    _ number: Int, _ checkpoint: Checkpoint, _ answer: CheckpointAnswer
  ) {
    for retry in checkpoint.retries {
      retries.add(LaneKey(hub: checkpoint.hub, platform: retry.platform), due: retry.due)
    }
    for page in jobs.recorded(number) {
      if let page = page.retries {
        retries.recorded(Array(page.attempts.keys), of: number, page.lane)
      } else {
        schedule.pageDone(number, targets: page.targets)
      }
    }
    noteRemovals(of: checkpoint)
    if let context = jobs[number]?.context {
      let seconds = max(0, now.wall.timeIntervalSince(context.releasedAt))
      add(.recorded(checkpoint.counts, seconds: seconds))
    }
    if checkpoint.state?.isFinal == true {
      remove(number, isFinished: answer.isFinished)
    } else {
      if answer.isAborted { abort(number) }
      // Rows that were written when the time was over already: nothing else would look for them.
      if let end = jobs[number]?.context.end, !checkpoint.retries.isEmpty, end <= now.steady {
        retries.noteEnd(end)
      }
      recordComplete(number)
      // The store had more rows than were known, and may have others.
      if let job = jobs[number], job.retryRows < 0, hasOnlyWaitingRetries(number) {
        askRetryRows(of: number, job, lane: job.context.lane)
      }
    }
  }

  /// Counts the handles that were removed; when the alarm came while that was being recorded, they
  /// come back.
  private mutating func noteRemovals(of checkpoint: Checkpoint) {
    var removed: [PushPlatform: Int] = [:]
    for handle in checkpoint.deadHandles + checkpoint.replacedHandles {
      removed[handle.platform, default: 0] += 1
    }
    for (platform, count) in removed.sorted(by: { $0.key.ordinal < $1.key.ordinal }) {
      let lane = LaneKey(hub: checkpoint.hub, platform: platform)
      add(.removed(count, lane))
      if let alarm = schedule.lanes[lane]?.alarm { restore(lane, since: alarm.since) }
    }
  }
}

// MARK: - Undoing removals

extension DispatchState {
  /// - Parameter since: Removals since then are in doubt.
  mutating func restore(_ lane: LaneKey, since: Date) { start(.restore(lane, since: since)) }
}

extension DispatchWork {
  /// The most registrations that are brought back in one transaction.
  private static let restoreLimit = 500

  func restore(_ lane: LaneKey, since: Date) async -> DispatchReport {
    var count = 0
    let wave = RemovalWave(platform: lane.platform, since: since, isDoubted: true)
    while true {
      let answer = await ask {
        try await store.restoreRemoved(
          wave, hub: lane.hub, asOf: clock.now(), limit: Self.restoreLimit)
      }
      guard case .value(let part) = answer else { return .restored(lane, count) }
      count += part.restored
      if !part.hasMore { return .restored(lane, count) }
    }
  }
}

extension DispatchState {
  mutating func handleRestored(_ lane: LaneKey, _ count: Int) {
    guard count > 0 else { return }
    report(.handlesRestored(hub: lane.hub, platform: lane.platform, count: count))
  }
}
