import Foundation
import NotificationHubs

// The stages that ask the store from time to time: for work that no other node has, for what other
// nodes have found, for schedules whose time has come, and for credentials that were replaced. Each
// has a timer, which is asked after every event.

// MARK: Timers

/// The earliest of the moments that lie ahead.
struct EarliestMoment {
  private let now: Date
  private(set) var moment: Date?

  init(after now: Date) { self.now = now }

  mutating func add(_ other: Date?) {
    guard let other, other > now else { return }
    moment = moment.map { min($0, other) } ?? other
  }
}

extension Date {
  /// Whether the moment of a look has come that is made once a period. One that is far ahead was set
  /// by a clock that has gone back since: a node that has just come, or come back, learns the time
  /// that nodes share only from them (``NodeLease/isSettled``).
  func isLook(due now: Date, every period: Double) -> Bool {
    let left = timeIntervalSince(now)
    return left <= 0 || left > 4 * period
  }
}

/// When to ask the store next: once a period, and at once when there may be something; one question
/// at a time.
struct PollTimer {
  /// Between two claims when nothing tells of work, in seconds; each node adds up to as much again,
  /// so that they do not all look at once.
  static let claimPeriod = 0.5
  /// Between two exchanges with other nodes, in seconds.
  static let exchangePeriod = 2.0

  private let period: Double
  /// `nil` before the first look, and where one process does all the work.
  private(set) var due: Date?
  private var isAsking = false
  private var isWantedMeanwhile = false

  init(period: Double) { self.period = period }

  /// There may be something to ask for, or to tell.
  mutating func want(at now: Date) {
    due = now
    isWantedMeanwhile = isAsking
  }

  /// Whether it is time to ask.
  func isDue(at now: Date) -> Bool {
    !isAsking && due.map { $0.isLook(due: now, every: period) } ?? false
  }

  /// Whether to ask now.
  mutating func start(at now: Date) -> Bool {
    guard isDue(at: now) else { return false }
    isAsking = true
    isWantedMeanwhile = false
    return true
  }

  /// - Parameters:
  ///   - hasMore: The answer may not have been all.
  ///   - jitter: 0 up to 1; makes the period longer by that.
  mutating func finish(hasMore: Bool = false, jitter: Double = 0, at now: Date) {
    isAsking = false
    due = hasMore || isWantedMeanwhile ? now : now.addingTimeInterval(period * (1 + jitter))
  }
}

/// When to ask the store for scheduled notifications whose time has come.
struct ReleaseTimer {
  /// `nil` when there are none. By the machine's clock.
  private(set) var due: Date?
  private var isReleasing = false
  /// The earliest that came while the store was being asked, which its answer may lack.
  private var submittedMeanwhile: Date?

  mutating func add(_ moment: Date?) {
    guard let moment else { return }
    due = min(due ?? moment, moment)
    if isReleasing { submittedMeanwhile = min(submittedMeanwhile ?? moment, moment) }
  }

  /// Whether to ask now.
  mutating func start(at now: Date) -> Bool {
    guard !isReleasing, let due, due <= now else { return false }
    isReleasing = true
    return true
  }

  /// - Parameter next: When the next is due, as the store has it.
  mutating func finish(next: Date?) {
    isReleasing = false
    due = [next, submittedMeanwhile].compactMap { $0 }.min()
    submittedMeanwhile = nil
  }
}

/// When to look whether another process has replaced a credential that makes notifications wait.
struct CredentialTimer {
  /// Between two looks, in seconds.
  static let period = 1.0

  /// `nil` when none makes anybody wait.
  private(set) var due: Date?
  private var isLooking = false

  /// Whether to look now.
  mutating func start(isNeeded: Bool, at now: Date) -> Bool {
    guard isNeeded else {
      due = nil
      return false
    }
    let next = due ?? now.addingTimeInterval(Self.period)
    guard next.isLook(due: now, every: Self.period), !isLooking else {
      due = next
      return false
    }
    due = now.addingTimeInterval(Self.period)
    isLooking = true
    return true
  }

  mutating func finish() { isLooking = false }
}

// MARK: - Claims

extension DispatchState {
  mutating func claimWork() {
    guard claims.isDue(at: now.steady) else { return }
    // Parts that only wait for a push service that is down keep no others from being claimed.
    let waiting = jobs.all.count {
      $0.value.hasOnlyRetryRows || schedule.isHeldBack($0.key, at: now.steady)
    }
    let room = min(
      limits.claimedParts - (jobs.count - waiting) - uncounted.count, limits.waitingParts - waiting)
    guard claims.start(at: now.steady) else { return }
    // A node without room looks as well: it learns of schedules that no other node may live to release.
    start(.claim(limit: max(0, room), beside: hasForgotten ? known : nil))
    hasForgotten = false
  }
}

