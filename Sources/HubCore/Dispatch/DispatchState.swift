import Foundation
import NotificationHubs

/// The time of an event, by both clocks, and the node that it happens to.
struct DispatchMoment: Sendable {
  /// As of ``HubClock/steady``, as all moments that the dispatcher compares.
  let steady: Date
  /// As of ``HubClock/now``.
  let wall: Date
  /// As of ``WorkStore/nodeID``.
  let node: Int64

  init(_ clock: HubClock, node: Int64 = 0) {
    (steady, wall) = (clock.steady(), clock.now())
    self.node = node
  }

  /// The machine's time at another moment of ``HubClock/steady``, as its clock is set now.
  func wall(at other: Date) -> Date { wall.addingTimeInterval(other.timeIntervalSince(steady)) }
}

/// A consequence of a decision, which ``Dispatcher`` carries out.
enum DispatchAction: Sendable {
  case start(DispatchTask)
  case report(DispatchEvent)
  /// Outcomes are in the store, so many seconds after their notification was accepted.
  case recorded([OutcomeKey: Int], seconds: Double)
  /// Handles were removed or replaced.
  case removed(Int, LaneKey)
  /// Number of living nodes.
  case setNodes(Int)
  /// This process has nothing left of a notification, or of none at all.
  case ended(NotificationID, isLast: Bool, isIdle: Bool)
}

/// Everything that the dispatcher knows, and every decision that it makes. Pure: its methods
/// are events, and their consequences are collected as actions for ``Dispatcher``, which has the tasks
/// and the clocks.
///
/// Its parts decide for themselves: ``DispatchJobs`` has the notifications and pages under way and
/// says what can be recorded, ``DispatchRetries`` which retry rows are read, ``DispatchSchedule`` which
/// page is read or sent next, ``Lanes`` whether anything may go to a push service. The stages of the
/// work are extensions, each with its start, its task and the handling of its report: see
/// `PageStages`, `RetryStages`, `PolledStages`.
struct DispatchState {
  enum Phase {
    /// Not started; notifications that are accepted meanwhile are in the store.
    case idle
    case loading
    case running
    case stopping
    case stopped
  }

  /// Only notifications that are accepted or released at the same time need to be remembered.
  private static let mostAbortedBefore = 64

  let limits: DispatchLimits
  /// Whether nodes share the work.
  let isShared: Bool
  let random: HubRandom
  private(set) var phase = Phase.idle
  /// The number under which this node has its parts.
  private var node: Int64
  /// The moment of the event that is being handled.
  private(set) var now: DispatchMoment
  private var actions: [DispatchAction] = []

  var jobs = DispatchJobs()
  var retries: DispatchRetries
  var schedule: DispatchSchedule
  var releases = ReleaseTimer()
  var credentials = CredentialTimer()
  var claims = PollTimer(period: PollTimer.claimPeriod)
  var exchanges = PollTimer(period: PollTimer.exchangePeriod)
  /// Parts that have been claimed and whose retries have not been counted yet.
  var uncounted: [WorkID] = []
  /// The store has parts for this node that it does not know of.
  var hasForgotten = false
  /// Notifications that were left alone because their rows cannot be read.
  private(set) var unreadable: [WorkID] = []
  private var acceptedWhileLoading: [NotificationRecord] = []
  /// Aborted before they came here: between the store and the dispatcher, something may be on its
  /// way.
  private var abortedBefore: [NotificationID] = []

  init(limits: DispatchLimits, isShared: Bool, random: HubRandom, at now: DispatchMoment) {
    self.limits = limits
    self.isShared = isShared
    self.random = random
    self.now = now
    node = now.node
    retries = DispatchRetries(limits: limits)
    schedule = DispatchSchedule(limits: limits)
  }

  // MARK: Actions

  /// The consequences of everything that has happened since they were last asked for.
  mutating func drainActions() -> [DispatchAction] {
    defer { actions = [] }
    return actions
  }

  mutating func start(_ task: DispatchTask) { actions.append(.start(task)) }
  mutating func report(_ event: DispatchEvent) { actions.append(.report(event)) }
  mutating func add(_ action: DispatchAction) { actions.append(action) }

  /// Starts everything that may start.
  /// - Returns: As of ``nextWake()``.
  mutating func advance(at moment: DispatchMoment) -> Date? {
    now = moment
    guard phase == .running else { return nil }
    loseWorkOfFormerNode()
    for action in schedule.next(at: now.steady) {
      switch action {
      case .read(let number): read(number)
      case .deliver(let key, let isProbe): deliver(key, isProbe: isProbe)
      case .postpone(let key): postpone(key)
      case .refuse(let key): refuse(key)
      case .release(let key): release(key)
      }
    }
    readRetries()
    watchCredentials()
    claimWork()
    exchangeFindings()
    releaseSchedules()
    return nextWake()
  }

