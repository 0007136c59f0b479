import Foundation
import NotificationHubs

/// The facts of a page of retries that a page of an audience does not have.
struct RetryPage: Sendable {
  /// The lane in whose share of the retries under way it counts.
  let lane: LaneKey
  /// Tries so far, of those that are under way.
  var attempts: [RegistrationID: Int]
}

/// The notifications that are not finished, and their pages under way: those that have been read and
/// not recorded.
///
/// A page is opened when it has been read, its parts are sent or settled and closed, and with the
/// last of them it is complete. Complete pages of an audience are recorded in their order, so the
/// cursor is never ahead of what has been delivered; pages of retries have no order.
struct DispatchJobs {
  /// A part that waits to be sent.
  struct WaitingPart {
    var part: PagePart
    let notification: Int
    let context: DispatchContext
    /// `nil` for a page of an audience.
    let retries: RetryPage?
  }

  private struct Page {
    let notification: Int
    /// Its number in the audience, from 0; `nil` for a page of retries.
    let sequence: Int?
    var retries: RetryPage?
    /// `nil` once started; the unsent rest of a failed part waits again.
    var waiting: [PagePart?]
    var openParts: Int
    /// Something of it has been sent.
    var hasStarted = false
    var result: CompletePage
  }

  private var jobs: [Int: DispatchJob] = [:]
  /// By part.
  private var numbers: [NotificationID: [Int: Int]] = [:]
  private var pages: [Int: Page] = [:]
  private var nextNumber = 0
  private var nextPage = 0

  // MARK: Notifications

  var isEmpty: Bool { jobs.isEmpty }
  var count: Int { jobs.count }
  /// By the numbers that the dispatcher knows them by.
  var all: [Int: DispatchJob] { jobs }
  subscript(number: Int) -> DispatchJob? { jobs[number] }
  /// Numbers of the notifications for which this holds, in the order in which they came.
  func numbers(where isWanted: (DispatchJob) -> Bool) -> [Int] {
    jobs.compactMap { isWanted($0.value) ? $0.key : nil }.sorted()
  }
  /// Numbers of a notification's parts that are here, in the order in which they came.
  func numbers(of id: NotificationID) -> [Int] { numbers[id]?.values.sorted() ?? [] }
  func number(of id: NotificationID, part: Int) -> Int? { numbers[id]?[part] }

  /// - Returns: `nil` for one that is finished, still waits for its time, or is here already.
  mutating func add(
    _ record: NotificationRecord, _ context: DispatchContext, retryRows: Int, at now: Date
  ) -> Int? {
    guard !record.state.isFinal, record.state != .scheduled,
      numbers[record.id]?[record.lease.part] == nil
    else {
      return nil
    }
    let number = nextNumber
    nextNumber += 1
    jobs[number] = DispatchJob(record, context: context, retryRows: retryRows, startedAt: now)
    numbers[record.id, default: [:]][record.lease.part] = number
    return number
  }

  mutating func remove(_ number: Int) -> DispatchJob? {
    guard let job = jobs.removeValue(forKey: number) else { return nil }
    numbers[job.context.id]?[job.context.lease.part] = nil
    if numbers[job.context.id]?.isEmpty == true { numbers[job.context.id] = nil }
    // One that is finished has no page left.
    if !job.state.isFinal {
      for (key, page) in pages where page.notification == number { pages[key] = nil }
    }
    return job
  }

  /// The store has been asked how many retry rows a notification has.
  mutating func note(retryRows: Int, of number: Int) { jobs[number]?.retryRows = retryRows }

  // MARK: Pages

  /// The next page of an audience has been read.
  /// - Returns: Its parts; without any it is complete.
  mutating func open(
    _ plan: PagePlan, of number: Int, targets: Int, end: RegistrationID, isLast: Bool
  ) -> [(key: PartKey, part: PagePart)] {
    guard let sequence = jobs[number]?.nextSequence else { return [] }
    jobs[number]?.nextSequence += 1
    jobs[number]?.readCursor = end
    if isLast { jobs[number]?.isAudienceRead = true }
    return open(
      Page(
        notification: number, sequence: sequence, waiting: plan.parts,
        openParts: plan.parts.count,
        result: CompletePage(targets: targets, end: end, outcome: plan.outcome)))
  }

  /// Retries have been read.
  /// - Returns: As for a page of an audience.
  mutating func open(
    _ plan: PagePlan, of number: Int, retries: RetryPage
  ) -> [(key: PartKey, part: PagePart)] {
    guard jobs[number] != nil else { return [] }
    var plan = plan
    plan.note(attempts: retries.attempts)
    return open(
      Page(
        notification: number, sequence: nil, retries: retries, waiting: plan.parts,
        openParts: plan.parts.count,
        result: CompletePage(
          targets: retries.attempts.count, end: nil, outcome: plan.outcome)))
  }

