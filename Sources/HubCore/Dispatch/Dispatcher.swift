import Foundation
import NotificationHubs

/// Carries accepted notifications to the push services, page by page (design section 2).
///
/// The actor only keeps books: what to do next is decided by ``DispatchSchedule``; pages are read,
/// taken apart, delivered and recorded in tasks of their own, each of which hands one
/// ``DispatchReport`` back. What is promised of a notification rests on the store alone: accepted
/// before anyone is told, a cursor that never runs ahead of the outcomes recorded, retries as rows.
/// A process that dies repeats at most the pages in flight, with the same push ids.
package actor Dispatcher {
  enum Phase {
    /// ``start()`` has not been called; what is accepted meanwhile stands in the store.
    case idle
    case loading
    case running
    case stopping
    case stopped
  }

  nonisolated let store: any HubStore
  nonisolated let routes: GatewayRoutes
  nonisolated let clock: HubClock
  nonisolated let limits: DispatchLimits
  nonisolated let random: @Sendable () -> Double
  nonisolated let report: @Sendable (DispatchEvent) -> Void
  package nonisolated let metrics = HubMetrics()

  var phase = Phase.idle
  var schedule: DispatchSchedule
  var jobs: [Int: DispatchJob] = [:]
  var numbers: [NotificationID: Int] = [:]
  var pages: [Int: DispatchPage] = [:]
  var guards: [LaneKey: DeadHandleGuard] = [:]
  /// The credential each lane was last used with.
  var credentials: [LaneKey: Date] = [:]
  /// What the push service said to the credential of a lane that rests.
  var refusals: [LaneKey: PushResult] = [:]
  /// When to look whether a refused credential has been replaced; `nil` when none makes anybody
  /// wait.
  var credentialLook: Date?
  var isLookingAtCredentials = false
  var nextPage = 0
  private var nextNumber = 0
  private var arrivedWhileLoading: [NotificationRecord] = []

  // Retries.
  /// Counts what is in all jobs' ``DispatchJob/retriesUnderWay``.
  var retryTurns: RetryTurns
  var isReadingRetries = false
  /// Recorded while retries were being read: the answer on its way may still hold their rows.
  var recordedWhileReading: [(notification: Int, lane: LaneKey, registrations: [RegistrationID])] =
    []
  /// When the time of the next notification is over; `nil` when there is none.
  var nextEnd: Date?
  /// Whose retries have to be looked up because their time is over.
  var ended: [EndedRetries] = []
  /// Why a push service is down, by the lane that has met it.
  var outages: [LaneKey: Outage] = [:]

  /// Notifications that were left alone because their rows cannot be read.
  var unreadable = 0

  // Schedules.
  /// When to look for scheduled notifications that are due; `nil` when there are none.
  var scheduleDue: Date?
  var isReleasing = false
  /// The earliest that was submitted while the store was being asked.
  var submittedWhileReleasing: Date?

  // Tasks and those who wait.
  private var tasks: [Int: Task<Void, Never>] = [:]
  private var nextTask = 0
  private var alarm: (at: Date, task: Task<Void, Never>)?
  private var waiters: [Int: Waiter] = [:]
  private var nextWaiter = 0

  private struct Waiter {
    /// `nil` waits for all.
    let notification: NotificationID?
    let continuation: CheckedContinuation<Bool, Never>
  }

  /// - Parameters:
  ///   - random: Evenly 0 up to 1; spreads retries.
  ///   - report: Hears of what an operator should know; must return at once.
  package init(
    store: any HubStore, gateways: any GatewayDirectory, clock: HubClock,
    limits: DispatchLimits = DispatchLimits(), migratesGCM: Bool = false,
    random: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) },
    report: @escaping @Sendable (DispatchEvent) -> Void = { _ in }
  ) {
    self.store = store
    self.clock = clock
    self.limits = limits
    self.random = random
    self.report = report
    routes = GatewayRoutes(store: store, gateways: gateways, migratesGCM: migratesGCM)
    schedule = DispatchSchedule(limits: limits)
    retryTurns = RetryTurns(limits: limits)
  }

  /// Sets the shares of hubs in relation to each other: with a weight of 2 a hub's notifications go
  /// twice as fast as those of one with 1 while both want more than there is.
  /// - Parameter weights: Above 0; hubs that are not named have 1.
  package func setWeights(_ weights: [Hub.ID: Double]) {
    schedule.setWeights(weights)
    pump()
  }

  // MARK: Life

  /// Takes up every unfinished notification of the store, each at its cursor.
  /// - Throws: What the store throws; the dispatcher can be started again then.
  package func start() async throws {
    guard phase == .idle else { return }
    phase = .loading
    do {
      let found = try await store.unfinishedNotifications()
      var waiting: [Int] = []
      for record in found {
        waiting.append(try await store.waitingRetries(record.id, hub: record.hub))
      }
      for (lane, due) in try await store.retryLanes() { retryTurns.add(lane, due: due) }
      scheduleDue = try await store.nextSchedule()
      guard phase == .loading else { return }
      for (record, rows) in zip(found, waiting) { add(record, retryRows: rows) }
      note(unreadable: found.unreadable)
    } catch {
      if phase == .loading { phase = .idle }
      throw error
    }
    phase = .running
    for record in arrivedWhileLoading { take(record) }
    arrivedWhileLoading = []
    pump()
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

  private func take(_ record: NotificationRecord) {
    if record.state == .scheduled, let due = record.scheduledFor {
      submitScheduled(due)
    } else {
      add(record, retryRows: 0)
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
    for task in tasks.values { task.cancel() }
    phase = .stopped
    resumeWaiters { _ in true }
  }

  /// They stay in the store, and are looked for again at the next start.
  func note(unreadable found: [UnreadableNotification]) {
    unreadable += found.count
    for lost in found { report(.unreadableNotification(lost)) }
  }

  func add(_ record: NotificationRecord, retryRows: Int) {
    guard !record.state.isFinal, record.state != .scheduled, numbers[record.id] == nil else {
      return
    }
    let number = nextNumber
    nextNumber += 1
    let context = DispatchContext(record, limits: limits, clock: clock)
    jobs[number] = DispatchJob(
      record, context: context, retryRows: retryRows, takenUpAt: clock.now())
    numbers[record.id] = number
    schedule.add(
      number, hub: context.hub, lane: context.lane, deadline: context.end,
      hasPages: !record.isAudienceRead)
    noteEnd(context.end)
    recordComplete(number)
  }

  /// The notification has its final state, or its hub is gone.
  func remove(_ number: Int) {
    guard let job = jobs.removeValue(forKey: number) else { return }
    numbers[job.context.id] = nil
    schedule.remove(number)
    for (lane, underWay) in job.retriesUnderWay { retryTurns.ended(lane, underWay.count) }
    if !job.state.isFinal {
      for (key, page) in pages where page.notification == number { pages[key] = nil }
    }
    noteEnd(of: job)
    resumeWaiters { [isEmpty = jobs.isEmpty] waiting in
      waiting.map { $0 == job.context.id } ?? isEmpty
    }
  }

  // MARK: Waiting

  /// Whether nothing is left to deliver; retries that wait count as left.
  package var isIdle: Bool { jobs.isEmpty }

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
    if numbers[id] != nil, phase != .stopped { _ = await wait(for: id, within: limit) }
    return try await store.notification(id, hub: hub)
  }

  private func wait(for notification: NotificationID?, within limit: Duration) async -> Bool {
    let number = nextWaiter
    nextWaiter += 1
    let timer = Task {
      try? await clock.sleep(limit)
      waiters.removeValue(forKey: number)?.continuation.resume(returning: false)
    }
    defer { timer.cancel() }
    return await withCheckedContinuation { continuation in
      waiters[number] = Waiter(notification: notification, continuation: continuation)
    }
  }

  private func resumeWaiters(where isReached: (NotificationID?) -> Bool) {
    for (number, waiter) in waiters where isReached(waiter.notification) {
      waiters[number] = nil
      waiter.continuation.resume(returning: true)
    }
  }

  // MARK: Tasks

  /// Whether only the passing of time, or somebody's call, can set anything going.
  var isQuiet: Bool { tasks.isEmpty }

  /// Runs work outside the actor and takes its report.
  func spawn(_ work: @escaping @Sendable () async -> DispatchReport) {
    let number = nextTask
    nextTask += 1
    tasks[number] = Task {
      let report = await work()
      tasks[number] = nil
      take(report)
      if phase == .stopping, tasks.isEmpty { resumeWaiters { $0 == nil } }
    }
  }

  /// What the machine's clock says at a moment of ``HubClock/steady``, as it is set now.
  nonisolated func wallTime(_ steady: Date) -> Date {
    clock.now().addingTimeInterval(steady.timeIntervalSince(clock.steady()))
  }

  private func steadyTime(_ wall: Date) -> Date {
    clock.steady().addingTimeInterval(wall.timeIntervalSince(clock.now()))
  }

  /// Wakes the dispatcher when time alone allows something new.
  /// - Parameter now: The moment that the last look was for: what has come due since then must not
  ///   fall between the two.
  func setAlarm(after now: Date) {
    guard phase == .running else { return }
    var wake = schedule.nextWake(after: now)
    if let due = retryTurns.nextWake(after: now) { wake = min(wake ?? due, due) }
    if let credentialLook, credentialLook > now {
      wake = min(wake ?? credentialLook, credentialLook)
    }
    if let nextEnd, nextEnd > now,
      retryTurns.areHeldBack(at: now, most: { schedule.retryRoom($0, at: now) })
    {
      wake = min(wake ?? nextEnd, nextEnd)
    }
    if let scheduleDue {
      // A schedule follows the machine's clock.
      let due = steadyTime(scheduleDue)
      if due > now { wake = min(wake ?? due, due) }
    }
    // A schedule's moment differs from look to look by what the clocks are read apart.
    if let wake, let alarm, abs(wake.timeIntervalSince(alarm.at)) < 0.001 { return }
    guard wake != nil || alarm != nil else { return }
    alarm?.task.cancel()
    alarm = nil
    guard let wake else { return }
    var seconds = max(0, wake.timeIntervalSince(clock.steady()))
    if scheduleDue != nil { seconds = min(seconds, Self.longestScheduleSleep) }
    let pause = Duration.milliseconds(Int64((seconds * 1000).rounded(.up)))
    let task = Task {
      guard (try? await clock.sleep(pause)) != nil, alarm?.at == wake else { return }
      alarm = nil
      pump()
    }
    alarm = (wake, task)
  }
}
