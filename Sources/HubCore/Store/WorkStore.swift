package import Foundation
package import NotificationHubs

/// Which part of a notification's work a record stands for, and the right to do it.
package struct WorkLease: Hashable, Sendable {
  /// 0 is all of it; an engine that divides an audience numbers its parts from 1.
  package var part: Int
  /// Rises whenever the part changes hands; 0 where one process does all the work.
  package var epoch: Int64

  package init(part: Int = 0, epoch: Int64 = 0) {
    self.part = part
    self.epoch = epoch
  }
}

/// What the store knows of a notification once a checkpoint is written.
package struct CheckpointAnswer: Hashable, Sendable {
  /// It has been aborted, by whichever process.
  package var isAborted: Bool
  /// It has its final state: this part was the last.
  package var isFinished: Bool

  package init(isAborted: Bool = false, isFinished: Bool = false) {
    self.isAborted = isAborted
    self.isFinished = isFinished
  }
}

/// What one page of deliveries has changed; the store writes it in one transaction.
package struct Checkpoint: Sendable {
  /// A target whose outcome is not a success, kept per device so that it can be explained.
  package struct Failure: Hashable, Sendable {
    package let registration: RegistrationID
    package let outcome: NotificationOutcome
    package let status: UInt16
    package let reason: String?
    /// How often the push was sent; 0 when it was not.
    package let attempts: Int
    package init(
      registration: RegistrationID, outcome: NotificationOutcome, status: UInt16, reason: String?,
      attempts: Int = 0
    ) {
      self.registration = registration
      self.outcome = outcome
      self.status = status
      self.reason = reason
      self.attempts = attempts
    }
  }

  /// A target that was reached; only where all outcomes are kept.
  package struct Success: Hashable, Sendable {
    package let registration: RegistrationID
    /// How often the push was sent, from 1.
    package let attempts: Int
    package init(registration: RegistrationID, attempts: Int) {
      self.registration = registration
      self.attempts = attempts
    }
  }

  /// What a push service has said to a try that was not the last.
  package struct Answer: Hashable, Sendable {
    package let outcome: NotificationOutcome
    package let status: UInt16
    package let reason: String?
    package init(outcome: NotificationOutcome, status: UInt16, reason: String?) {
      self.outcome = outcome
      self.status = status
      self.reason = reason
    }
  }

  /// A target to be tried again.
  package struct Retry: Hashable, Sendable {
    package let registration: RegistrationID
    /// The push service that it waits for.
    package let platform: PushPlatform
    /// Tries so far, from 1.
    package let attempts: Int
    package let due: Date
    /// `nil` leaves what an earlier try has brought: this one was put off without being sent.
    package let answer: Answer?
    package init(
      registration: RegistrationID, platform: PushPlatform, attempts: Int, due: Date,
      answer: Answer? = nil
    ) {
      self.registration = registration
      self.platform = platform
      self.attempts = attempts
      self.due = due
      self.answer = answer
    }
  }

  /// A handle that a push service has called dead, or has replaced. It concerns a registration only
  /// while that still has the handle and was not written since the page was read.
  package struct Condemned: Hashable, Sendable {
    /// The registration that a push was sent to.
    package let registration: RegistrationID
    package let platform: PushPlatform
    /// As it was sent to, in its stored form.
    package let handle: String
    /// See ``TargetPage/revision``.
    package let revision: StoreVersion
    package let outcome: NotificationOutcome
    /// The handle that takes its place; `nil` when it is dead.
    package let newHandle: String?
    package init(
      registration: RegistrationID, platform: PushPlatform, handle: String, revision: StoreVersion,
      outcome: NotificationOutcome, newHandle: String? = nil
    ) {
      self.registration = registration
      self.platform = platform
      self.handle = handle
      self.revision = revision
      self.outcome = outcome
      self.newHandle = newHandle
    }
  }

  package var notification: NotificationID
  package var hub: Hub.ID
  /// What the work was claimed with; see ``WorkStore/claimWork(limit:)``.
  package var lease: WorkLease
  /// Another for each checkpoint under a lease, from 1: by it a store knows one that is asked for
  /// again, because whether it was written could not be found out. `nil` for one that is not.
  package var number: Int64?
  package var at: Date
  /// When the work on the notification began, unless the store knows already; `nil`: ``at``.
  package var startedAt: Date?
  /// The new ``NotificationRecord/cursor``; `nil` for a page of retries.
  package var cursor: RegistrationID?
  package var isAudienceRead: Bool
  /// The new state; `nil` leaves it. A final one ends the part; with the last part the notification
  /// has the state that ``NotificationState/ending(_:)`` makes of them all.
  package var state: NotificationState?
  /// Added to the counts.
  package var counts: [OutcomeKey: Int]
  package var failures: [Failure]
  /// Empty unless all outcomes are kept.
  package var successes: [Success]
  /// What is kept of ``failures`` and ``successes``. Feedback about handles is kept in any case.
  package var keeping: OutcomeKeeping
  /// Written, or replaced when the target has a row already.
  package var retries: [Retry]
  /// Targets whose retry row goes because they have their outcome now.
  package var settledRetries: [RegistrationID]
  /// Handles that the push service has called dead: their registrations go, and their installation
  /// is marked `pushChannelExpired`. They can be brought back (``FeedbackStore``).
  package var deadHandles: [Condemned]
  /// Handles that the push service has replaced: the registration and those of the same device get
  /// the new one, their installation too. Each leaves feedback of the outcome `RefreshToken`, and
  /// the old handle can be brought back.
  package var replacedHandles: [Condemned]
  /// Registrations that stay although their handle was called dead, because the push service's word
  /// is in doubt; they leave no feedback either, for applications delete by it.
  package var spared: Set<RegistrationID>
  /// Where a push has succeeded, for registrations of which something else was believed; comes with
  /// their targets from now on.
  package var environments: [(registration: RegistrationID, environment: PushEnvironment)]

  package init(
    notification: NotificationID, hub: Hub.ID, lease: WorkLease = WorkLease(), at: Date
  ) {
    self.notification = notification
    self.hub = hub
    self.lease = lease
    self.at = at
    number = nil
    startedAt = nil
    cursor = nil
    isAudienceRead = false
    state = nil
    counts = [:]
    failures = []
    successes = []
    keeping = .failures
    retries = []
    settledRetries = []
    deadHandles = []
    replacedHandles = []
    spared = []
    environments = []
  }
}

