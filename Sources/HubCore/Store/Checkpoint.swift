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

  /// A handle that takes the place of another.
  package struct Replacement: Hashable, Sendable {
    /// The registration that a push was sent to.
    package let registration: RegistrationID
    /// When its handle had been confirmed, in milliseconds since 1970.
    package let confirmedAt: Int64
    package let handle: String
    package init(registration: RegistrationID, confirmedAt: Int64, handle: String) {
      self.registration = registration
      self.confirmedAt = confirmedAt
      self.handle = handle
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
  /// Registrations whose handle the push service has reported dead: they go, and their
  /// installation is marked `pushChannelExpired`, unless the handle was confirmed after
  /// ``TargetPage`` was read (the store compares `confirmedAt`).
  package var deadHandles: [(registration: RegistrationID, confirmedAt: Int64)]
  /// Handles that the push service has replaced: the registration and those of the same device get
  /// the new one, their installation too, unless the old was confirmed after the page was read. Each
  /// leaves feedback of the outcome `RefreshToken`.
  package var replacedHandles: [Replacement]
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