extension DispatchWork {
  /// Between two tries to claim or to release, in seconds: what comes due while the store refuses is
  /// claimed or released soon after it is well again.
  private static let longestPause = 2.0

  /// Claims work that no living node has. Each part is reported: nobody else may claim it while this
  /// node lives. Ends with the first refusal after the claim, as the next claim waits for it.
  /// - Parameter known: All that this node works on, when what it does not know of is to be given back
  ///   first; else `nil`.
  func claim(limit: Int, beside known: Set<WorkID>?) async -> DispatchReport {
    if let known {
      // The next look for unclaimed work asks again.
      _ = await askOnce(againIn: PollTimer.claimPeriod) {
        try await store.releaseWork(beside: known)
      }
    }
    let answer = await ask(longest: Self.longestPause) { try await store.claimWork(limit: limit) }
    guard case .value(let found) = answer else { return .claimed(ClaimedWork()) }
    // Apart from the claim: to try both again would lose what has been claimed.
    var claimed = await countRetries(of: found.records, againIn: 0)
    claimed.unreadable = found.unreadable
    // The next claim asks again.
    let next = await askOnce(againIn: PollTimer.claimPeriod) { try await store.nextSchedule() }
    if case .value(let next) = next { claimed.nextSchedule = next }
    return .claimed(claimed)
  }

  /// Tries for half a minute to count the retries of a part that was claimed; then it is to be given
  /// back.
  func countRetries(of record: NotificationRecord) async -> DispatchReport {
    for pause in [1.0, 2, 4, 8, 16] {
      let claimed = await countRetries(of: [record], againIn: pause)
      if claimed.uncounted.isEmpty { return .counted(claimed) }
      guard (try? await clock.sleep(.seconds(pause))) != nil else { break }
    }
    return .counted(ClaimedWork(dropped: [record]))
  }

  private func countRetries(
    of records: [NotificationRecord], againIn pause: Double
  ) async -> ClaimedWork {
    var claimed = ClaimedWork()
    for record in records {
      // One that cannot be read makes the others wait for no more than one error.
      guard claimed.uncounted.isEmpty else {
        claimed.uncounted.append(record)
        continue
      }
      let counted = await askOnce(againIn: pause) {
        try await store.waitingRetries(record.id, part: record.lease.part, hub: record.hub)
      }
      switch counted {
      case .value(let rows): claimed.parts.append((record, rows))
      case .gone, .lost, .stopped: claimed.dropped.append(record)
      case nil: claimed.uncounted.append(record)
      }
    }
    // Only parts that another node has begun have retries.
    guard claimed.parts.contains(where: { $0.retryRows > 0 }) else { return claimed }
    let lanes = await askOnce(againIn: pause) { try await store.retryLanes() }
    if case .value(let lanes) = lanes {
      claimed.lanes = lanes
    } else {
      // Nobody would look for its rows.
      claimed.uncounted += claimed.parts.filter { $0.retryRows > 0 }.map(\.record)
      claimed.parts.removeAll { $0.retryRows > 0 }
    }
    return claimed
  }

  /// Gives back a part that this node does not go on with, if it is still its own.
  func giveBack(_ lease: WorkLease, of id: NotificationID, hub: Hub.ID) async -> DispatchReport {
    // A part that is not given back waits for this node's end: no single refusal is final.
    for pause in [1.0, 2, 5, 10, 30, 30, 30, 30] {
      let answer = await ask { try await store.releaseWork(lease, of: id, hub: hub) }
      if case .value = answer { break }
      guard (try? await clock.sleep(.seconds(pause))) != nil else { break }
    }
    return .givenBack
  }
}

extension DispatchState {
  mutating func handleClaimed(_ claimed: ClaimedWork) {
    let hasMore = !claimed.parts.isEmpty || !claimed.unreadable.isEmpty
    claims.finish(hasMore: hasMore, jitter: random.unit(), at: now.steady)
    addClaimed(claimed)
    releases.add(claimed.nextSchedule)
    note(unreadable: claimed.unreadable)
  }

  mutating func handleCounted(_ claimed: ClaimedWork) {
    for record in claimed.parts.map(\.record) + claimed.dropped {
      if let index = uncounted.firstIndex(of: record.workID) { uncounted.remove(at: index) }
    }
    claims.want(at: now.steady)
    addClaimed(claimed)
  }

  private mutating func addClaimed(_ claimed: ClaimedWork) {
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
      start(.countClaimed(record))
    }
    for record in claimed.dropped { start(.giveBack(record.lease, record.id, hub: record.hub)) }
  }
}

// MARK: - Exchange with other nodes

extension DispatchState {
  /// Something has been found out that others should hear of.
  mutating func exchangeSoon() {
    if isShared { exchanges.want(at: now.steady) }
  }

