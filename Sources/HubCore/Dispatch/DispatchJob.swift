import Foundation
import NotificationHubs

/// What a page of retries brings with it.
struct RetryPage: Sendable {
  /// Whose share of the retries under way it belongs to.
  let lane: LaneKey
  /// Tries so far, of those that are under way.
  var attempts: [RegistrationID: Int]
}

/// A page under way.
struct DispatchPage: Sendable {
  let notification: Int
  /// Its place in the audience, from 0; `nil` for a page of retries.
  let sequence: Int?
  /// The cursor once it and all pages before it are recorded.
  let end: RegistrationID
  /// All its targets, for the count of what is held in memory.
  let targets: Int
  /// For a page of retries.
  var retries: RetryPage?
  /// `nil` once started; what is left of a part that met trouble waits again.
  var waitingParts: [PagePart?]
  var openParts: Int
  var outcome: PageOutcome
  /// Something of it has been sent.
  var hasStarted = false

  var isComplete: Bool { openParts == 0 }
}

/// What the dispatcher knows of one notification that is not finished.
struct DispatchJob {
  let context: DispatchContext
  var state: NotificationState
  /// Where the next page starts.
  var readCursor: RegistrationID
  var isAudienceRead: Bool
  /// The number of the next page to be read.
  var nextSequence = 0
  /// The first page that is not recorded yet. Pages are recorded in their order, so the cursor is
  /// never ahead of what has been delivered.
  var nextToRecord = 0
  /// Complete, and waiting for their turn to be recorded.
  var complete: [Int: DispatchPage] = [:]
  /// Complete pages of retries; they have no order.
  var completeRetries: [DispatchPage] = []
  /// One checkpoint at a time.
  var isRecording = false
  /// Rows in the store.
  var retryRows: Int
  /// Registrations whose retry row is under way, by the lane it was read for; the store may offer
  /// them again.
  var retriesUnderWay: [LaneKey: Set<RegistrationID>] = [:]
  var hasOutcome: Bool
  var hasSuccess: Bool
  var hasAbandoned: Bool
  /// When this process began with it.
  let takenUpAt: Date
  /// Devices that this process has seen to, by outcome.
  private(set) var tally: [NotificationOutcome: Int] = [:]

  /// Nothing is left but retry rows, none of which is under way.
  var isAwaitingRetries: Bool {
    isAudienceRead && nextToRecord == nextSequence && retryRows > 0 && !isRecording
      && complete.isEmpty && completeRetries.isEmpty
      && retriesUnderWay.allSatisfy { $0.value.isEmpty }
  }

  init(
    _ record: NotificationRecord, context: DispatchContext, retryRows: Int, takenUpAt: Date
  ) {
    self.context = context
    self.takenUpAt = takenUpAt
    state = record.state
    readCursor = record.cursor
    isAudienceRead = record.isAudienceRead
    self.retryRows = retryRows
    hasOutcome = !record.counts.isEmpty
    hasSuccess = record.counts.keys.contains { $0.outcome == .success }
    hasAbandoned = record.counts.keys.contains { $0.outcome == .abandonedNotificationMessages }
  }

  /// Takes what may be recorded now, and writes down what will be true afterwards.
  /// - Returns: `nil` when there is nothing to record.
  mutating func takeCheckpoint(at now: Date) -> (Checkpoint, pages: [DispatchPage])? {
    var pages = completeRetries
    completeRetries = []
    var checkpoint = Checkpoint(notification: context.id, hub: context.hub, at: now)
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
    guard !pages.isEmpty || isRead && retryRows == 0 else { return nil }
    checkpoint.startedAt = takenUpAt
    checkpoint.isAudienceRead = isRead
    checkpoint.counts = outcome.counts
    checkpoint.failures = outcome.failures
    checkpoint.successes = outcome.successes
    checkpoint.keeping = context.keeping
    checkpoint.retries = outcome.retries
    checkpoint.settledRetries = outcome.settled
    checkpoint.deadHandles = outcome.dead
    checkpoint.replacedHandles = outcome.replaced
    checkpoint.spared = outcome.spared
    checkpoint.environments = outcome.environments
    note(outcome)
    checkpoint.state = nextState(isRead: isRead)
    if let new = checkpoint.state { state = new }
    return (checkpoint, pages)
  }

  private mutating func note(_ outcome: PageOutcome) {
    for (key, count) in outcome.counts {
      tally[key.outcome, default: 0] += count
      hasOutcome = true
      if key.outcome == .success { hasSuccess = true }
      if key.outcome == .abandonedNotificationMessages { hasAbandoned = true }
    }
  }

  /// `Completed` says that every target has an outcome; `Abandoned`, that the time ran out before
  /// anybody was reached.
  private func nextState(isRead: Bool) -> NotificationState? {
    guard isRead, retryRows == 0 else { return state == .processing ? nil : .processing }
    if !hasOutcome { return .noTargetFound }
    return hasAbandoned && !hasSuccess ? .abandoned : .completed
  }
}
