package import Foundation
package import NotificationHubs

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
  package var at: Date
  /// When the work on the notification began, unless the store knows already; `nil`: ``at``.
  package var startedAt: Date?
  /// The new ``NotificationRecord/cursor``; `nil` for a page of retries.
  package var cursor: RegistrationID?
  package var isAudienceRead: Bool
  /// The new state; `nil` leaves it.
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

  package init(notification: NotificationID, hub: Hub.ID, at: Date) {
    self.notification = notification
    self.hub = hub
    self.at = at
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

/// Retries of one notification that have come due.
package struct DueRetries: Sendable {
  package let notification: NotificationID
  package let hub: Hub.ID
  /// Live targets only; ``TargetPage/next`` is `nil`.
  package var page: TargetPage
  /// Tries so far, by registration.
  package var attempts: [RegistrationID: Int]
  /// Registrations that no longer exist; they count as `ExpiredChannel`.
  package var gone: [RegistrationID]
  package init(
    notification: NotificationID, hub: Hub.ID, page: TargetPage, attempts: [RegistrationID: Int],
    gone: [RegistrationID]
  ) {
    self.notification = notification
    self.hub = hub
    self.page = page
    self.attempts = attempts
    self.gone = gone
  }
}

/// What is left to deliver, and what deliveries have changed.
///
/// One process does the work of an SQLite file, so ``unfinishedNotifications()``,
/// ``releaseSchedules(asOf:limit:)`` and ``dueRetries(of:asOf:limit:)`` hand out all there is. With
/// several nodes on one database the same calls claim: what they return comes with a lease (owner,
/// end, rising epoch), the ``Checkpoint`` carries it back, and one whose epoch is not the row's any
/// more writes nothing. Counts are kept for each part and added up in reading.
package protocol WorkStore: Sendable {
  func notification(_ id: NotificationID, hub: Hub.ID) async throws -> NotificationRecord?
  /// Every notification whose time has come and whose state is not final, oldest first.
  func unfinishedNotifications() async throws -> FoundNotifications
  /// Writes what a page of deliveries has changed, in one transaction.
  /// - Returns: Whether the notification has been aborted, by whichever process.
  @discardableResult
  func checkpoint(_ checkpoint: Checkpoint) async throws -> Bool
  /// The next targets of a direct send after a number; at most `limit`. Their registration is
  /// their number, from 1.
  func directTargets(
    of id: NotificationID, hub: Hub.ID, after: RegistrationID, limit: Int
  ) async throws -> TargetPage

  /// When the next scheduled notification is due.
  func nextSchedule() async throws -> Date?
  /// Turns scheduled notifications that are due into accepted ones, the longest overdue first:
  /// they are `Enqueued`, and start at `now`.
  /// - Returns: At most `limit` of them.
  func releaseSchedules(asOf now: Date, limit: Int) async throws -> FoundNotifications

  /// A lane's retries due by `now`, the longest overdue first, grouped by notification; at most
  /// `limit` targets in all.
  func dueRetries(of lane: LaneKey, asOf now: Date, limit: Int) async throws -> [DueRetries]
  /// A notification's retries that wait for a lane, due or not, at most `limit`.
  /// - Throws: ``StoreError/noHub`` when the lane's hub is gone.
  func retries(
    of lane: LaneKey, notification: NotificationID, limit: Int
  ) async throws -> [DueRetries]
  /// When a lane's next retry is due; `nil` when none waits.
  func nextRetry(of lane: LaneKey) async throws -> Date?
  /// The lanes that retries wait for, and when the next of each is due. Looks at every waiting row.
  func retryLanes() async throws -> [LaneKey: Date]
  /// How many targets of a notification wait for a retry.
  func waitingRetries(_ id: NotificationID, hub: Hub.ID) async throws -> Int
}

/// What the dispatcher needs of a store.
package typealias DispatchStore = WorkStore & TargetStore & RemovalStore & CredentialStore