  /// When time alone allows something new; `nil` when only events can.
  private func nextWake() -> Date? {
    let moment = self.now
    let now = moment.steady
    var earliest = EarliestMoment(after: now)
    earliest.add(schedule.nextWake(after: now))
    let retry = retries.nextWake(after: now) { [lanes = schedule.lanes] in
      lanes.retryRoom($0, at: now)
    }
    earliest.add(retry)
    for due in [credentials.due, claims.due, exchanges.due] { earliest.add(due) }
    // A schedule follows the machine's clock.
    if let due = releases.due {
      earliest.add(now.addingTimeInterval(due.timeIntervalSince(moment.wall)))
    }
    return earliest.moment
  }

  /// A task has ended.
  mutating func handle(_ report: DispatchReport, at moment: DispatchMoment) {
    now = moment
    switch report {
    case .page(let number, let plan, let targets, let end, let isLast):
      handlePage(number, plan, targets: targets, end: end, isLast: isLast)
    case .part(let key, let lane, let settlement, let isRedirected):
      if isRedirected { redirect(lane, settlement) }
      handlePart(key, lane, settlement)
    case .unowned(let key, let lane): handleUnowned(key, lane)
    case .recorded(let number, let checkpoint, let answer):
      handleRecorded(number, checkpoint, answer)
    case .claimed(let claimed): handleClaimed(claimed)
    case .counted(let claimed): handleCounted(claimed)
    case .retries(let turn, let groups, let next, let at):
      handleRetries(turn, groups, next: next, at: at)
    case .endedRetries(let turn, let answer): handleEndedRetries(turn, answer)
    case .retryPlan(let number, let plan, let page): handleRetryPlan(number, plan, page)
    case .retryRows(let number, let rows, let count): handleRetryRows(number, rows, count)
    case .released(let found, let next): handleReleased(found, next: next)
    case .credentials(let found): handleCredentials(found)
    case .replaced(let lane, let credential): use(credential, for: lane)
    case .restored(let lane, let count): handleRestored(lane, count)
    case .exchanged(let peers, let told): handleExchange(peers, told: told)
    case .gone(let number): forget(number)
    case .lost(let number): loseLease(number)
    case .stopped(let number): drop(number)
    case .givenBack: claims.want(at: now.steady)
    }
  }

  // MARK: Life

  /// - Returns: `false` when it was started before.
  mutating func beginLoading(at moment: DispatchMoment) -> Bool {
    now = moment
    guard phase == .idle else { return false }
    phase = .loading
    if isShared {
      claims.want(at: now.steady)
      exchanges.want(at: now.steady)
    }
    return true
  }

  /// The store has refused; the dispatcher can be started again.
  mutating func loadingFailed() {
    if phase == .loading { phase = .idle }
  }

  /// Everything that the store has is known.
  /// - Parameter loaded: `nil` where nodes share the work and each claims its own.
  mutating func run(with loaded: LoadedWork?, at moment: DispatchMoment) {
    now = moment
    guard phase == .loading else { return }
    if let loaded {
      for (lane, due) in loaded.lanes { retries.add(lane, due: due) }
      releases.add(loaded.nextSchedule)
      for (record, rows) in zip(loaded.found, loaded.retryRows) { add(record, retryRows: rows) }
      note(unreadable: loaded.found.unreadable)
    }
    phase = .running
    for record in acceptedWhileLoading { accept(record) }
    acceptedWhileLoading = []
  }

  /// The store has accepted a notification.
  mutating func submit(_ record: NotificationRecord, at moment: DispatchMoment) {
    now = moment
    switch phase {
    case .running: accept(record)
    case .loading: acceptedWhileLoading.append(record)
    case .idle, .stopping, .stopped: break
    }
  }

  private mutating func accept(_ record: NotificationRecord) {
    if record.state == .scheduled {
      releases.add(record.scheduledFor)
    } else if isShared {
      claims.want(at: now.steady)
    } else {
      add(record, retryRows: 0)
    }
  }

  /// Nothing more is read; only tasks under way go on.
  mutating func beginStopping(at moment: DispatchMoment) {
    now = moment
    phase = .stopping
    putOffStartedPages()
  }

  mutating func stopped() { phase = .stopped }

  // MARK: Notifications