/// Retries of one part of a notification that have come due.
package struct DueRetries: Sendable {
  package let notification: NotificationID
  /// See ``WorkLease/part``.
  package let part: Int
  package let hub: Hub.ID
  /// Live targets only; ``TargetPage/next`` is `nil`.
  package var page: TargetPage
  /// Tries so far, by registration.
  package var attempts: [RegistrationID: Int]
  /// Registrations that no longer exist; they count as `ExpiredChannel`.
  package var gone: [RegistrationID]
  package init(
    notification: NotificationID, part: Int = 0, hub: Hub.ID, page: TargetPage,
    attempts: [RegistrationID: Int], gone: [RegistrationID]
  ) {
    self.notification = notification
    self.part = part
    self.hub = hub
    self.page = page
    self.attempts = attempts
    self.gone = gone
  }
}

/// What is left to deliver, and what deliveries have changed.
///
/// One process does the work of an SQLite file. Nodes that share a database claim it: a
/// notification's work is one part or several, each of which one living node owns, with its
/// retries. A part changes hands when its node is gone; its epoch rises then, and a ``Checkpoint``
/// of an older epoch writes nothing. Counts are kept for each part and added up in reading.
package protocol WorkStore: Sendable {
  /// Other nodes may do work on the same database: it must be claimed, and looked for again and
  /// again.
  var isShared: Bool { get }
  /// Other nodes leave to this one what it has claimed. Asks nobody: it is looked at between pushes.
  var holdsLeases: Bool { get }
  func notification(_ id: NotificationID, hub: Hub.ID) async throws -> NotificationRecord?
  /// Every notification whose time has come and whose state is not final, oldest first, on any
  /// node.
  func unfinishedNotifications() async throws -> FoundNotifications
  /// Takes up work that no living node has, of the oldest notifications first; at most `limit`
  /// parts, and so few of one notification that other nodes find some.
  /// - Returns: A record for each part, with its lease, cursor and counts.
  func claimWork(limit: Int) async throws -> FoundNotifications
  /// The number of notifications that are due since a moment and that nobody delivers: of whose
  /// work no other living node has any part, and that are not among `known`; those that wait for
  /// their release, too.
  func unclaimedWork(
    dueBy moment: Date, beside known: Set<NotificationID>
  ) async throws -> Int
  /// Hands back all that this process has claimed, so that others need not wait for its lease to
  /// end.
  func releaseWork() async throws
  /// Hands back one part that this process does not go on with, so that it can be claimed again;
  /// does nothing when it has another owner, or was claimed once more since.
  func releaseWork(_ lease: WorkLease, of id: NotificationID, hub: Hub.ID) async throws
  /// Writes what a page of deliveries has changed, in one transaction.
  /// - Throws: ``StoreError/leaseLost`` when another node has taken the part over; nothing is
  ///   written.
  @discardableResult
  func checkpoint(_ checkpoint: Checkpoint) async throws -> CheckpointAnswer
  /// The next targets of a direct send after a number; at most `limit`. Their registration is
  /// their number, from 1.
  func directTargets(
    of id: NotificationID, hub: Hub.ID, after: RegistrationID, limit: Int
  ) async throws -> TargetPage

  /// When the next scheduled notification is due.
  func nextSchedule() async throws -> Date?
  /// Turns scheduled notifications that are due into accepted ones, the longest overdue first:
  /// they are `Enqueued`, and start at `now`.
  /// - Returns: At most `limit` of them. Where work is shared, it has still to be claimed.
  func releaseSchedules(asOf now: Date, limit: Int) async throws -> FoundNotifications

  /// A lane's retries due by `now`, the longest overdue first, grouped by notification and part; at
  /// most `limit` targets in all. As with the three calls below, only of work that this process
  /// has.
  func dueRetries(of lane: LaneKey, asOf now: Date, limit: Int) async throws -> [DueRetries]
  /// A part's retries that wait for a lane, due or not, at most `limit`.
  /// - Throws: ``StoreError/noHub`` when the lane's hub is gone.
  func retries(
    of lane: LaneKey, notification: NotificationID, part: Int, limit: Int
  ) async throws -> [DueRetries]
  /// When a lane's next retry is due; `nil` when none waits.
  func nextRetry(of lane: LaneKey) async throws -> Date?
  /// The lanes that retries wait for, and when the next of each is due. Looks at every waiting row.
  func retryLanes() async throws -> [LaneKey: Date]
  /// How many targets of a notification wait for a retry.
  /// - Parameter part: `nil` for all parts.
  /// - Throws: ``StoreError/leaseLost`` when another node has the part.
  func waitingRetries(_ id: NotificationID, part: Int?, hub: Hub.ID) async throws -> Int

  /// Tells other nodes what this one has learnt of its lanes, and hears what they have, and which of
  /// its notifications are aborted.
  /// - Parameters:
  ///   - words: All of it; what is not among them any more is taken back.
  ///   - recovered: Lanes with whose credential a push has succeeded: nobody's refusal counts any
  ///     more.
  func exchange(_ words: Set<LaneWord>, recovered: Set<LaneKey>) async throws -> LaneNews
}

