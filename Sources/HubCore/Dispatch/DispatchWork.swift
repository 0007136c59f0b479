import Foundation
import NotificationHubs

/// The end of a piece of ``DispatchWork``. Whatever the store says there is one for each piece that
/// was begun, and none that says nothing: a timer or a notification that waits for its end gets it.
enum DispatchReport: Sendable {
  /// The next page of a notification; its end, and whether it was the last.
  case page(Int, PagePlan, targets: Int, end: RegistrationID, isLast: Bool)
  /// - Parameter isRedirected: Its lane has another credential than when the page was read.
  case part(PartKey, LaneKey, PartSettlement, isRedirected: Bool)
  /// Nothing of the part was sent, since other nodes may have its work by now.
  case unowned(PartKey, LaneKey)
  case recorded(Int, Checkpoint, CheckpointAnswer)
  /// - Parameter groups: `nil` when the store refused.
  case retries(RetryTurns.Turn, _ groups: [DueRetries]?, next: Date?, at: Date)
  /// Retries of a notification whose time is over; `nil` when the store refused.
  case endedRetries(EndedRetries, StoreAnswer<[DueRetries]>?)
  case retryPlan(Int, PagePlan, RetryPage)
  /// The number of retry rows that a notification has in the store.
  case retryRows(Int, Int, RowCount)
  /// Scheduled notifications whose time has come, and when that of the next does.
  case released(FoundNotifications, next: Date?)
  /// The credentials that lanes have now; `nil` for a lane that has none.
  case credentials([LaneKey: Date?])
  /// A lane's credential was replaced or removed here.
  case replaced(LaneKey, Date?)
  /// So many registrations have been brought back whose removal was in doubt.
  case broughtBack(LaneKey, Int)
  case claimed(ClaimedWork)
  /// The end of one of ``ClaimedWork/uncounted``.
  case counted(ClaimedWork)
  /// Messages of other nodes; `nil` when they cannot be asked, and have not heard of recovered
  /// lanes.
  case news(LaneNews?, recovered: Set<LaneKey>)
  /// The notification, or its hub, is gone.
  case gone(Int)
  /// Another node does the work now.
  case lost(Int)
  /// The store has closed, or the dispatcher is being stopped: the notification is for the next.
  case stopped(Int)
  /// Work that was dropped unfinished may be claimed again.
  case givenBack
}

/// A question for the retry rows that a notification has in the store.
struct RowCount: Sendable {
  /// The one that seems to have none.
  let lane: LaneKey?
  /// As of ``DispatchJob/lastRecorded``: the answer is about what had been recorded by then.
  let checkpoint: Int64?
}

/// Work that no other node has.
struct ClaimedWork: Sendable {
  /// Each part, and how many retry rows it has.
  var parts: [(record: NotificationRecord, retryRows: Int)] = []
  var unreadable: [UnreadableNotification] = []
  /// Parts whose retries the store did not tell: they are asked for apart from the claim.
  var uncounted: [NotificationRecord] = []
  /// Parts to give back: another node has them by now, they are gone, or the store does not tell
  /// their retries.
  var dropped: [NotificationRecord] = []
  /// The lanes that retries wait for, and when the next of each is due.
  var lanes: [LaneKey: Date] = [:]
  var nextSchedule: Date?
}

/// An answer of the store, or the reason why there will be none.
enum StoreAnswer<Value: Sendable>: Sendable {
  case value(Value)
  /// The hub has been deleted.
  case gone
  /// Another node has taken the work over.
  case lost
  /// The store is closed, or the dispatcher's tasks are being cancelled.
  case stopped

  /// The report on a notification of which there is nothing else to say.
  func report(on number: Int) -> DispatchReport {
    switch self {
    case .gone: .gone(number)
    case .lost: .lost(number)
    case .value, .stopped: .stopped(number)
    }
  }
}

/// The work that the dispatcher gives to tasks of their own: asking the store, finding gateways,
/// sending.
/// Every call but those of a test send ends in one report, and changes nothing of the books.
struct DispatchWork: Sendable {
  let store: any DispatchStore
  /// Those that rates are divided among.
  let nodes: NodeCount
  let routes: GatewayRoutes
  let clock: HubClock
  let random: HubRandom
  let limits: DispatchLimits
  let report: @Sendable (DispatchEvent) -> Void

  /// The most scheduled notifications that are released at once.
  private static let releaseLimit = 100
  /// Between two tries to claim or to release, in seconds: what comes due while the store refuses is
  /// taken up soon after it is well again.
  private static let longestPause = 2.0
  /// The most registrations that are brought back in one transaction.
  private static let restoreLimit = 500