  private mutating func open(_ page: Page) -> [(key: PartKey, part: PagePart)] {
    let key = nextPage
    nextPage += 1
    pages[key] = page
    if page.openParts == 0 { complete(key) }
    return page.waiting.enumerated().compactMap { index, part in
      part.map { (PartKey(page: key, index: index), $0) }
    }
  }

  // MARK: Parts

  func notification(of key: PartKey) -> Int? { pages[key.page]?.notification }

  func waiting(_ key: PartKey) -> WaitingPart? {
    guard let page = pages[key.page], let part = page.waiting[key.index],
      let context = jobs[page.notification]?.context
    else { return nil }
    return WaitingPart(
      part: part, notification: page.notification, context: context, retries: page.retries)
  }

  /// Parts that wait in pages of which something was sent.
  var waitingInStartedPages: [(key: PartKey, isRetry: Bool)] {
    pages.filter { $0.value.hasStarted }.sorted { $0.key < $1.key }.flatMap { key, page in
      page.waiting.indices.filter { page.waiting[$0] != nil }.map {
        (PartKey(page: key, index: $0), page.retries != nil)
      }
    }
  }

  /// Starts a part that waits. Targets whose message is over by now have their outcome and are left
  /// out, which may be all of them.
  mutating func start(_ key: PartKey, at now: Date) -> WaitingPart? {
    guard var waiting = waiting(key) else { return nil }
    pages[key.page]?.waiting[key.index] = nil
    let (part, over) = waiting.part.withoutOver(waiting.context, at: now)
    let group = OutcomeGroup(
      platform: part.lane.platform, isTemplate: waiting.context.isTemplate,
      isRetry: waiting.retries != nil)
    let (unsent, reason) = waiting.context.unsent("the message's time is over")
    for registration in over {
      pages[key.page]?.result.outcome.fail(
        registration, unsent, reason: reason,
        attempts: waiting.retries?.attempts[registration] ?? 0, in: group)
    }
    if !part.registrations.isEmpty { pages[key.page]?.hasStarted = true }
    waiting.part = part
    return waiting
  }

  /// The unsent rest of a part that was started waits again. To be called before that is closed.
  mutating func putBack(_ unsent: PagePart, _ key: PartKey) {
    pages[key.page]?.waiting[key.index] = unsent
    pages[key.page]?.openParts += 1
  }

  /// Leaves a part of a page of retries to the rows that it has, which are as they were.
  mutating func release(_ key: PartKey) {
    guard let part = pages[key.page]?.waiting[key.index] else { return }
    pages[key.page]?.waiting[key.index] = nil
    for registration in part.registrations {
      pages[key.page]?.retries?.attempts[registration] = nil
    }
    close(key, PageOutcome())
  }

  /// Ends a part that is not sent.
  mutating func settle(
    _ key: PartKey, at now: Date, _ body: (inout PartSettlement) -> Void
  ) {
    guard let waiting = waiting(key) else { return }
    pages[key.page]?.waiting[key.index] = nil
    var settlement = PartSettlement(
      waiting.part, context: waiting.context, attempts: waiting.retries?.attempts, at: now)
    body(&settlement)
    close(key, settlement.outcome)
  }

  /// A part's targets have their outcomes or retries; with the last part its page is complete.
  mutating func close(_ key: PartKey, _ outcome: PageOutcome) {
    pages[key.page]?.result.outcome.merge(outcome)
    pages[key.page]?.openParts -= 1
    if pages[key.page]?.openParts == 0 { complete(key.page) }
  }

  private mutating func complete(_ key: Int) {
    guard let page = pages.removeValue(forKey: key) else { return }
    var result = page.result
    result.retries = page.retries
    if let sequence = page.sequence {
      jobs[page.notification]?.complete[sequence] = result
    } else if !result.outcome.isEmpty {
      // Otherwise all its retries have been left to their rows.
      jobs[page.notification]?.completeRetries.append(result)
    }
  }

  // MARK: Recording

  /// The pages of a notification that may be recorded now: complete ones in their order, several in
  /// one checkpoint when they have come together, and one checkpoint at a time.
  mutating func checkpoint(_ number: Int, at now: Date) -> Checkpoint? {
    jobs[number]?.nextCheckpoint(at: now)
  }

  /// The checkpoint is on the disk.
  /// - Returns: The pages that it was of.
  mutating func recorded(_ number: Int) -> [CompletePage] {
    defer { jobs[number]?.recording = nil }
    return jobs[number]?.recording ?? []
  }
}