extension WorkStore {
  /// Where one process does all the work there is nobody else to do it.
  package var holdsLeases: Bool { true }

  package func releaseWork(
    _ lease: WorkLease, of id: NotificationID, hub: Hub.ID
  ) async throws {}

  /// Where one process does all the work there is nobody to tell.
  package func exchange(
    _ words: Set<LaneWord>, recovered: Set<LaneKey>
  ) async throws -> LaneNews { LaneNews() }

  package func waitingRetries(_ id: NotificationID, hub: Hub.ID) async throws -> Int {
    try await waitingRetries(id, part: nil, hub: hub)
  }
}

/// What the dispatcher needs of a store.
package typealias DispatchStore = WorkStore & TargetStore & RemovalStore & CredentialStore

extension NotificationState {
  /// The final state of a notification whose targets have had these outcomes: `Completed` says that
  /// every target has one; `Abandoned`, that the time ran out before anybody was reached;
  /// `Canceled`, that its sender called it off before all were sent to.
  package static func ending(_ outcomes: Set<NotificationOutcome>) -> NotificationState {
    if outcomes.isEmpty { return .noTargetFound }
    if outcomes.contains(.aborted) { return .canceled }
    return outcomes.contains(.abandonedNotificationMessages) && !outcomes.contains(.success)
      ? .abandoned : .completed
  }
}