  mutating func add(_ record: NotificationRecord, retryRows: Int) {
    let context = DispatchContext(record, limits: limits, at: now)
    if let index = abortedBefore.firstIndex(of: record.id) {
      abortedBefore.remove(at: index)
      context.abort()
    }
    guard let number = jobs.add(record, context, retryRows: retryRows, at: now.wall) else { return }
    schedule.add(
      number, hub: context.hub, lane: context.lane, deadline: context.end,
      hasPages: !record.isAudienceRead)
    retries.add(number, end: context.end)
    recordComplete(number)
  }

  /// These notifications stay in the store, and the next start looks for them again.
  mutating func note(unreadable found: [UnreadableNotification]) {
    for lost in found {
      unreadable.append(WorkID(lost.id, part: lost.part))
      report(.unreadableNotification(lost))
    }
  }

  /// The store has marked a notification as aborted.
  mutating func abort(_ id: NotificationID, at moment: DispatchMoment) {
    now = moment
    let numbers = jobs.numbers(of: id)
    if numbers.isEmpty {
      abortedBefore.append(id)
      if abortedBefore.count > Self.mostAbortedBefore { abortedBefore.removeFirst() }
    }
    for number in numbers { abort(number) }
  }

  mutating func abort(_ number: Int) {
    guard let job = jobs[number], !job.context.isAborted else { return }
    job.context.abort()
    settleAborted(number)
    retries.noteEnd(now.steady)
  }

  /// Parts of an aborted notification that wait in memory wait no longer.
  mutating func settleAborted(_ number: Int) {
    guard jobs[number]?.context.isAborted == true else { return }
    for key in schedule.end(number, at: now.steady) { postpone(key) }
  }

  /// Something was deleted that may have taken notifications along, or their retries.
  mutating func recheck(hub: Hub.ID, at moment: DispatchMoment) {
    now = moment
    guard phase == .running else { return }
    for number in jobs.numbers(where: { $0.context.hub == hub }) {
      guard let job = jobs[number] else { continue }
      askRetryRows(of: number, job, lane: job.context.lane)
    }
  }

  /// A part is done, or its notification or hub is gone.
  /// - Parameters:
  ///   - isFinished: The notification has its final state.
  ///   - isReplaced: The same part is added again at once, so that nobody has waited to the end yet.
  mutating func remove(_ number: Int, isFinished: Bool, isReplaced: Bool = false) {
    guard let job = jobs.remove(number) else { return }
    schedule.remove(number)
    retries.remove(number)
    if isFinished {
      report(
        .finished(
          hub: job.context.hub, job.context.id, state: job.state, counts: job.tally,
          seconds: max(0, now.wall.timeIntervalSince(job.startedAt))))
    }
    // As few parts of a notification are claimed at a time, there may be another.
    if isShared { claims.want(at: now.steady) }
    guard !isReplaced else { return }
    let id = job.context.id
    add(.ended(id, isLast: jobs.numbers(of: id).isEmpty, isIdle: jobs.isEmpty))
  }

  /// The notification, or its hub, is gone.
  mutating func forget(_ number: Int) {
    if let hub = jobs[number]?.context.hub { schedule.lanes.forgetHandles(of: hub) }
    drop(number)
  }

  /// Another node does the work now.
  mutating func loseLease(_ number: Int) {
    if let context = jobs[number]?.context {
      report(.leaseLost(hub: context.hub, context.id, part: context.lease.part))
    }
    drop(number)
  }

  /// A process that others took for dead has another number, and they have the parts of the former.
  private mutating func loseWorkOfFormerNode() {
    guard node != now.node else { return }
    node = now.node
    for number in jobs.numbers(where: { $0.context.node != now.node }) {
      guard let context = jobs[number]?.context else { continue }
      report(.leaseLost(hub: context.hub, context.id, part: context.lease.part))
      remove(number, isFinished: false)
    }
  }

  /// This node does not go on with a part. If it is still the node's own, as when it only believed
  /// its lease to be over, nobody could claim it: it is given back.
  mutating func drop(_ number: Int) {
    let context = jobs[number]?.context
    remove(number, isFinished: false)
    guard isShared, let context else { return }
    start(.giveBack(context.lease, context.id, hub: context.hub))
  }

  /// All parts that this node has claimed, as far as it knows.
  var known: Set<WorkID> {
    let parts = jobs.all.values.map { WorkID($0.context.id, part: $0.context.lease.part) }
    return Set(parts + uncounted + unreadable)
  }

  func status(at moment: DispatchMoment) -> DispatchStatus {
    var status = DispatchStatus(jobs, schedule, at: moment)
    status.isRunning = phase == .running
    status.isStopping = phase == .stopping || phase == .stopped
    status.unreadable = unreadable.count
    return status
  }
}
