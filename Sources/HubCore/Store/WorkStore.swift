package import Foundation
package import NotificationHubs

/// The part of a notification's work that a record represents, and the right to do it.
package struct WorkLease: Hashable, Sendable {
  /// 0 is the whole; an engine that divides an audience numbers its parts from 1.
  package var part: Int
  /// Rises whenever the part changes its owner; 0 where one process does all the work.
  package var epoch: Int64

  package init(part: Int = 0, epoch: Int64 = 0) {
    self.part = part
    self.epoch = epoch
  }
}

/// One part of a notification's work, whoever has it.
package struct WorkID: Hashable, Sendable {
  package let notification: NotificationID
  /// See ``WorkLease/part``.
  package let part: Int

  package init(_ notification: NotificationID, part: Int) {
    self.notification = notification
    self.part = part
  }
}

/// Work that should be under way and is not.
package struct UnclaimedWork: Hashable, Sendable {
  /// Notifications that are due since a moment and that nobody delivers.
  package var count: Int
  /// This process has parts that it does not know of.
  package var isForgotten: Bool

  package init(count: Int, isForgotten: Bool = false) {
    self.count = count
    self.isForgotten = isForgotten
  }
}

/// The state of a notification after a checkpoint is written.
package struct CheckpointAnswer: Hashable, Sendable {
  /// Whether it has been aborted, by any process.
  package var isAborted: Bool
  /// Whether it has its final state, because this part was the last.
  package var isFinished: Bool

  package init(isAborted: Bool = false, isFinished: Bool = false) {
    self.isAborted = isAborted
    self.isFinished = isFinished
  }
}