  mutating func exchangeFindings() {
    guard exchanges.start(at: now.steady) else { return }
    let own = schedule.lanes.ownFindings(longerThan: PollTimer.exchangePeriod, at: now.steady)
    start(.exchange(own, recovered: schedule.lanes.drainRecovered()))
  }
}

extension DispatchWork {
  /// Another look comes soon: a question that fails is not asked again.
  func exchange(_ findings: Set<LaneFinding>, recovered: Set<LaneKey>) async -> DispatchReport {
    .exchanged(try? await store.exchange(findings, recovered: recovered), recovered: recovered)
  }
}

extension DispatchState {
  mutating func handleExchange(_ peers: PeerReport?, told: Set<LaneKey>) {
    exchanges.finish(at: now.steady)
    guard let peers else { return schedule.lanes.putBack(recovered: told) }
    add(.setNodes(peers.nodes))
    // The node that was asked to abort them has only marked them in the store.
    for id in peers.aborted { for number in jobs.numbers(of: id) { abort(number) } }
    // Handles that were removed here between the alarm and this moment are in doubt as well.
    for (lane, since) in schedule.lanes.update(peers.findings, lifted: peers.lifted, at: now.steady)
    {
      restore(lane, since: since)
    }
  }
}

// MARK: - Schedules

extension DispatchState {
  mutating func releaseSchedules() {
    if releases.start(at: now.wall) { start(.releaseSchedules(at: now.wall)) }
  }
}

extension DispatchWork {
  /// The most scheduled notifications that are released at once.
  private static let releaseLimit = 100

  func releaseSchedules(at now: Date) async -> DispatchReport {
    let released = await ask(longest: Self.longestPause) {
      try await store.releaseSchedules(asOf: now, limit: Self.releaseLimit)
    }
    // A store that cannot be asked is asked again.
    let later = clock.now().addingTimeInterval(1)
    guard case .value(let found) = released else {
      return .released(FoundNotifications(), next: later)
    }
    // Apart from the release: to try both again would lose what has been released. Once, as that
    // waits for it.
    let next = await askOnce(againIn: 1) { try await store.nextSchedule() }
    guard case .value(let next) = next else { return .released(found, next: later) }
    return .released(found, next: next)
  }
}

extension DispatchState {
  mutating func handleReleased(_ found: FoundNotifications, next: Date?) {
    releases.finish(next: next)
    guard phase == .running else { return }
    if isShared {
      // They are anybody's now.
      claims.want(at: now.steady)
    } else {
      for record in found { add(record, retryRows: 0) }
    }
    note(unreadable: found.unreadable)
  }
}

// MARK: - Credentials

extension DispatchState {
  /// Looks again and again, while notifications wait for a lane that failed or rests for long,
  /// whether another process has replaced its credential: the old one may be refused or limited, or
  /// lead to the wrong address.
  mutating func watchCredentials() {
    let waiting = jobs.isEmpty ? [] : schedule.lanes.inTrouble(at: now.steady)
    guard credentials.start(isNeeded: !waiting.isEmpty, at: now.steady) else { return }
    start(.findCredentials(of: waiting))
  }

  /// This process has replaced or removed a push credential.
  mutating func credentialChanged(_ lane: LaneKey, at moment: DispatchMoment) {
    schedule.lanes.forgetAnswers(of: lane)
    // Parts that wait must not go out with the old one.
    start(.findReplaced(lane))
  }
}

extension DispatchWork {
  /// Another look comes soon: a question that fails is left out, and keeps no other lane's waiting.
  func findCredentials(of lanes: [LaneKey]) async -> DispatchReport {
    var found: [LaneKey: Date?] = [:]
    let again = CredentialTimer.period
    guard case .value = await askOnce(againIn: again, { try await routes.refresh() }) else {
      return .credentials(found)
    }
    for lane in lanes {
      let answer = await askOnce(againIn: again) { try await presentCredential(of: lane) }
      if case .value(let credential) = answer { found[lane] = .some(credential) }
    }
    return .credentials(found)
  }

  func findReplaced(_ lane: LaneKey) async -> DispatchReport {
    let answer = await ask {
      try await routes.refresh()
      return try await presentCredential(of: lane)
    }
    guard case .value(let credential) = answer else { return .replaced(lane, nil) }
    return .replaced(lane, credential)
  }

  private func presentCredential(of lane: LaneKey) async throws -> Date? {
    guard case .open(_, let credential) = try await routes.route(lane) else { return nil }
    return credential
  }
}

extension DispatchState {
  mutating func handleCredentials(_ found: [LaneKey: Date?]) {
    credentials.finish()
    for (lane, credential) in found { use(credential, for: lane) }
  }
}