  /// Asks the store until it answers: a full disk or a locked database loses nothing and is tried
  /// again after one second, doubling up to thirty.
  ///
  /// Only for a call whose caller keeps nobody else waiting, however long it takes: a page has a
  /// bounded share of its hub's memory, a checkpoint must not be lost, to claim or to release
  /// schedules means this very call. All else asks once (``askOnce(againIn:_:)``).
  /// - Parameter longest: Between two tries, in seconds.
  private func ask<Value: Sendable>(
    longest: Double = 30, _ call: () async throws -> Value
  ) async -> StoreAnswer<Value> {
    var pause = 1.0
    while true {
      if let answer = await askOnce(againIn: pause, call) { return answer }
      guard (try? await clock.sleep(.seconds(pause))) != nil else { return .stopped }
      pause = min(pause * 2, longest)
    }
  }

  /// Asks the store once, on behalf of somebody who will ask again and keeps others waiting
  /// meanwhile.
  /// - Parameter pause: When that is, in seconds.
  /// - Returns: `nil` when the store refused, which has been reported.
  private func askOnce<Value: Sendable>(
    againIn pause: Double, _ call: () async throws -> Value
  ) async -> StoreAnswer<Value>? {
    do {
      return .value(try await call())
    } catch StoreError.noHub {
      return .gone
    } catch StoreError.leaseLost {
      return .lost
    } catch StoreError.closed {
      return .stopped
    } catch {
      if Task.isCancelled { return .stopped }
      let what = (error as? StoreError)?.description ?? "unexpected error"
      report(.storeTrouble(what, retryIn: pause))
      return nil
    }
  }

  // MARK: Pages

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

  /// Finds the gateways and takes the page apart.
  private func plan(
    _ page: TargetPage, _ context: DispatchContext, isRetry: Bool
  ) async -> StoreAnswer<PagePlan> {
    for target in page.unreadable {
      report(
        .unreadableTarget(
          hub: context.hub, context.id, registration: target.registration, reason: target.reason))
    }
    return await ask {
      PagePlan(
        page, context: context, routes: try await ways(of: page, hub: context.hub),
        isRetry: isRetry, at: clock.steady())
    }
  }

  /// By ``PushPlatform/ordinal``.
  private func ways(of page: TargetPage, hub: Hub.ID) async throws -> [GatewayRoute?] {
    try await routes.refresh()
    var found = [GatewayRoute?](repeating: nil, count: PushPlatform.allCases.count)
    for platform in PagePlan.platforms(of: page) {
      found[platform.ordinal] = try await routes.route(LaneKey(hub: hub, platform: platform))
    }
    return found
  }

