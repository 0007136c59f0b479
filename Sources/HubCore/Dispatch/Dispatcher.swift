import Foundation
package import NotificationHubs

/// Carries accepted notifications to the push services, page by page (docs/architecture.md, "A send
/// and back").
///
/// The actor only keeps books: ``DispatchJobs`` has what is under way, ``DispatchRetries`` what
/// waits in rows, ``DispatchSchedule`` decides what is done next, ``LaneRecords`` remembers what
/// push services have said. Pages are read, taken apart, delivered and recorded in tasks of their
/// own (``DispatchWork``), each of which hands one ``DispatchReport`` back.
///
/// What is promised of a notification rests on the store alone: accepted before anyone is told, a
/// cursor that never runs ahead of the outcomes recorded, retries as rows. A process that dies
/// repeats at most the pages in flight, with the same push ids.
package actor Dispatcher {
  private enum Phase {
    /// ``start()`` has not been called; what is accepted meanwhile stands in the store.
    case idle
    case loading
    case running
    case stopping
    case stopped
  }

  /// The longest sleep before a schedule, in seconds: the machine's clock may be set meanwhile, or
  /// the machine suspended.
  private static let longestScheduleSleep = 30.0

  package nonisolated let metrics = HubMetrics()
  /// How many nodes deliver.
  package nonisolated var nodes: NodeCount { work.nodes }
  nonisolated let work: DispatchWork
  private nonisolated var clock: HubClock { work.clock }

  private var phase = Phase.idle
  private var jobs = DispatchJobs()
  private var retries: DispatchRetries
  private(set) var schedule: DispatchSchedule
  private var releases = ReleaseTimer()
  private var credentials = CredentialTimer()
  private var claims = ClaimTimer()
  /// Parts that have been claimed and whose retries the store has not told yet.
  private var uncounted: [WorkID] = []
  /// The store has parts for this node's that it does not know of.
  private var hasForgotten = false
  private var news = NewsTimer()
  /// Notifications that were left alone because their rows cannot be read.
  private var unreadable: [WorkID] = []
  private var arrivedWhileLoading: [NotificationRecord] = []
  /// Aborted before they came here: between the store and this actor, something may be on its way.
  private var abortedBefore: [NotificationID] = []

  private var tasks: [Int: Task<Void, Never>] = [:]
  private var nextTask = 0
  private var alarm: (at: Date, task: Task<Void, Never>)?
  private var waiters = DispatchWaiters()

  /// - Parameters:
  ///   - nodes: Is kept up to date; gateways divide their rates by it.
  ///   - random: Spreads retries.
  ///   - report: Hears of what an operator should know; must return at once.
  package init(
    store: any DispatchStore, gateways: any GatewayDirectory, clock: HubClock,
    random: HubRandom, limits: DispatchLimits = DispatchLimits(), migratesGCM: Bool = false,
    nodes: NodeCount = NodeCount(),
    report: @escaping @Sendable (DispatchEvent) -> Void = { _ in }
  ) {
    work = DispatchWork(
      store: store, nodes: nodes,
      routes: GatewayRoutes(store: store, gateways: gateways, migratesGCM: migratesGCM),
      clock: clock, random: random, limits: limits, report: report)
    retries = DispatchRetries(limits: limits)
    schedule = DispatchSchedule(limits: limits)
  }

  /// Sets the shares of hubs in relation to each other: with a weight of 2 a hub's notifications go
  /// twice as fast as those of one with 1 while both want more than there is.
  /// - Parameter weights: Above 0; hubs that are not named have 1.
  package func setWeights(_ weights: [Hub.ID: Double]) {
    schedule.setWeights(weights)
    pump()
  }

  // MARK: Life

  /// Takes up every unfinished notification of the store, each at its cursor; where nodes share the
  /// work, what no other node has, now and from then on.
  /// - Throws: What the store throws; the dispatcher can be started again then.
  package func start() async throws {
    guard phase == .idle else { return }
    phase = .loading
    if work.store.isShared {
      claims.want(at: clock.steady())
      news.want(at: clock.steady())
    } else {
      try await load()
    }
    guard phase == .loading else { return }
    phase = .running
    for record in arrivedWhileLoading { take(record) }
    arrivedWhileLoading = []
    pump()
  }

  private func load() async throws {
    do {
      let store = work.store
      let found = try await store.unfinishedNotifications()
      var waiting: [Int] = []
      for record in found {
        waiting.append(try await store.waitingRetries(record.id, hub: record.hub))
      }
      for (lane, due) in try await store.retryLanes() { retries.add(lane, due: due) }
      releases.add(try await store.nextSchedule())
      guard phase == .loading else { return }
      for (record, rows) in zip(found, waiting) { add(record, retryRows: rows) }
      note(unreadable: found.unreadable)
    } catch {
      if phase == .loading { phase = .idle }
      throw error
    }
  }

  /// Begins the delivery of a notification that the store has accepted; that of a scheduled one
  /// when its time comes.
  package func submit(_ record: NotificationRecord) {
    switch phase {
    case .running:
      take(record)
      pump()
    case .loading: arrivedWhileLoading.append(record)
    case .idle, .stopping, .stopped: break
    }
  }

  /// Ends a notification that the store has marked as aborted: its pages are not sent any more, but
  /// for what a gateway has already, and every target that was not reached counts as `Aborted`.
  /// ``HubService`` calls this after the store.
  package func abort(_ id: NotificationID) {
    let numbers = jobs.numbers(of: id)
    if numbers.isEmpty {
      abortedBefore.append(id)
      if abortedBefore.count > Self.mostAbortedBefore { abortedBefore.removeFirst() }
    }
    for number in numbers { abort(number) }
    pump()
  }

  /// Only what is accepted or released in the same moment needs to be remembered.
  private static let mostAbortedBefore = 64

  private func abort(_ number: Int) {
    guard let job = jobs[number], !job.context.isAborted else { return }
    job.context.abort()
    settleAborted(number)
    retries.noteEnd(clock.steady())
  }

  /// What waits in memory of an aborted notification waits no longer.
  private func settleAborted(_ number: Int) {
    guard jobs[number]?.context.isAborted == true else { return }
    let now = clock.steady()
    for key in schedule.end(number, at: now) { postpone(key, at: now) }
  }

  /// Lets a resting lane try at once. ``HubService`` calls this when it has replaced or removed a
  /// push credential.
  package func credentialChanged(_ platform: PushPlatform, hub: Hub.ID) {
    let lane = LaneKey(hub: hub, platform: platform)
    schedule.lanes.forgetAnswers(of: lane)
    // What waits must not go out with the old one.
    spawn { [work] in await work.findReplaced(lane) }
  }

  /// Asks the store what is left of a hub's notifications. ``HubService`` calls this when it has
  /// deleted something that may have taken some along: the hub, or a user.
  package func recheck(hub: Hub.ID) {
    guard phase == .running else { return }
    for number in jobs.numbers(where: { $0.context.hub == hub }) {
      guard let job = jobs[number] else { continue }
      askRetryRows(of: number, job, lane: job.context.lane)
    }
  }

  /// Reads nothing more, lets what is in flight finish, records it and returns; at the latest after
  /// the limit. What is left is taken up by the next start.
  package func stop(within limit: Duration) async {
    guard phase != .stopped else { return }
    if phase != .stopping {
      phase = .stopping
      alarm?.task.cancel()
      alarm = nil
      putOffStartedPages()
    }
    if !tasks.isEmpty { _ = await wait(for: nil, within: limit) }
    for number in tasks.keys.sorted() { tasks[number]?.cancel() }
    phase = .stopped
    // What fails here ends with the lease.
    if work.store.isShared { try? await work.store.releaseWork() }
    waiters.resume { _ in true }
  }

  private func take(_ record: NotificationRecord) {
    if record.state == .scheduled {
      releases.add(record.scheduledFor)
    } else if work.store.isShared {
      claims.want(at: clock.steady())
    } else {
      add(record, retryRows: 0)
    }
  }

  private func add(_ record: NotificationRecord, retryRows: Int) {
    let context = DispatchContext(
      record, limits: work.limits, clock: clock, node: work.store.nodeID)
    if let index = abortedBefore.firstIndex(of: record.id) {
      abortedBefore.remove(at: index)
      context.abort()
    }
    guard let number = jobs.add(record, context, retryRows: retryRows, at: clock.now()) else {
      return
    }
    schedule.add(
      number, hub: context.hub, lane: context.lane, deadline: context.end,
      hasPages: !record.isAudienceRead)
    retries.add(number, end: context.end)
    recordComplete(number)
  }

  /// Reports what a list has left out.
  package nonisolated func note(_ unreadable: [UnreadableTarget], hub: Hub.ID) {
    for target in unreadable {
      work.report(
        .unreadableTarget(
          hub: hub, nil, registration: target.registration, reason: target.reason))
    }
  }

  /// They stay in the store, and are looked for again at the next start.
  private func note(unreadable found: [UnreadableNotification]) {
    for lost in found {
      unreadable.append(WorkID(lost.id, part: lost.part))
      work.report(.unreadableNotification(lost))
    }
  }

  /// This part is done, or its notification or hub is gone.
  /// - Parameter isFinished: The notification has its final state.
  /// - Parameter isReplaced: Whether the same part is added again at once, so that nobody has waited
  ///   to the end yet.
  private func remove(_ number: Int, isFinished: Bool, isReplaced: Bool = false) {
    guard let job = jobs.remove(number) else { return }
    schedule.remove(number)
    retries.remove(number)
    if isFinished {
      let devices = job.tally.values.reduce(0, +)
      let seconds = max(0, clock.now().timeIntervalSince(job.takenUpAt))
      metrics.finished(devices: devices, seconds: seconds)
      work.report(
        .finished(
          hub: job.context.hub, job.context.id, state: job.state, counts: job.tally,
          seconds: seconds))
    }
    // As few parts of a notification are taken up at a time, there may be another.
    if work.store.isShared { claims.want(at: clock.steady()) }
    guard !isReplaced else { return }
    let isLast = jobs.numbers(of: job.context.id).isEmpty
    waiters.resume { waiting in
      waiting.map { $0 == job.context.id && isLast } ?? jobs.isEmpty
    }
  }

  private func forget(_ number: Int) {
    if let hub = jobs[number]?.context.hub { schedule.lanes.forgetHandles(of: hub) }
    drop(number)
  }

  private func loseLease(_ number: Int) {
    if let context = jobs[number]?.context {
      work.report(.leaseLost(hub: context.hub, context.id, part: context.lease.part))
    }
    drop(number)
  }

  /// This node does not go on with a part. If it is still the node's own, as when it only believed
  /// its lease to be over, nobody could claim it: it is given back.
  private func drop(_ number: Int) {
    let context = jobs[number]?.context
    remove(number, isFinished: false)
    guard work.store.isShared, let context else { return }
    giveBack(context.lease, of: context.id, hub: context.hub)
  }

  private func giveBack(_ lease: WorkLease, of id: NotificationID, hub: Hub.ID) {
    spawn { [work] in await work.giveBack(lease, of: id, hub: hub) }
  }

  // MARK: Waiting

  /// Whether nothing is left to deliver; retries that wait count as left.
  package var isIdle: Bool { jobs.isEmpty }

  /// Whether only the passing of time, or somebody's call, can set anything going.
  var isQuiet: Bool { tasks.isEmpty }

  /// Time until the next alarm, in seconds; not above 0 when it has rung and nothing has come
  /// of it yet.
  var secondsToAlarm: Double? { alarm.map { $0.at.timeIntervalSince(clock.steady()) } }

  /// Waits until nothing is left to deliver, or the dispatcher has stopped.
  /// - Returns: `false` when the limit came first.
  package func waitUntilIdle(within limit: Duration) async -> Bool {
    if jobs.isEmpty || phase == .stopped { return true }
    return await wait(for: nil, within: limit)
  }

  /// Waits until a notification that was submitted here has its final state.
  /// - Returns: Its record as the store has it, also when the limit came first or the dispatcher
  ///   stopped; `nil` when the store knows none.
  package func record(
    of id: NotificationID, hub: Hub.ID, finishedWithin limit: Duration
  ) async throws -> NotificationRecord? {
    let end = clock.steady().addingTimeInterval(limit / .seconds(1))
    while true {
      let left = max(0, end.timeIntervalSince(clock.steady()))
      if !jobs.numbers(of: id).isEmpty, phase != .stopped {
        _ = await wait(for: id, within: .seconds(left))
      }
      let record = try await work.store.notification(id, hub: hub)
      // What another node has of it ends there.
      guard work.store.isShared, let record, !record.state.isFinal, record.state != .scheduled,
        phase == .running, clock.steady() < end
      else { return record }
      try await clock.sleep(Self.watchInterval)
    }
  }

  /// Between two looks at a notification that another node may be working on.
  private static let watchInterval = Duration.milliseconds(50)

  /// - Parameter notification: `nil` waits for all.
  private func wait(for notification: NotificationID?, within limit: Duration) async -> Bool {
    let number = waiters.number()
    let timer = Task {
      try? await clock.sleep(limit)
      waiters.giveUp(number)
    }
    defer { timer.cancel() }
    return await withCheckedContinuation { waiters.add(number, for: notification, $0) }
  }

  // MARK: Going on

  /// Runs work outside the actor and takes its report.
  private func spawn(_ work: @escaping @Sendable () async -> DispatchReport) {
    let number = nextTask
    nextTask += 1
    tasks[number] = Task {
      let report = await work()
      tasks[number] = nil
      take(report)
      if phase == .stopping, tasks.isEmpty { waiters.resume { $0 == nil } }
    }
    // A task that begins after the end has one try at the store.
    if phase == .stopped { tasks[number]?.cancel() }
  }

  private func take(_ report: DispatchReport) {
    switch report {
    case .page(let number, let plan, let targets, let end, let isLast):
      takePage(number, plan, targets: targets, end: end, isLast: isLast)
    case .part(let key, let lane, let settlement, let isRedirected):
      if isRedirected { redirect(lane, settlement) }
      takePart(key, lane, settlement)
    case .unowned(let key, let lane):
      schedule.lanes.finish(key, of: lane, at: clock.steady())
      if let number = jobs.notification(of: key) { loseLease(number) }
    case .recorded(let number, let checkpoint, let answer):
      takeRecorded(number, checkpoint, answer)
    case .claimed(let claimed): takeClaimed(claimed)
    case .counted(let claimed):
      for record in claimed.parts.map(\.record) + claimed.dropped {
        if let place = uncounted.firstIndex(of: record.workID) { uncounted.remove(at: place) }
      }
      claims.want(at: clock.steady())
      addClaimed(claimed)
    case .retries(let turn, let groups, let next, let at):
      takeRetries(turn, groups, next: next, at: at)
    case .endedRetries(let turn, let answer): takeEndedRetries(turn, answer)
    case .retryPlan(let number, let plan, let page): takeRetryPlan(number, plan, page)
    case .retryRows(let number, let rows, let count): takeRetryRows(number, rows, count)
    case .released(let found, let next): takeReleased(found, next: next)
    case .credentials(let found): takeCredentials(found)
    case .replaced(let lane, let credential): use(credential, for: lane)
    case .broughtBack(let lane, let count): takeBroughtBack(lane, count)
    case .news(let heard, let told): takeNews(heard, told: told)
    case .gone(let number): forget(number)
    case .lost(let number): loseLease(number)
    case .stopped(let number): drop(number)
    case .givenBack: claims.want(at: clock.steady())
    }
    pump()
  }

  /// Starts everything that may start.
  private func pump() {
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
    claimWork(at: now)
    exchangeNews(at: now)
    releaseSchedules(at: clock.now())
    setAlarm(after: now)
  }

  /// Wakes the dispatcher when time alone allows something new.
  /// - Parameter now: The moment that the last look was for: what has come due since then must not
  ///   fall between the two.
  private func setAlarm(after now: Date) {
    var earliest = EarliestMoment(after: now)
    earliest.add(schedule.nextWake(after: now))
    earliest.add(retries.nextWake(after: now) { schedule.lanes.retryRoom($0, at: now) })
    for due in [credentials.due, claims.due, news.due] { earliest.add(due) }
    // A schedule follows the machine's clock.
    if let due = releases.due {
      earliest.add(clock.steady().addingTimeInterval(due.timeIntervalSince(clock.now())))
    }
    let wake = earliest.moment
    // A schedule's moment differs from look to look by what the clocks are read apart.
    if let wake, let alarm, abs(wake.timeIntervalSince(alarm.at)) < 0.001 { return }
    guard wake != nil || alarm != nil else { return }
    alarm?.task.cancel()
    alarm = nil
    guard let wake else { return }
    var seconds = max(0, wake.timeIntervalSince(clock.steady()))
    if releases.due != nil { seconds = min(seconds, Self.longestScheduleSleep) }
    let pause = Duration.milliseconds(Int64((seconds * 1000).rounded(.up)))
    let task = Task {
      guard (try? await clock.sleep(pause)) != nil, alarm?.at == wake else { return }
      alarm = nil
      pump()
    }
    alarm = (wake, task)
  }

  // MARK: Pages

  private func read(_ number: Int) {
    guard let job = jobs[number] else { return }
    spawn { [work] in await work.readPage(of: number, job.context, after: job.readCursor) }
  }

  private func takePage(
    _ number: Int, _ plan: PagePlan, targets: Int, end: RegistrationID, isLast: Bool
  ) {
    guard jobs[number] != nil else { return }
    let parts = jobs.open(plan, of: number, targets: targets, end: end, isLast: isLast)
    recordComplete(number)
    schedule.pageRead(number, parts: announce(parts), targets: targets, isLast: isLast)
    settleAborted(number)
  }

  /// Tells which credentials and connections parts use that have been read.
  private func announce(
    _ parts: [(key: PartKey, part: PagePart)]
  ) -> [DispatchSchedule.Part] {
    parts.map { key, part in
      use(part.credential, for: part.lane)
      schedule.lanes.assign(part.lane, to: part.gateway.pool)
      return .init(key: key, lane: part.lane, targets: part.batch.requests.count)
    }
  }

  private func deliver(_ key: PartKey, isProbe: Bool, at now: Date) {
    guard let started = jobs.start(key, at: now) else { return }
    let part = started.part
    if part.registrations.isEmpty {
      schedule.lanes.finish(key, of: part.lane, at: now)
      return close(key, PageOutcome(), of: started.notification)
    }
    let pace = schedule.lanes.pool(of: part.lane)?.pace
    spawn { [work] in
      await work.deliver(
        part, key, started.context, attempts: started.retries?.attempts, isProbe: isProbe,
        pace: pace)
    }
  }

  /// A part that had waited was sent with a newer credential than its page was read with.
  private func redirect(_ lane: LaneKey, _ settlement: PartSettlement) {
    use(settlement.credential, for: lane)
    schedule.lanes.assign(lane, to: settlement.pool)
  }

  private func takePart(_ key: PartKey, _ lane: LaneKey, _ settlement: PartSettlement) {
    let now = clock.steady()
    schedule.lanes.finish(
      key, of: lane, settlement.signs, jitter: work.random.unit(), at: now)
    var outcome = settlement.outcome
    let changes = schedule.lanes.settle(
      &outcome, settlement, of: lane, isShared: work.store.isShared, at: now, wall: clock.now())
    for change in changes { handle(change, of: lane, at: now) }
    guard let number = jobs.notification(of: key) else { return }
    if let unsent = settlement.unsent { putBack(unsent, key, of: number, at: now) }
    close(key, outcome, of: number)
  }

  /// Tells the log and other nodes of a lane's change.
  private func handle(_ change: Lane.Change, of lane: LaneKey, at now: Date) {
    let (hub, platform) = (lane.hub, lane.platform)
    switch change {
    case .alarm(let alarm):
      work.report(
        .deadHandlesSuspicious(
          hub: hub, platform: platform, dead: alarm.condemned, of: alarm.judged))
      bringBack(lane, since: alarm.since)
      tellSoon(at: now)
    case .serviceBack: work.report(.serviceBack(hub: hub, platform: platform))
    case .recovered: tellSoon(at: now)
    case .refused(let until, let reason):
      tellSoon(at: now)
      work.report(
        .credentialPaused(hub: hub, platform: platform, until: wallTime(until), reason: reason))
    case .down(let until, let reason):
      work.report(
        .serviceDown(hub: hub, platform: platform, until: wallTime(until), reason: reason))
    }
  }

  /// What the machine's clock says at a moment of ``HubClock/steady``, as it is set now.
  private nonisolated func wallTime(_ steady: Date) -> Date {
    clock.now().addingTimeInterval(steady.timeIntervalSince(clock.steady()))
  }

  /// A part that comes back unsent waits: in its rows when it has rows, in memory otherwise.
  private func putBack(_ unsent: PagePart, _ key: PartKey, of number: Int, at now: Date) {
    jobs.putBack(unsent, key)
    if jobs[number]?.context.isAborted == true {
      postpone(key, at: now)
    } else if jobs.waiting(key)?.retries != nil {
      release(key, at: now)
    } else if phase == .running {
      schedule.returned(
        number, .init(key: key, lane: unsent.lane, targets: unsent.batch.requests.count))
    } else {
      postpone(key, at: now)
    }
  }

  /// Leaves the targets of a page of retries to their rows, which are as they were.
  private func release(_ key: PartKey, at now: Date) {
    guard let waiting = jobs.waiting(key), let lane = waiting.retries?.lane else { return }
    // It waits for another lane than its rows say.
    guard waiting.part.lane == lane else { return postpone(key, at: now) }
    jobs.release(key)
    retries.release(waiting.part.registrations, of: waiting.notification, lane, at: now)
    recordComplete(waiting.notification)
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
    guard let waiting = jobs.waiting(key) else { return }
    let refusal = schedule.lanes[waiting.part.lane]?.refusal?.answer
    jobs.settle(key, at: now) { body(&$0, refusal) }
    recordComplete(waiting.notification)
  }

  private func close(_ key: PartKey, _ outcome: PageOutcome, of number: Int) {
    jobs.close(key, outcome)
    recordComplete(number)
  }

  /// When stopping: what waits in a page of which something was sent becomes retries, so that the
  /// page can be recorded; a page of which nothing was sent is read again by the next start.
  private func putOffStartedPages() {
    let now = clock.steady()
    for (key, isRetry) in jobs.waitingInStartedPages {
      if isRetry { release(key, at: now) } else { postpone(key, at: now) }
    }
  }

  // MARK: Recording

  /// Writes down what may be written, if anything.
  private func recordComplete(_ number: Int) {
    guard let taken = jobs.checkpoint(number, at: clock.now()) else { return }
    let checkpoint = schedule.lanes.sparingDoubted(taken)
    spawn { [work] in await work.record(checkpoint, of: number) }
  }

  private func takeRecorded(
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
      metrics.recorded(
        checkpoint.counts,
        seconds: max(0, clock.now().timeIntervalSince(context.releasedAt)))
    }
    if checkpoint.state?.isFinal == true {
      remove(number, isFinished: answer.isFinished)
    } else {
      if answer.isAborted { abort(number) }
      // Rows that were written when the time was over already: nothing else would look for them.
      if let end = jobs[number]?.context.end, !checkpoint.retries.isEmpty, end <= clock.steady() {
        retries.noteEnd(end)
      }
      recordComplete(number)
      // The store had more rows than were known, and may have others.
      if let job = jobs[number], job.retryRows < 0, hasOnlyWaitingRetries(number) {
        askRetryRows(of: number, job, lane: job.context.lane)
      }
    }
  }

  /// Counts what has gone; when the alarm came while that was being written, it comes back.
  private func noteRemovals(of checkpoint: Checkpoint) {
    var removed: [PushPlatform: Int] = [:]
    for handle in checkpoint.deadHandles + checkpoint.replacedHandles {
      removed[handle.platform, default: 0] += 1
    }
    for (platform, count) in removed.sorted(by: { $0.key.ordinal < $1.key.ordinal }) {
      let lane = LaneKey(hub: checkpoint.hub, platform: platform)
      metrics.handles(removed: count, of: lane)
      if let alarm = schedule.lanes[lane]?.alarm { bringBack(lane, since: alarm.since) }
    }
  }

  private func bringBack(_ lane: LaneKey, since: Date) {
    spawn { [work] in await work.bringBack(lane, since: since) }
  }

  private func takeBroughtBack(_ lane: LaneKey, _ count: Int) {
    guard count > 0 else { return }
    metrics.handles(restored: count, of: lane)
    work.report(.handlesRestored(hub: lane.hub, platform: lane.platform, count: count))
  }

  // MARK: Retries

  /// Looks for retries of notifications whose time is over, and for those that are due, as many as
  /// their lane will take.
  private func readRetries(at now: Date) {
    if let (turn, context, limit, pause) = retries.nextEnded(at: now, of: jobs) {
      return spawn { [work] in
        await work.readEndedRetries(turn, of: context, limit: limit, againIn: pause)
      }
    }
    guard let turn = retries.next(at: now, most: { schedule.lanes.retryRoom($0, at: now) }) else {
      return
    }
    spawn { [work] in await work.readRetries(turn, at: now) }
  }

  private func takeRetries(
    _ turn: RetryTurns.Turn, _ groups: [DueRetries]?, next: Date?, at now: Date
  ) {
    guard let groups else { return retries.fail(turn, at: clock.steady()) }
    let found = groups.reduce(0) { $0 + $1.attempts.count }
    let taken = groups.reduce(0) { $0 + start($1, of: turn.lane) }
    retries.finish(turn, found: found, taken: taken, next: next, at: now)
    guard next == nil, found == 0 else { return }
    // The lane has no rows; those of its notifications that count on some are mistaken.
    let mistaken = jobs.numbers {
      $0.context.hub == turn.lane.hub && $0.context.lane.map { $0 == turn.lane } ?? true
    }
    for number in mistaken { countRetries(of: number, lane: turn.lane) }
  }

  private func takeEndedRetries(_ turn: EndedRetries, _ answer: StoreAnswer<[DueRetries]>?) {
    guard let answer else { return retries.fail(turn, at: clock.steady()) }
    guard case .value(let groups) = answer else {
      retries.finish(turn, taken: 0)
      return forget(turn.notification)
    }
    let taken = groups.reduce(0) { $0 + start($1, of: turn.lane) }
    retries.finish(turn, taken: taken)
    if groups.isEmpty { countRetries(of: turn.notification, lane: turn.lane) }
  }

  /// - Returns: How many targets are under way now that were not before.
  private func start(_ found: DueRetries, of lane: LaneKey) -> Int {
    guard let number = jobs.number(of: found.notification, part: found.part),
      let context = jobs[number]?.context,
      let (group, page) = retries.start(found, of: number, lane)
    else { return 0 }
    spawn { [work] in await work.planRetries(group, of: number, context, page) }
    return page.attempts.count
  }

  private func takeRetryPlan(_ number: Int, _ plan: PagePlan, _ page: RetryPage) {
    guard jobs[number] != nil else { return }
    let parts = jobs.open(plan, of: number, retries: page)
    recordComplete(number)
    schedule.retriesRead(number, parts: announce(parts))
    settleAborted(number)
  }

  /// Counts the rows that the store has for a notification of which nothing else is left: users
  /// that are erased, and hubs that are deleted, take theirs along. One that has more under way, and
  /// rows by its books, is looked at again.
  private func countRetries(of number: Int, lane: LaneKey) {
    guard let job = jobs[number], job.retryRows != 0 else { return }
    guard hasOnlyWaitingRetries(number) else { return scheduleRetryRead(lane) }
    askRetryRows(of: number, job, lane: lane)
  }

  private func askRetryRows(of number: Int, _ job: DispatchJob, lane: LaneKey?) {
    let count = RowCount(lane: lane, checkpoint: job.lastRecorded)
    spawn { [work] in await work.countRetries(of: number, job.context, count) }
  }

  private func takeRetryRows(_ number: Int, _ rows: Int, _ count: RowCount) {
    // They were not found a moment ago: somebody must look again.
    if rows > 0, let lane = count.lane { scheduleRetryRead(lane) }
    // Retries that have begun meanwhile keep their own books, and rows that were written meanwhile
    // are looked for when they are due.
    guard hasOnlyWaitingRetries(number), let checkpoint = count.checkpoint,
      jobs[number]?.lastRecorded == checkpoint
    else { return }
    jobs.note(retryRows: rows, of: number)
    if rows > 0, let end = jobs[number]?.context.end {
      retries.noteEnd(max(end, clock.steady().addingTimeInterval(1)))
    }
    recordComplete(number)
  }

  private func scheduleRetryRead(_ lane: LaneKey) {
    retries.add(lane, due: clock.steady().addingTimeInterval(1))
  }

  private func hasOnlyWaitingRetries(_ number: Int) -> Bool {
    jobs[number]?.hasOnlyRetryRows == true && !retries.isUnderWay(number)
  }

  // MARK: Work of several nodes

  private func claimWork(at now: Date) {
    guard claims.isDue(at: now) else { return }
    // Parts that only wait for a push service that is down keep no others from being claimed.
    let waiting = jobs.all.count {
      $0.value.hasOnlyRetryRows || schedule.isHeldBack($0.key, at: now)
    }
    let room = min(
      work.limits.claimedParts - (jobs.count - waiting) - uncounted.count,
      work.limits.waitingParts - waiting)
    guard claims.start(at: now) else { return }
    let known = hasForgotten ? known : nil
    hasForgotten = false
    // A node without room looks as well: it learns of schedules that no other node may live to release.
    spawn { [work] in await work.claim(limit: max(0, room), beside: known) }
  }

  /// All that this node has claimed, as far as it knows.
  private var known: Set<WorkID> {
    let parts = jobs.all.values.map { WorkID($0.context.id, part: $0.context.lease.part) }
    return Set(parts + uncounted + unreadable)
  }

  private func takeClaimed(_ claimed: ClaimedWork) {
    let hasMore = !claimed.parts.isEmpty || !claimed.unreadable.isEmpty
    claims.finish(hasMore: hasMore, jitter: work.random.unit(), at: clock.steady())
    addClaimed(claimed)
    releases.add(claimed.nextSchedule)
    note(unreadable: claimed.unreadable)
  }

  private func addClaimed(_ claimed: ClaimedWork) {
    // All that the node has is given back at the end.
    guard phase == .running else { return }
    for (lane, due) in claimed.lanes { retries.add(lane, due: due) }
    for (record, rows) in claimed.parts {
      // Its old lease has ended unnoticed; this claim takes its place.
      if let old = jobs.number(of: record.id, part: record.lease.part) {
        guard let lease = jobs[old]?.context.lease, lease.epoch < record.lease.epoch else {
          continue
        }
        remove(old, isFinished: false, isReplaced: true)
      }
      add(record, retryRows: rows)
    }
    for record in claimed.uncounted {
      uncounted.append(record.workID)
      spawn { [work] in await work.countRetries(of: record) }
    }
    for record in claimed.dropped { giveBack(record.lease, of: record.id, hub: record.hub) }
  }

  // MARK: What other nodes know

  /// Something has been learnt that others should hear of.
  private func tellSoon(at now: Date) {
    if work.store.isShared { news.want(at: now) }
  }

  private func exchangeNews(at now: Date) {
    guard news.start(at: now) else { return }
    let words = schedule.lanes.findings(longerThan: NewsTimer.period, at: now)
    let recovered = schedule.lanes.takeRecovered()
    spawn { [work] in await work.exchange(words, recovered: recovered) }
  }

  private func takeNews(_ heard: LaneNews?, told: Set<LaneKey>) {
    let now = clock.steady()
    news.finish(at: now)
    guard let heard else { return schedule.lanes.putBack(recovered: told) }
    work.nodes.set(heard.nodes)
    // The node that was asked to has only told the store.
    for id in heard.aborted { for number in jobs.numbers(of: id) { abort(number) } }
    // What was removed here between the alarm and this moment is in doubt as well.
    for (lane, since) in schedule.lanes.hear(heard.words, lifted: heard.lifted, at: now) {
      bringBack(lane, since: since)
    }
  }

  // MARK: Schedules and credentials

  private func releaseSchedules(at now: Date) {
    guard releases.start(at: now) else { return }
    spawn { [work] in await work.releaseSchedules(at: now) }
  }

  private func takeReleased(_ found: FoundNotifications, next: Date?) {
    releases.finish(next: next)
    guard phase == .running else { return }
    if work.store.isShared {
      // They are anybody's now.
      claims.want(at: clock.steady())
    } else {
      for record in found { add(record, retryRows: 0) }
    }
    note(unreadable: found.unreadable)
  }

  /// Looks again and again, while notifications wait for a lane that failed or rests for long,
  /// whether another process has replaced its credential: the old one may be refused or limited, or
  /// lead to the wrong address.
  private func watchCredentials(at now: Date) {
    let waiting = jobs.isEmpty ? [] : schedule.lanes.inTrouble(at: now)
    guard credentials.start(isNeeded: !waiting.isEmpty, at: now) else { return }
    spawn { [work] in await work.findCredentials(of: waiting) }
  }

  private func takeCredentials(_ found: [LaneKey: Date?]) {
    credentials.finish()
    for (lane, credential) in found { use(credential, for: lane) }
  }

  private func use(_ credential: Date?, for lane: LaneKey) {
    schedule.lanes.use(credential, for: lane, at: clock.steady())
  }

  // MARK: Status

  /// After so many seconds nobody has taken up work that is due, something is wrong.
  private static let unclaimedAfter = 5.0

  /// How many notifications are due for five seconds that neither this process delivers nor, where
  /// nodes share the work, another.
  /// - Throws: What the store throws.
  func unclaimedWork() async throws -> Int {
    guard phase == .running else { return 0 }
    // Those have a warning of their own.
    let unreadable = work.store.isShared ? 0 : unreadable.count
    let found = try await work.store.unclaimedWork(
      dueBy: clock.now().addingTimeInterval(-Self.unclaimedAfter), beside: known)
    // Or a claim has been under way.
    hasForgotten = found.isForgotten
    return max(0, found.count - unreadable)
  }

  package func status() -> DispatchStatus {
    var status = DispatchStatus(jobs, schedule, at: clock.steady(), wallTime: wallTime)
    status.isRunning = phase == .running
    status.isStopping = phase == .stopping || phase == .stopped
    status.unreadable = unreadable.count
    return status
  }
}