/// A page of which every target has its outcome or its retry.
struct CompletePage: Sendable {
  /// For the count of what is held in memory.
  let targets: Int
  /// The cursor once it and all pages before it are recorded; `nil` for a page of retries.
  let end: RegistrationID?
  var outcome: PageOutcome
  var retries: RetryPage?
}

/// One notification that is not finished.
struct DispatchJob {
  let context: DispatchContext
  fileprivate(set) var state: NotificationState
  /// The cursor at which the next page starts.
  fileprivate(set) var readCursor: RegistrationID
  fileprivate(set) var isAudienceRead: Bool
  /// The number of the next page to be read.
  fileprivate var nextSequence = 0
  /// The first page that is not recorded yet.
  private var nextToRecord = 0
  /// Complete, and waiting for their turn to be recorded.
  fileprivate var complete: [Int: CompletePage] = [:]
  fileprivate var completeRetries: [CompletePage] = []
  /// The pages of the checkpoint that is being written.
  fileprivate var recording: [CompletePage]?
  /// Number of checkpoints that it has had under its lease.
  private var checkpoints: Int64 = 0
  /// Rows in the store; below 0 when it had more than this process knew of, as after a failover that
  /// has brought some back.
  fileprivate(set) var retryRows: Int
  /// All outcomes that targets have had, before this process as well.
  private var outcomes: Set<NotificationOutcome>
  /// When this process began to work on it.
  let startedAt: Date
  /// Devices that this process has processed, by outcome.
  private(set) var tally: [NotificationOutcome: Int] = [:]

  /// The number of the last checkpoint; `nil` while it is being written, as a look into the store
  /// may see it or not.
  var lastRecorded: Int64? { recording == nil ? checkpoints : nil }

  /// Nothing is left but retry rows, some of which may be under way.
  var hasOnlyRetryRows: Bool {
    isAudienceRead && nextToRecord == nextSequence && retryRows != 0 && recording == nil
      && complete.isEmpty && completeRetries.isEmpty
  }

  fileprivate init(
    _ record: NotificationRecord, context: DispatchContext, retryRows: Int, startedAt: Date
  ) {
    self.context = context
    self.startedAt = startedAt
    state = record.state
    readCursor = record.cursor
    isAudienceRead = record.isAudienceRead
    self.retryRows = retryRows
    outcomes = Set(record.counts.keys.map(\.outcome))
  }

  /// Whether there is something to record, and no checkpoint is being written.
  private var isReady: Bool {
    recording == nil
      && (complete[nextToRecord] != nil || !completeRetries.isEmpty
        || isAudienceRead && nextToRecord == nextSequence && retryRows == 0)
  }

  /// Collects the pages that may be recorded now, and changes the state to the one afterwards.
  /// - Returns: `nil` when there is nothing to record.
  fileprivate mutating func nextCheckpoint(at now: Date) -> Checkpoint? {
    guard isReady else { return nil }
    var pages = completeRetries
    completeRetries = []
    var checkpoint = Checkpoint(
      notification: context.id, hub: context.hub, lease: context.lease, at: now)
    checkpoints += 1
    checkpoint.number = checkpoints
    var outcome = PageOutcome()
    for page in pages { outcome.merge(page.outcome) }
    retryRows -= outcome.settled.count
    let rewritten = outcome.retries.count
    while let page = complete.removeValue(forKey: nextToRecord) {
      outcome.merge(page.outcome)
      checkpoint.cursor = page.end
      nextToRecord += 1
      pages.append(page)
    }
    retryRows += outcome.retries.count - rewritten
    let isRead = isAudienceRead && nextToRecord == nextSequence
    checkpoint.startedAt = startedAt
    checkpoint.isAudienceRead = isRead
    checkpoint.counts = outcome.counts
    checkpoint.failures = outcome.failures
    checkpoint.successes = outcome.successes
    checkpoint.keeping = context.keeping
    checkpoint.retries = outcome.retries
    checkpoint.settledRetries = outcome.settled
    checkpoint.deadHandles = outcome.dead + outcome.superseded
    checkpoint.replacedHandles = outcome.replaced
    checkpoint.spared = outcome.spared
    checkpoint.environments = outcome.environments
    note(outcome)
    checkpoint.state = nextState(isRead: isRead)
    if let new = checkpoint.state { state = new }
    recording = pages
    return checkpoint
  }

  private mutating func note(_ outcome: PageOutcome) {
    for (key, count) in outcome.counts {
      tally[key.outcome, default: 0] += count
      outcomes.insert(key.outcome)
    }
  }

  private func nextState(isRead: Bool) -> NotificationState? {
    guard isRead, retryRows == 0 else { return state == .processing ? nil : .processing }
    return .ending(outcomes)
  }
}