/// The changes of one page of deliveries; the store writes them in one transaction.
package struct Checkpoint: Sendable {
  /// A target whose outcome is not a success, stored per device so that it can be explained.
  package struct Failure: Hashable, Sendable {
    package let registration: RegistrationID
    package let outcome: NotificationOutcome
    package let status: UInt16
    package let reason: String?
    /// Number of times the push was sent; 0 when it was not.
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

  /// A target that was reached; used only where all outcomes are stored.
  package struct Success: Hashable, Sendable {
    package let registration: RegistrationID
    /// Number of times the push was sent, from 1.
    package let attempts: Int
    package init(registration: RegistrationID, attempts: Int) {
      self.registration = registration
      self.attempts = attempts
    }
  }

  /// The push service's reply to an attempt that was not the last.
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

  /// A target to be retried.
  package struct Retry: Hashable, Sendable {
    package let registration: RegistrationID
    /// The push service that it waits for.
    package let platform: PushPlatform
    /// Number of attempts so far, from 1.
    package let attempts: Int
    package let due: Date
    /// `nil` keeps the reply to an earlier attempt: this one was postponed without being sent.
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

  /// A handle that a push service has reported dead, or has replaced. It applies to a registration
  /// only while that still has the handle and was not written since the page was read.
  package struct Condemned: Hashable, Sendable {
    /// The registration that a push was sent to.
    package let registration: RegistrationID
    package let platform: PushPlatform
    /// The handle that the push was sent to, in its stored form.
    package let handle: String
    /// See ``TargetPage/revision``.
    package let revision: StoreVersion
    package let outcome: NotificationOutcome
    /// The replacement of the handle; `nil` when it is dead.
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
  /// The lease of the claimed work; see ``WorkStore/claimWork(limit:)``.
  package var lease: WorkLease
  /// Numbers the checkpoints under a lease, from 1: by it a store recognises one that is retried
  /// because its outcome is unknown. `nil` for one that is not retried.
  package var number: Int64?
  package var at: Date
  /// The time when work on the notification began, unless the store already knows; `nil`: ``at``.
  package var startedAt: Date?
  /// The new ``NotificationRecord/cursor``; `nil` for a page of retries.
  package var cursor: RegistrationID?
  package var isAudienceRead: Bool
  /// The new state; `nil` leaves it unchanged. A final one ends the part; with the last part the
  /// notification gets the state that ``NotificationState/ending(_:)`` determines from them all.
  package var state: NotificationState?
  /// Added to the counts.
  package var counts: [OutcomeKey: Int]
  package var failures: [Failure]
  /// Empty unless all outcomes are stored.
  package var successes: [Success]
  /// Which of ``failures`` and ``successes`` are stored. Feedback about handles is stored in any
  /// case.
  package var keeping: OutcomeKeeping
  /// Inserted, or replaced when the target already has a row.
  package var retries: [Retry]
  /// Targets whose retry row is deleted because they have their outcome now.
  package var settledRetries: [RegistrationID]
  /// Handles that the push service has reported dead: their registrations are removed, and their
  /// installation is marked `pushChannelExpired`. They can be restored (``FeedbackStore``).
  package var deadHandles: [Condemned]
  /// Handles that the push service has replaced: the registration and those of the same device get
  /// the new one, their installation too. Each leaves feedback with the outcome `RefreshToken`, and
  /// the old handle can be restored.
  package var replacedHandles: [Condemned]
  package var changesHandles: Bool { !deadHandles.isEmpty || !replacedHandles.isEmpty }
  /// Registrations that are kept although their handle was reported dead, because the push
  /// service's report is in doubt; they leave no feedback either, because applications delete
  /// devices by it.
  package var spared: Set<RegistrationID>
  /// The environment in which a push has succeeded, for registrations where another was assumed;
  /// returned with their targets from now on.
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

/// Retries of one part of a notification that are due.
package struct DueRetries: Sendable {
  package let notification: NotificationID
  /// See ``WorkLease/part``.
  package let part: Int
  package let hub: Hub.ID
  /// Existing targets only; ``TargetPage/next`` is `nil`.
  package var page: TargetPage
  /// Number of attempts so far, by registration.
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

/// Undelivered work, and the changes of deliveries.
///
/// One process does the work of an SQLite file. Nodes that share a database claim it: a
/// notification's work is one part or several, each of which one living node owns, with its
/// retries. A part changes its owner when its node is gone; its epoch then rises, and a
/// ``Checkpoint`` of an older epoch writes nothing. Counts are stored for each part and added up on
/// reading.
package protocol WorkStore: Sendable {
  /// Whether other nodes may work on the same database, so that work must be claimed, and polled
  /// for.
  var isShared: Bool { get }
  /// Whether other nodes leave this one's claimed work to it. Does not query the store, because it
  /// is called between pushes.
  var holdsLeases: Bool { get }
  /// The number of this process as a node, under which it claims work. Another one when other nodes
  /// may have taken all that it had; 0 where one process does all the work. Does not query the
  /// store.
  var nodeID: Int64 { get }
  func notification(_ id: NotificationID, hub: Hub.ID) async throws -> NotificationRecord?
  /// Every notification that is due and whose state is not final, oldest first, on any node.
  func unfinishedNotifications() async throws -> FoundNotifications
  /// Claims work that no living node owns, of the oldest notifications first; at most `limit`
  /// parts, and few of one notification, so that other nodes find some.
  /// - Returns: A record for each part, with its lease, cursor and counts.
  func claimWork(limit: Int) async throws -> FoundNotifications
  /// Finds notifications that are due since a moment and that no node delivers: no other living node
  /// owns any part of their work, and this process owns none that is among `known`; those that wait
  /// for their release are included.
  /// - Parameter known: As of ``releaseWork(beside:)``.
  func unclaimedWork(
    dueBy moment: Date, beside known: Set<WorkID>
  ) async throws -> UnclaimedWork
  /// Releases all work that this process has claimed, so that others need not wait for its lease to
  /// end.
  func releaseWork() async throws
  /// Releases one part that this process does not continue with, so that it can be claimed again;
  /// does nothing when it has another owner, or was claimed again since.
  func releaseWork(_ lease: WorkLease, of id: NotificationID, hub: Hub.ID) async throws
  /// Releases the parts that this process owns and does not know of: a database that has lost its
  /// last commits regards finished work as unfinished. Not to be called during a claim, whose parts
  /// are not known yet.
  /// - Parameter known: All that the process works on.
  func releaseWork(beside known: Set<WorkID>) async throws
  /// Writes the changes of a page of deliveries, in one transaction.
  /// - Throws: ``StoreError/leaseLost`` when another node has taken the part over, or the store has
  ///   lost the checkpoint before this one, by a failover to an asynchronous standby; nothing is
  ///   written.
  @discardableResult
  func checkpoint(_ checkpoint: Checkpoint) async throws -> CheckpointAnswer
  /// The next targets of a direct send after a number; at most `limit`. Their registration is
  /// their number, from 1.
  func directTargets(
    of id: NotificationID, hub: Hub.ID, after: RegistrationID, limit: Int
  ) async throws -> TargetPage

  /// The time when the next scheduled notification is due.
  func nextSchedule() async throws -> Date?
  /// Turns scheduled notifications that are due into accepted ones, the longest overdue first: they
  /// are `Enqueued`, and start at `now`.
  /// - Returns: At most `limit` of them. Where work is shared, it must still be claimed.
  func releaseSchedules(asOf now: Date, limit: Int) async throws -> FoundNotifications

  /// A lane's retries due by `now`, the longest overdue first, grouped by notification and part; at
  /// most `limit` targets in all. Like the three calls below, limited to work that this process
  /// owns.
  func dueRetries(of lane: LaneKey, asOf now: Date, limit: Int) async throws -> [DueRetries]
  /// A part's retries that wait for a lane, due or not, at most `limit`.
  /// - Throws: ``StoreError/noHub`` when the lane's hub is gone.
  func retries(
    of lane: LaneKey, notification: NotificationID, part: Int, limit: Int
  ) async throws -> [DueRetries]
  /// The time when a lane's next retry is due; `nil` when there is none.
  func nextRetry(of lane: LaneKey) async throws -> Date?
  /// The lanes that retries wait for, with the time when the next of each is due. Reads every
  /// waiting row.
  func retryLanes() async throws -> [LaneKey: Date]
  /// Number of targets of a notification that wait for a retry.
  /// - Parameter part: `nil` for all parts.
  /// - Throws: ``StoreError/leaseLost`` when another node owns the part.
  func waitingRetries(_ id: NotificationID, part: Int?, hub: Hub.ID) async throws -> Int

  /// Announces this node's findings about its lanes to other nodes, and returns theirs, and its
  /// notifications that are aborted.
  /// - Parameter findings: All of its findings; one that is missing now is withdrawn.
  /// - Parameter recovered: Lanes with whose credential a push has succeeded: all refusals are
  ///   lifted.
  func exchange(
    _ findings: Set<LaneFinding>, recovered: Set<LaneKey>
  ) async throws -> PeerReport
}

extension WorkStore {
  /// Always true where one process does all the work.
  package var holdsLeases: Bool { true }

  package var nodeID: Int64 { 0 }

  package func releaseWork(
    _ lease: WorkLease, of id: NotificationID, hub: Hub.ID
  ) async throws {}

  package func releaseWork(beside known: Set<WorkID>) async throws {}

  /// Does nothing where one process does all the work.
  package func exchange(
    _ findings: Set<LaneFinding>, recovered: Set<LaneKey>
  ) async throws -> PeerReport { PeerReport() }

  package func waitingRetries(_ id: NotificationID, hub: Hub.ID) async throws -> Int {
    try await waitingRetries(id, part: nil, hub: hub)
  }
}

/// The store's subjects that the dispatcher needs.
package typealias DispatchStore = WorkStore & TargetStore & RemovalStore & CredentialStore

extension NotificationState {
  /// The final state of a notification whose targets had these outcomes: `Completed` means that
  /// every target has one; `Abandoned`, that the time ran out before anybody was reached;
  /// `Canceled`, that its sender aborted it before all were sent to.
  package static func ending(_ outcomes: Set<NotificationOutcome>) -> NotificationState {
    if outcomes.isEmpty { return .noTargetFound }
    if outcomes.contains(.aborted) { return .canceled }
    return outcomes.contains(.abandonedNotificationMessages) && !outcomes.contains(.success)
      ? .abandoned : .completed
  }
}
