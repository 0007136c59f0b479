import Foundation
package import NotificationHubs

/// Carries accepted notifications to the push services, page by page (docs/architecture.md, "A send
/// and back").
///
/// The actor only carries out what ``DispatchState`` decides: it has the tasks (``DispatchWork``),
/// the alarm, and the callers that wait. Each task ends in one ``DispatchReport``, which the state
/// handles.
///
/// A notification's promise rests on the store alone: accepted before anyone is told, a cursor that
/// never runs ahead of the outcomes recorded, retries as rows. A process that dies repeats at most
/// the pages in flight, with the same push ids.
package actor Dispatcher {
  /// The longest sleep before a schedule, in seconds: the machine's clock may be set meanwhile, or
  /// the machine suspended.
  private static let longestScheduleSleep = 30.0

  package nonisolated let metrics = HubMetrics()
  /// Number of nodes that deliver.
  package nonisolated var nodes: NodeCount { work.nodes }
  nonisolated let work: DispatchWork
  private nonisolated var clock: HubClock { work.clock }

  private(set) var state: DispatchState
  private var tasks: [Int: Task<Void, Never>] = [:]
  private var nextTask = 0
  private var alarm: (at: Date, task: Task<Void, Never>)?
  private var waiters = DispatchWaiters()

  /// - Parameters:
  ///   - nodes: Is kept up to date; gateways divide their rates by it.
  ///   - random: Spreads retries.
  ///   - report: Receives events that an operator should know of; must return at once.
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
    state = DispatchState(
      limits: limits, isShared: store.isShared, random: random,
      at: DispatchMoment(clock, node: store.nodeID))
  }

  private func currentMoment() -> DispatchMoment {
    DispatchMoment(clock, node: work.store.nodeID)
  }

  /// Sets the shares of hubs in relation to each other: with a weight of 2 a hub's notifications go
  /// twice as fast as those of one with 1 while both want more than there is.
  /// - Parameter weights: Above 0; hubs that are not named have 1.
  package func setWeights(_ weights: [Hub.ID: Double]) {
    state.schedule.setWeights(weights)
    advance(at: currentMoment())
  }

  // MARK: Life

  /// Continues every unfinished notification of the store, each at its cursor; where nodes share the
  /// work, those that no other node has, now and from then on.
  /// - Throws: The store's errors; the dispatcher can be started again then.
  package func start() async throws {
    guard state.beginLoading(at: currentMoment()) else { return }
    var loaded: LoadedWork?
    if !state.isShared {
      do {
        loaded = try await work.load()
      } catch {
        state.loadingFailed()
        throw error
      }
    }
    guard state.phase == .loading else { return }
    let moment = currentMoment()
    state.run(with: loaded, at: moment)
    advance(at: moment)
  }

  /// Begins the delivery of a notification that the store has accepted; that of a scheduled one
  /// when its time comes.
  package func submit(_ record: NotificationRecord) {
    let moment = currentMoment()
    state.submit(record, at: moment)
    advance(at: moment)
  }

  /// Ends a notification that the store has marked as aborted: its pages are not sent any more,
  /// except for those that a gateway has already, and every target that was not reached counts as
  /// `Aborted`. ``HubService`` calls this after the store.
  package func abort(_ id: NotificationID) {
    let moment = currentMoment()
    state.abort(id, at: moment)
    advance(at: moment)
  }

  /// Lets a resting lane try at once. ``HubService`` calls this when it has replaced or removed a
  /// push credential.
  package func credentialChanged(_ platform: PushPlatform, hub: Hub.ID) {
    state.credentialChanged(LaneKey(hub: hub, platform: platform), at: currentMoment())
    perform()
  }

  /// Asks the store what is left of a hub's notifications. ``HubService`` calls this when it has
  /// deleted something that may have taken some along: the hub, or a user.
  package func recheck(hub: Hub.ID) {
    state.recheck(hub: hub, at: currentMoment())
    perform()
  }

  /// Reads nothing more, lets tasks under way finish, records their results and returns; at the
  /// latest after the limit. The next start continues what is left.
  package func stop(within limit: Duration) async {
    guard state.phase != .stopped else { return }
    if state.phase != .stopping {
      alarm?.task.cancel()
      alarm = nil
      state.beginStopping(at: currentMoment())
      perform()
    }
    if !tasks.isEmpty { _ = await wait(for: nil, within: limit) }
    for number in tasks.keys.sorted() { tasks[number]?.cancel() }
    state.stopped()
    // Work that cannot be given back here ends with the lease.
    if state.isShared { try? await work.store.releaseWork() }
    waiters.resume { _ in true }
  }

  // MARK: Actions

  /// Starts everything that may start.
  private func advance(at moment: DispatchMoment) {
    let wake = state.advance(at: moment)
    perform()
    if state.phase == .running { setAlarm(at: wake) }
  }

  /// Carries out what the state has decided.
  private func perform() {
    for action in state.drainActions() {
      switch action {
      case .start(let task): start(task)
      case .report(let event):
        count(event)
        work.report(event)
      case .recorded(let counts, let seconds): metrics.recorded(counts, seconds: seconds)
      case .removed(let count, let lane): metrics.handles(removed: count, of: lane)
      case .setNodes(let nodes): work.nodes.set(nodes)
      case .ended(let id, let isLast, let isIdle):
        waiters.resume { waiting in waiting.map { $0 == id && isLast } ?? isIdle }
      }
    }
  }

  private func count(_ event: DispatchEvent) {
    switch event {
    case .finished(_, _, _, let counts, let seconds):
      metrics.finished(devices: counts.values.reduce(0, +), seconds: seconds)
    case .handlesRestored(let hub, let platform, let count):
      metrics.handles(restored: count, of: LaneKey(hub: hub, platform: platform))
    default: break
    }
  }

  /// Runs a task outside the actor and hands its report to the state.
  private func start(_ task: DispatchTask) {
    let number = nextTask
    nextTask += 1
    tasks[number] = Task {
      let report = await work.perform(task)
      tasks[number] = nil
      let moment = currentMoment()
      state.handle(report, at: moment)
      advance(at: moment)
      if state.phase == .stopping, tasks.isEmpty { waiters.resume { $0 == nil } }
    }
    // A task that begins after the end has one try at the store.
    if state.phase == .stopped { tasks[number]?.cancel() }
  }

  /// Wakes the dispatcher when time alone allows something new.
  private func setAlarm(at wake: Date?) {
    // A schedule's moment differs from look to look by what the clocks are read apart.
    if let wake, let alarm, abs(wake.timeIntervalSince(alarm.at)) < 0.001 { return }
    guard wake != nil || alarm != nil else { return }
    alarm?.task.cancel()
    alarm = nil
    guard let wake else { return }
    var seconds = max(0, wake.timeIntervalSince(clock.steady()))
    if state.releases.due != nil { seconds = min(seconds, Self.longestScheduleSleep) }
    let pause = Duration.milliseconds(Int64((seconds * 1000).rounded(.up)))
    let task = Task {
      guard (try? await clock.sleep(pause)) != nil, alarm?.at == wake else { return }
      alarm = nil
      advance(at: currentMoment())
    }
    alarm = (wake, task)
  }

  // MARK: Waiting

  /// Whether nothing is left to deliver; retries that wait count as left.
  package var isIdle: Bool { state.jobs.isEmpty }

  /// Whether only the passing of time, or somebody's call, can start anything.
  var isQuiet: Bool { tasks.isEmpty }

  /// Time until the next alarm, in seconds; not above 0 when it has rung and nothing has come
  /// of it yet.
  var secondsToAlarm: Double? { alarm.map { $0.at.timeIntervalSince(clock.steady()) } }

  /// Waits until nothing is left to deliver, or the dispatcher has stopped.
  /// - Returns: `false` when the limit came first.
  package func waitUntilIdle(within limit: Duration) async -> Bool {
    if isIdle || state.phase == .stopped { return true }
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
      if !state.jobs.numbers(of: id).isEmpty, state.phase != .stopped {
        _ = await wait(for: id, within: .seconds(left))
      }
      let record = try await work.store.notification(id, hub: hub)
      // Parts of it that another node has end there.
      guard state.isShared, let record, !record.state.isFinal, record.state != .scheduled,
        state.phase == .running, clock.steady() < end
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

  // MARK: Status

  /// When nobody has claimed work that has been due for so many seconds, something is wrong.
  private static let unclaimedAfter = 5.0

  /// The number of notifications that have been due for five seconds and that neither this process
  /// delivers nor, where nodes share the work, another.
  /// - Throws: The store's errors.
  func unclaimedWork() async throws -> Int {
    guard state.phase == .running else { return 0 }
    // Those have a warning of their own.
    let unreadable = state.isShared ? 0 : state.unreadable.count
    let found = try await work.store.unclaimedWork(
      dueBy: clock.now().addingTimeInterval(-Self.unclaimedAfter), beside: state.known)
    // Or a claim has been under way.
    state.hasForgotten = found.isForgotten
    return max(0, found.count - unreadable)
  }

  package func status() -> DispatchStatus { state.status(at: currentMoment()) }

  /// Reports registrations that a list has left out.
  package nonisolated func note(_ unreadable: [UnreadableTarget], hub: Hub.ID) {
    for target in unreadable {
      work.report(
        .unreadableTarget(
          hub: hub, nil, registration: target.registration, reason: target.reason))
    }
  }
}

/// Callers that wait until a notification, or everything, is delivered.
private struct DispatchWaiters {
  private struct Waiter {
    /// `nil` waits for all.
    let notification: NotificationID?
    let continuation: CheckedContinuation<Bool, Never>
  }

  private var waiters: [Int: Waiter] = [:]
  private var next = 0

  /// The number of one who is about to wait.
  mutating func number() -> Int {
    defer { next += 1 }
    return next
  }

  /// - Parameter continuation: Hears `true` when the end has come, `false` when its time is over.
  mutating func add(
    _ number: Int, for notification: NotificationID?,
    _ continuation: CheckedContinuation<Bool, Never>
  ) {
    waiters[number] = Waiter(notification: notification, continuation: continuation)
  }

  /// The time of this one is over, if it still waits.
  mutating func giveUp(_ number: Int) {
    waiters.removeValue(forKey: number)?.continuation.resume(returning: false)
  }

  mutating func resume(where isReached: (NotificationID?) -> Bool) {
    let reached = waiters.keys.filter { isReached(waiters[$0]?.notification) }
    for number in reached.sorted() {
      waiters.removeValue(forKey: number)?.continuation.resume(returning: true)
    }
  }
}
