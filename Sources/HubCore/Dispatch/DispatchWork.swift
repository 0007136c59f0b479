import Foundation
import NotificationHubs

/// A piece of work that runs outside the dispatcher: asking the store, finding gateways, sending.
/// Each ends in one ``DispatchReport``.
enum DispatchTask: Sendable {
  case readPage(Int, DispatchContext, after: RegistrationID)
  case deliver(PartKey, DispatchJobs.WaitingPart, isProbe: Bool, pace: Int?)
  case record(Checkpoint, of: Int)
  case restore(LaneKey, since: Date)
  case readRetries(RetryRotation.Turn, at: Date)
  case readEndedRetries(EndedRetries, DispatchContext, limit: Int, pause: Double)
  case planRetries(DueRetries, of: Int, DispatchContext, RetryPage)
  case countRetries(of: Int, DispatchContext, RowCount)
  case claim(limit: Int, beside: Set<WorkID>?)
  /// Counts the retries of a part that was claimed.
  case countClaimed(NotificationRecord)
  case giveBack(WorkLease, NotificationID, hub: Hub.ID)
  case exchange(Set<LaneFinding>, recovered: Set<LaneKey>)
  case releaseSchedules(at: Date)
  case findCredentials(of: [LaneKey])
  /// Finds the credential of a lane that was given another one here.
  case findReplaced(LaneKey)
}

/// The end of a ``DispatchTask``. Each task that was started ends in one, whatever the store answers,
/// and none is empty: the timer or the notification that waits for its end gets it.
enum DispatchReport: Sendable {
  /// The next page of a notification; its end, and whether it was the last.
  case page(Int, PagePlan, targets: Int, end: RegistrationID, isLast: Bool)
  /// - Parameter isRedirected: Its lane has another credential than when the page was read.
  case part(PartKey, LaneKey, PartSettlement, isRedirected: Bool)
  /// Nothing of the part was sent, since other nodes may have its work by now.
  case unowned(PartKey, LaneKey)
  case recorded(Int, Checkpoint, CheckpointAnswer)
  /// - Parameter groups: `nil` when the store refused.
  case retries(RetryRotation.Turn, _ groups: [DueRetries]?, next: Date?, at: Date)
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
  /// Number of registrations that have been brought back because their removal was in doubt.
  case restored(LaneKey, Int)
  case claimed(ClaimedWork)
  /// The end of one of ``ClaimedWork/uncounted``.
  case counted(ClaimedWork)
  /// Findings of other nodes; `nil` when they cannot be asked, and have not heard of recovered
  /// lanes.
  case exchanged(PeerReport?, recovered: Set<LaneKey>)
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

/// All unfinished work of a store, where one process does it all.
struct LoadedWork: Sendable {
  var found: FoundNotifications
  /// By notification, in the order of ``found``.
  var retryRows: [Int]
  /// The lanes that retries wait for, and when the next of each is due.
  var lanes: [LaneKey: Date]
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

/// Carries out the dispatcher's tasks. It changes nothing of ``DispatchState``. The tasks stand with
/// their stages, in `PageStages`, `RetryStages` and `PolledStages`.
struct DispatchWork: Sendable {
  let store: any DispatchStore
  /// The nodes that rates are divided among.
  let nodes: NodeCount
  let routes: GatewayRoutes
  let clock: HubClock
  let random: HubRandom
  let limits: DispatchLimits
  let report: @Sendable (DispatchEvent) -> Void

  func perform(_ task: DispatchTask) async -> DispatchReport {
    switch task {
    case .readPage(let number, let context, let cursor):
      await readPage(of: number, context, after: cursor)
    case .deliver(let key, let started, let isProbe, let pace):
      await deliver(key, started, isProbe: isProbe, pace: pace)
    case .record(let checkpoint, let number): await record(checkpoint, of: number)
    case .restore(let lane, let since): await restore(lane, since: since)
    case .readRetries(let turn, let now): await readRetries(turn, at: now)
    case .readEndedRetries(let ended, let context, let limit, let pause):
      await readEndedRetries(ended, of: context, limit: limit, againIn: pause)
    case .planRetries(let group, let number, let context, let page):
      await planRetries(group, of: number, context, page)
    case .countRetries(let number, let context, let count):
      await countRetries(of: number, context, count)
    case .claim(let limit, let known): await claim(limit: limit, beside: known)
    case .countClaimed(let record): await countRetries(of: record)
    case .giveBack(let lease, let id, let hub): await giveBack(lease, of: id, hub: hub)
    case .exchange(let findings, let recovered): await exchange(findings, recovered: recovered)
    case .releaseSchedules(let now): await releaseSchedules(at: now)
    case .findCredentials(let lanes): await findCredentials(of: lanes)
    case .findReplaced(let lane): await findReplaced(lane)
    }
  }

  // MARK: Asking the store

  /// Asks the store until it answers: a full disk or a locked database loses nothing and is tried
  /// again after one second, doubling up to thirty.
  ///
  /// Only for a call whose caller keeps nobody else waiting, however long it takes: a page has a
  /// bounded share of its hub's memory, a checkpoint must not be lost, to claim or to release
  /// schedules means this very call. All else asks once (``askOnce(againIn:_:)``).
  /// - Parameter longest: Between two tries, in seconds.
  func ask<Value: Sendable>(
    longest: Double = 30, _ call: () async throws -> Value
  ) async -> StoreAnswer<Value> {
    var pause = 1.0
    while true {
      if let answer = await askOnce(againIn: pause, call) { return answer }
      guard (try? await clock.sleep(.seconds(pause))) != nil else { return .stopped }
      pause = min(pause * 2, longest)
    }
  }

  /// Asks the store once, for a caller that will ask again and keeps others waiting meanwhile.
  /// - Parameter pause: Seconds until it asks again.
  /// - Returns: `nil` when the store refused, which has been reported.
  func askOnce<Value: Sendable>(
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

  /// Everything that is unfinished.
  /// - Throws: The store's errors.
  func load() async throws -> LoadedWork {
    let found = try await store.unfinishedNotifications()
    var retryRows: [Int] = []
    for record in found {
      retryRows.append(try await store.waitingRetries(record.id, hub: record.hub))
    }
    return LoadedWork(
      found: found, retryRows: retryRows, lanes: try await store.retryLanes(),
      nextSchedule: try await store.nextSchedule())
  }

  /// The gateways of a page, by ``PushPlatform/ordinal``.
  func routes(of page: TargetPage, hub: Hub.ID) async throws -> [GatewayRoute?] {
    try await routes.refresh()
    var found = [GatewayRoute?](repeating: nil, count: PushPlatform.allCases.count)
    for platform in PagePlan.platforms(of: page) {
      found[platform.ordinal] = try await routes.route(LaneKey(hub: hub, platform: platform))
    }
    return found
  }

  // MARK: Test sends

  /// Sends to a few targets at once and waits for the answers; nothing is recorded, retried or
  /// removed. How long a push service may take is for its gateway to bound.
  ///
  /// - Returns: One outcome for each target of the page, in its order.
  /// - Throws: The store's errors.
  func deliverTrial(
    _ record: NotificationRecord, to page: TargetPage
  ) async throws -> [TrialOutcome] {
    let context = DispatchContext(record, limits: limits, at: DispatchMoment(clock))
    let plan = PagePlan(
      page, context: context, routes: try await routes(of: page, hub: context.hub), isRetry: false,
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

/// The outcome of a test send for one target.
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