  /// - Parameters:
  ///   - attempts: Tries so far, by registration; `nil` for a first try.
  ///   - pace: How many go at once at first; `nil`: all.
  func deliver(
    _ part: PagePart, _ key: PartKey, _ context: DispatchContext,
    attempts: [RegistrationID: Int]?, isProbe: Bool, pace: Int?
  ) async -> DispatchReport {
    // A node that stood still sends nothing before it has been heard of again, and then nothing that
    // others may have taken meanwhile.
    guard isOwn(context) else { return .unowned(key, part.lane) }
    // The page may have waited for long, and a probe is for the credential that there is now.
    if isProbe { try? await routes.refresh() }
    var part = part
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
      part, context: context, attempts: attempts, at: clock.steady())
    settlement.settle(results, handovers: handovers, random: random)
    settlement.signs.pace = pace
    return .part(key, part.lane, settlement, isRedirected: isRedirected)
  }

  /// Whether other nodes leave a part that this one has claimed to it.
  private func isOwn(_ context: DispatchContext) -> Bool {
    store.holdsLeases && context.node == store.nodeID
  }

  func record(_ checkpoint: Checkpoint, of number: Int) async -> DispatchReport {
    let answer = await ask { try await store.checkpoint(checkpoint) }
    guard case .value(let known) = answer else { return answer.report(on: number) }
    return .recorded(number, checkpoint, known)
  }

  // MARK: Retries

  func readRetries(_ turn: RetryTurns.Turn, at now: Date) async -> DispatchReport {
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

  // MARK: Work of several nodes

  /// Takes up work that no living node has. Each part is reported: nobody else may claim it while
  /// this node lives. Ends with the first refusal after the claim, as the next claim waits for it.
  /// - Parameter known: All that this node works on, when what it does not know of is to be given back
  ///   first; else `nil`.
  func claim(limit: Int, beside known: Set<WorkID>?) async -> DispatchReport {
    if let known {
      // The next look for unclaimed work asks again.
      _ = await askOnce(againIn: ClaimTimer.period) { try await store.releaseWork(beside: known) }
    }
    let answer = await ask(longest: Self.longestPause) { try await store.claimWork(limit: limit) }
    guard case .value(let found) = answer else { return .claimed(ClaimedWork()) }
    // Apart from the claim: to try both again would lose what has been claimed.
    var claimed = await countRetries(of: found.records, againIn: 0)
    claimed.unreadable = found.unreadable
    // The next claim asks again.
    let next = await askOnce(againIn: ClaimTimer.period) { try await store.nextSchedule() }
    if case .value(let next) = next { claimed.nextSchedule = next }
    return .claimed(claimed)
  }

  /// Tries for half a minute to find out what retries a part has that was claimed; then it is to be
  /// given back.
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
    // Only what another node has begun has retries.
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
    // A part that is not given back waits for this node's end: no single refusal is the last word.
    for pause in [1.0, 2, 5, 10, 30, 30, 30, 30] {
      switch await ask({ try await store.releaseWork(lease, of: id, hub: hub) }) {
      case .value, .stopped: return .givenBack
      case .gone, .lost: break
      }
      guard (try? await clock.sleep(.seconds(pause))) != nil else { break }
    }
    return .givenBack
  }

  /// Another look comes soon: what fails is not tried again.
  func exchange(_ words: Set<LaneWord>, recovered: Set<LaneKey>) async -> DispatchReport {
    .news(try? await store.exchange(words, recovered: recovered), recovered: recovered)
  }

  // MARK: Schedules, credentials, removals

  func releaseSchedules(at now: Date) async -> DispatchReport {
    let released = await ask(longest: Self.longestPause) {
      try await store.releaseSchedules(asOf: now, limit: Self.releaseLimit)
    }
    // Who cannot be asked is asked again.
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

  private func presentCredential(of lane: LaneKey) async throws -> Date? {
    guard case .open(_, let credential) = try await routes.route(lane) else { return nil }
    return credential
  }

  /// Another look comes soon: what fails is left out, and keeps no other lane's waiting.
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

  /// Undoes removals of a lane that are in doubt.
  func bringBack(_ lane: LaneKey, since: Date) async -> DispatchReport {
    var count = 0
    let wave = RemovalWave(platform: lane.platform, since: since, isDoubted: true)
    while true {
      let answer = await ask {
        try await store.restoreRemoved(
          wave, hub: lane.hub, asOf: clock.now(), limit: Self.restoreLimit)
      }
      guard case .value(let part) = answer else { return .broughtBack(lane, count) }
      count += part.restored
      if !part.hasMore { return .broughtBack(lane, count) }
    }
  }

  // MARK: Test sends

  /// Sends to a few targets at once and waits for the answers; nothing is recorded, retried or
  /// removed. How long a push service may take is for its gateway to bound.
  ///
  /// - Returns: One outcome for each target of the page, in its order.
  /// - Throws: What the store throws.
  func deliverTrial(
    _ record: NotificationRecord, to page: TargetPage
  ) async throws -> [TrialOutcome] {
    let context = DispatchContext(record, limits: limits, clock: clock)
    let plan = PagePlan(
      page, context: context, routes: try await ways(of: page, hub: context.hub), isRetry: false,
      at: clock.steady())
    var said: [RegistrationID: PushResult] = [:]
    for failure in plan.outcome.failures {
      said[failure.registration] = PushResult(
        outcome: failure.outcome, status: failure.status, reason: failure.reason)
    }
    await withTaskGroup(of: (PagePart, [PushResult]).self) { group in
      for part in plan.parts { group.addTask { (part, await part.gateway.deliver(part.batch)) } }
      for await (part, results) in group {
        for (registration, result) in zip(part.registrations, results) {
          said[registration] = result
        }
      }
    }
    return page.targets.map { target in
      let result = said[target.registration] ?? PushResult(outcome: .pnsInterfaceError)
      return TrialOutcome(
        registration: target.registration, platform: target.platform,
        handle: String(decoding: page.handles[target.handle], as: UTF8.self),
        outcome: result.outcome, status: result.status, reason: result.reason)
    }
  }
}

/// The outcome of a push that was sent while its sender waited.
struct TrialOutcome: Sendable {
  let registration: RegistrationID
  let platform: PushPlatform
  /// In the form of ``TargetPage/handles``.
  let handle: String
  let outcome: NotificationOutcome
  /// As of ``PushResult``.
  let status: UInt16
  let reason: String?
}
