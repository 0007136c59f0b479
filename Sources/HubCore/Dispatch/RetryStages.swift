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
  func readRetries(_ turn: RetryRotation.Turn, at now: Date) async -> DispatchReport {
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
    _ turn: RetryRotation.Turn, _ groups: [DueRetries]?, next: Date?, at asked: Date
  ) {
    guard let groups else { return retries.fail(turn, at: now.steady) }
    let found = groups.reduce(0) { $0 + $1.attempts.count }
    let started = groups.reduce(0) { $0 + plan($1, of: turn.lane) }
    retries.finish(turn, found: found, started: started, next: next, at: asked)
    guard next == nil else { return }
    // The lane has no more rows; those of its notifications that count on some are mistaken.
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
  /// - Returns: Number of targets under way that were not before.
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
    // They were not found a moment ago: they must be looked for again.
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

// MARK: - State

/// Retries that are looked up by their notification, because its time is over.
struct EndedRetries: Hashable {
  let notification: Int
  let lane: LaneKey
}

/// The time for which retries are left alone after they could not be read: one second, doubling up to
/// thirty.
struct RetryPause {
  /// The next pause, in seconds.
  private(set) var length = 1.0
  private(set) var end = Date.distantPast

  mutating func begin(at now: Date) {
    end = now.addingTimeInterval(length)
    length = min(length * 2, 30)
  }
}

/// The retry rows of unfinished notifications: which are under way, and which are read next. One
/// read at a time, which ends with the first error of the store: the lane's next turn is later, and
/// the others take theirs.
///
/// Rows under way are still in the store, which may offer them again; they are asked for on top and
/// left out, so none is sent twice at once. ``RetryRotation`` decides which lane's turn it is.
struct DispatchRetries {
  private let limits: DispatchLimits
  private var turns: RetryRotation
  /// Registrations whose row is under way, by the lane it was read for and the notification.
  private var underWay: [LaneKey: [Int: Set<RegistrationID>]] = [:]
  private var isReading = false
  /// Rows that were recorded while rows were being read: the answer on its way may still hold them.
  private var recordedMeanwhile: [(Int, LaneKey, [RegistrationID])] = []
  /// Notifications that were added while rows were being read: the answer on its way may hold rows of
  /// theirs that were settled under an earlier lease.
  private var addedMeanwhile: Set<Int> = []
  /// When the time of the next notification is over; `nil` when there is none.
  private var nextEnd: Date?
  /// Notifications whose rows have to be looked up because their time is over.
  private var ended: [EndedRetries] = []
  /// Pauses of lanes whose rows could not be looked up by their notification.
  private var endedPauses: [LaneKey: RetryPause] = [:]

  init(limits: DispatchLimits) {
    self.limits = limits
    turns = RetryRotation(limits: limits)
  }

  /// A lane has rows that are due then, among others.
  mutating func add(_ lane: LaneKey, due: Date) { turns.add(lane, due: due) }

  /// A notification has been added.
  /// - Parameter end: When its time will be over.
  mutating func add(_ notification: Int, end: Date) {
    if isReading { addedMeanwhile.insert(notification) }
    noteEnd(end)
  }

  /// Remembers when a notification's time will be over.
  mutating func noteEnd(_ end: Date) { nextEnd = min(nextEnd ?? end, end) }

  func isUnderWay(_ notification: Int) -> Bool {
    underWay.values.contains { $0[notification]?.isEmpty == false }
  }

  mutating func remove(_ notification: Int) {
    for lane in underWay.keys {
      if let gone = underWay[lane]?.removeValue(forKey: notification) {
        turns.ended(lane, gone.count)
      }
    }
  }

  // MARK: Reading

  /// The next turn of a lane that takes retries.
  /// - Parameter most: Number of retries that a lane will take before long.
  mutating func next(at now: Date, most: (LaneKey) -> Int) -> RetryRotation.Turn? {
    guard !isReading, let turn = turns.next(at: now, most: most) else { return nil }
    isReading = true
    return turn
  }

  /// The next read for a notification whose time is over: it waits for no lane, its retries have
  /// their outcome now.
  mutating func nextEnded(
    at now: Date, of jobs: DispatchJobs
  ) -> (EndedRetries, of: DispatchContext, limit: Int, pause: Double)? {
    guard !isReading else { return nil }
    noteEnded(at: now, of: jobs)
    if ended.isEmpty { endedPauses = [:] }
    guard turns.held < limits.retryTargets else { return nil }
    for place in ended.indices.reversed() {
      let next = ended[place]
      guard let job = jobs[next.notification], job.retryRows > 0 else {
        ended.remove(at: place)
        continue
      }
      let pause = endedPauses[next.lane] ?? RetryPause()
      guard pause.end <= now else { continue }
      isReading = true
      let known = underWay[next.lane]?[next.notification]?.count ?? 0
      return (next, job.context, limits.pageSize + known, pause.length)
    }
    return nil
  }

  private mutating func noteEnded(at now: Date, of jobs: DispatchJobs) {
    guard let end = nextEnd, end <= now else { return }
    nextEnd = nil
    let known = Set(ended)
    for job in jobs.all.values where job.context.end > now {
      // A look a second at most, however close together the ends lie.
      noteEnd(max(job.context.end, now.addingTimeInterval(1)))
    }
    for number in jobs.numbers(where: { $0.context.end <= now && $0.retryRows > 0 }) {
      guard let context = jobs[number]?.context else { continue }
      let lanes = context.lane.map { [$0] } ?? turns.lanes(of: context.hub)
      ended += lanes.map { EndedRetries(notification: number, lane: $0) }
        .filter { !known.contains($0) }
    }
  }

  /// Rows have come: those that are not under way yet are from now on.
  /// - Returns: `nil` when none are left.
  mutating func start(
    _ found: DueRetries, of notification: Int, _ lane: LaneKey
  ) -> (DueRetries, RetryPage)? {
    guard !addedMeanwhile.contains(notification) else { return nil }
    var group = found
    if let known = underWay[lane]?[notification], !known.isEmpty {
      group.page.targets.removeAll { known.contains($0.registration) }
      group.page.unreadable.removeAll { known.contains($0.registration) }
      group.gone.removeAll { known.contains($0) }
      group.attempts = found.attempts.filter { !known.contains($0.key) }
    }
    guard !group.attempts.isEmpty else { return nil }
    underWay[lane, default: [:]][notification, default: []].formUnion(group.attempts.keys)
    turns.started(lane, group.attempts.count)
    return (group, RetryPage(lane: lane, attempts: group.attempts))
  }

  /// All rows of a lane's turn have been read.
  /// - Parameters:
  ///   - found: Number of rows.
  ///   - started: Number of rows that were not under way.
  ///   - next: When the lane's next row is due, as the store has it.
  mutating func finish(
    _ turn: RetryRotation.Turn, found: Int, started: Int, next: Date?, at now: Date
  ) {
    if let next {
      // Rows under way hide behind `next` as long as they are not recorded, and the next row may
      // stand right behind them: a look a second finds it. So does one while nothing comes of it.
      let isMore = found >= turn.asked && started > 0
      turns.add(turn.lane, due: next > now ? next : isMore ? now : now.addingTimeInterval(1))
    }
    turns.wasRead(turn.lane)
    finishReading()
  }

  /// The same for a notification whose time is over.
  mutating func finish(_ turn: EndedRetries, started: Int) {
    if started == 0 { ended.removeAll { $0 == turn } }
    endedPauses[turn.lane] = nil
    finishReading()
  }

  /// The store has refused a lane's turn.
  mutating func fail(_ turn: RetryRotation.Turn, at now: Date) {
    turns.wasNotRead(turn.lane, at: now)
    finishReading()
  }

  /// The same for a notification whose time is over: it comes after the others.
  mutating func fail(_ turn: EndedRetries, at now: Date) {
    endedPauses[turn.lane, default: RetryPause()].begin(at: now)
    ended.removeAll { $0 == turn }
    ended.insert(turn, at: 0)
    finishReading()
  }

  private mutating func finishReading() {
    isReading = false
    for (notification, lane, registrations) in recordedMeanwhile {
      end(registrations, of: notification, lane)
    }
    recordedMeanwhile = []
    addedMeanwhile = []
  }

  // MARK: Ends

  /// Their rows are gone or carry a later date; from here on they may come back.
  mutating func recorded(_ registrations: [RegistrationID], of notification: Int, _ lane: LaneKey) {
    if isReading {
      recordedMeanwhile.append((notification, lane, registrations))
    } else {
      end(registrations, of: notification, lane)
    }
  }

  /// They have been left to their rows, which are due.
  mutating func release(
    _ registrations: [RegistrationID], of notification: Int, _ lane: LaneKey, at now: Date
  ) {
    end(registrations, of: notification, lane)
    turns.add(lane, due: now)
  }

  private mutating func end(
    _ registrations: [RegistrationID], of notification: Int, _ lane: LaneKey
  ) {
    guard let before = underWay[lane]?[notification]?.count else { return }
    underWay[lane]?[notification]?.subtract(registrations)
    let left = underWay[lane]?[notification]?.count ?? 0
    if left == 0 { underWay[lane]?[notification] = nil }
    turns.ended(lane, before - left)
  }

  /// When time alone will allow something new.
  /// - Parameter most: As of ``next(at:most:)``.
  func nextWake(after now: Date, most: (LaneKey) -> Int) -> Date? {
    var wake = EarliestMoment(after: now)
    wake.add(turns.nextWake(after: now))
    for pause in endedPauses.values { wake.add(pause.end) }
    if let nextEnd, nextEnd > now, turns.areHeldBack(at: now, most: most) { wake.add(nextEnd) }
    return wake.moment
  }
}

/// The order in which lanes have their retries read, and how many: retries under way are bounded, and
/// each lane has a share of the bound. Pure, as ``DispatchSchedule`` is.
///
/// A lane takes at most half of what the others leave: no lane more than half of all, nor two more
/// than three quarters, and so on; and one with none under way may always have a few. So a push
/// service that is stuck, or has a great many retries due, keeps no other lane's waiting.
struct RetryRotation {
  /// One read of a lane's retries.
  struct Turn: Sendable {
    let lane: LaneKey
    /// Rows to ask for: those that may be taken, and those under way on top, which are still in the
    /// store.
    let asked: Int
    /// The time for which the lane is left alone when they cannot be read, in seconds.
    let pause: Double
  }

  private struct Lane {
    /// When the next is due; `nil` when there is none.
    var due: Date?
    var pause = RetryPause()
    /// When to look for the next that is due.
    var next: Date? { due.map { max($0, pause.end) } }
    /// Targets under way.
    var held = 0
  }

  /// Retries that a lane may always have under way, no matter which lanes have the rest.
  static let least = 64

  private let limits: DispatchLimits
  private var lanes: [LaneKey: Lane] = [:]
  /// Targets under way, of all lanes.
  private(set) var held = 0

  init(limits: DispatchLimits) { self.limits = limits }

  /// A lane has retries that are due then, among others.
  mutating func add(_ lane: LaneKey, due: Date) {
    lanes[lane, default: Lane()].due = min(lanes[lane]?.due ?? due, due)
  }

  /// Begins the turn of the lane with the fewest under way of those with retries due and room. Rows
  /// that are written from here on are announced by ``add(_:due:)``.
  /// - Parameter most: Number of retries that a lane will take before long.
  mutating func next(at now: Date, most: (LaneKey) -> Int = { _ in .max }) -> Turn? {
    var rooms: [LaneKey: Int] = [:]
    for (key, lane) in lanes {
      guard let next = lane.next, next <= now else { continue }
      let room = min(room(for: lane), most(key))
      if room > 0 { rooms[key] = room }
    }
    guard !rooms.isEmpty else { return nil }
    let neediest = lanes.filter { rooms[$0.key] != nil }.min { one, other in
      if one.value.held != other.value.held { return one.value.held < other.value.held }
      let (first, second) = (one.value.next ?? now, other.value.next ?? now)
      return first == second ? one.key < other.key : first < second
    }
    guard let (key, lane) = neediest, let room = rooms[key] else { return nil }
    lanes[key]?.due = nil
    return Turn(lane: key, asked: room + lane.held, pause: lane.pause.length)
  }

  /// The store has answered a lane's turn.
  mutating func wasRead(_ lane: LaneKey) { lanes[lane]?.pause = RetryPause() }

  /// The store has refused a lane's turn: it comes again after a pause, whatever is announced
  /// meanwhile.
  mutating func wasNotRead(_ key: LaneKey, at now: Date) {
    lanes[key, default: Lane()].pause.begin(at: now)
    add(key, due: now)
  }

  private func room(for lane: Lane) -> Int {
    let free = limits.retryTargets - held
    let least = min(Self.least, limits.pageSize)
    let share = min(limits.pageSize, (free - lane.held) / 2)
    if share >= least { return share }
    return lane.held == 0 ? least : 0
  }

  mutating func started(_ lane: LaneKey, _ count: Int) {
    lanes[lane, default: Lane()].held += count
    held += count
  }

  mutating func ended(_ lane: LaneKey, _ count: Int) {
    held -= count
    guard let left = lanes[lane] else { return }
    lanes[lane]?.held -= count
    if left.held <= count, left.due == nil { lanes[lane] = nil }
  }

  /// Lanes of a hub that have retries, or have had them.
  func lanes(of hub: Hub.ID) -> [LaneKey] {
    lanes.keys.filter { $0.hub == hub }.sorted()
  }

  /// Whether retries are due that no lane takes.
  func areHeldBack(at now: Date, most: (LaneKey) -> Int) -> Bool {
    lanes.contains { key, lane in lane.next.map { $0 <= now } ?? false && most(key) == 0 }
  }

  /// When a lane's next retries come due; those that are due wait for room, not for time.
  func nextWake(after now: Date) -> Date? {
    var wake = EarliestMoment(after: now)
    for lane in lanes.values { wake.add(lane.next) }
    return wake.moment
  }
}
