package import Foundation
package import NotificationHubs

/// A notification on its way into the store, with all that must be kept in the same moment.
package struct Submission: Sendable {
  package var record: NotificationRecord
  /// The devices that a direct send names, in its order; the store numbers them from 1.
  package var targets: [DirectTarget]
  /// What makes a repeat of the same request recognisable; `nil` when the sender gave no key.
  package var idempotency: IdempotencyClaim?
  /// The line of the activity log that tells of it; kept when it is accepted.
  package var activity: ActivityEntry?

  package init(
    record: NotificationRecord, targets: [DirectTarget] = [],
    idempotency: IdempotencyClaim? = nil
  ) {
    self.record = record
    self.targets = targets
    self.idempotency = idempotency
  }
}

/// One device that a direct send names.
package struct DirectTarget: Hashable, Sendable {
  /// In the form of ``TargetPage/handles``.
  package let handle: String
  /// An earlier target of the same send has the same handle: this one is `Skipped`.
  package let isDuplicate: Bool

  package init(handle: String, isDuplicate: Bool) {
    self.handle = handle
    self.isDuplicate = isDuplicate
  }
}

/// A sender's key for one send, and what the send consists of.
package struct IdempotencyClaim: Hashable, Sendable {
  package let key: String
  /// The same for equal requests, another for others.
  package let fingerprint: [UInt8]
  /// Until then a repeat is recognised.
  package let expiresAt: Date

  package init(key: String, fingerprint: [UInt8], expiresAt: Date) {
    self.key = key
    self.fingerprint = fingerprint
    self.expiresAt = expiresAt
  }
}

/// What came of a submission.
package enum Acceptance: Hashable, Sendable {
  /// It is kept; from here on it survives anything.
  case accepted
  /// The same request came before; nothing was written. The notification that it became then.
  case repeated(NotificationID)
  /// Another request came with this key before; nothing was written.
  case keyInUse
}

/// What came of calling a notification off.
package enum AbortVerdict: Hashable, Sendable {
  /// It is under way, and ends now; or it was called off before and has not ended yet.
  case aborting
  /// It was called off before, and has ended.
  case aborted
  /// It was still waiting for its time, and is cancelled.
  case cancelled
  /// It had this final state already; nothing has changed.
  case finished(NotificationState)
}

/// Which notifications a list has; what is `nil` does not matter.
package struct NotificationFilter: Hashable, Sendable {
  package var states: Set<NotificationState>?
  package var kind: NotificationSummary.Kind?
  /// Named anywhere in the expression.
  package var tag: Tag?
  /// The earliest time: of acceptance or, in a list of schedules, of being due.
  package var from: Date?
  /// The time before which it must be.
  package var until: Date?

  package init(
    states: Set<NotificationState>? = nil, kind: NotificationSummary.Kind? = nil, tag: Tag? = nil,
    from: Date? = nil, until: Date? = nil
  ) {
    self.states = states
    self.kind = kind
    self.tag = tag
    self.from = from
    self.until = until
  }

  /// Whether state, kind and tag fit; times are for the store's index.
  ///
  /// - Parameter expression: What the notification is addressed with.
  package func matches(_ summary: NotificationSummary, _ expression: TagExpression?) -> Bool {
    if let states, !states.contains(where: { $0.rawValue == summary.state.rawValue }) {
      return false
    }
    if let kind, summary.kind != kind { return false }
    guard let tag else { return true }
    return expression?.names(tag) == true
  }
}

/// Where a list that is ordered by time goes on: behind the entry of this time and number.
package struct ListPosition: Hashable, Sendable {
  /// Milliseconds since 1970.
  package let time: Int64
  /// The store's own number of the entry.
  package let number: Int64

  package init(time: Int64, number: Int64) {
    self.time = time
    self.number = number
  }
}

/// A part of a list of notifications.
package struct NotificationPage: Sendable {
  package var notifications: [NotificationSummary]
  /// `nil` at the list's end. A page may be short, or even empty, and yet not the last: looking for
  /// rare ones is done by stretches.
  package var next: ListPosition?

  package init(notifications: [NotificationSummary] = [], next: ListPosition? = nil) {
    self.notifications = notifications
    self.next = next
  }
}

/// The two lists of notifications.
package enum NotificationOrder: Hashable, Sendable {
  /// All, the last accepted first.
  case newestFirst
  /// Those that still wait for their time, the soonest first.
  case scheduled
}

/// Notifications as their senders see them: accepted, scheduled, listed, cancelled.
package protocol NotificationStore: Sendable {
  /// Keeps a notification with its targets, or recognises it as a repeat, in one transaction.
  ///
  /// The id is chosen before, so that an engine whose commit may end without an answer can look
  /// whether it is there.
  func accept(_ submission: Submission) async throws -> Acceptance
  /// The next notifications of a list, without payloads and devices; at most `limit`.
  func notifications(
    _ filter: NotificationFilter, in order: NotificationOrder, hub: Hub.ID,
    after: ListPosition?, limit: Int
  ) async throws -> NotificationPage
  /// Ends a notification that still waits for its time.
  /// - Returns: `false` when there is none of that id, or its time has come.
  func cancelSchedule(_ id: NotificationID, hub: Hub.ID, at: Date) async throws -> Bool
  /// Keeps that a notification is called off; one that still waits for its time is cancelled. From
  /// here on nobody sends anything more of it, also after a restart.
  /// - Returns: `nil` when there is none of that id.
  func abort(_ id: NotificationID, hub: Hub.ID, at: Date) async throws -> AbortVerdict?
  /// Deletes some notifications that had their final state before a time, with all that is kept of
  /// them; those that are under way, scheduled or wait for a retry have none. A call does little,
  /// in a transaction of its own.
  /// - Returns: `true` when there may be more.
  func clearNotifications(endedBefore limit: Date) async throws -> Bool
}

extension NotificationStore {
  /// Keeps a notification that goes to an audience; from here on it survives anything.
  package func accept(_ record: NotificationRecord) async throws {
    _ = try await accept(Submission(record: record))
  }
}

extension NotificationSummary.Kind {
  package init(isScheduled: Bool, isDirect: Bool, expression: TagExpression?) {
    if isScheduled {
      self = .schedule
    } else if isDirect {
      self = .direct
    } else {
      switch expression {
      case nil: self = .broadcast
      case .tag(let tag)? where tag.folded.hasPrefix("$installationid:"): self = .single
      default: self = .tag
      }
    }
  }
}

extension NotificationRequest.Format {
  /// The word of the header `ServiceBusNotification-Format`.
  package var word: String {
    switch self {
    case .template: WireName.templateFormat
    case .native(let platform): platform.sendFormat
    }
  }
}

extension TagExpression {
  /// Whether the tag stands anywhere in it, negated or not.
  package func names(_ tag: Tag) -> Bool {
    switch self {
    case .tag(let other): other == tag
    case .not(let operand): operand.names(tag)
    case .and(let left, let right), .or(let left, let right):
      left.names(tag) || right.names(tag)
    }
  }

  /// Whether it can reach nobody but who carries one of these tags, as far as its form tells: it is
  /// one of them, or narrows one down.
  package func isOnly(for tags: Set<Tag>) -> Bool {
    switch self {
    case .tag(let tag): tags.contains(tag)
    case .not: false
    case .and(let left, let right): left.isOnly(for: tags) || right.isOnly(for: tags)
    case .or(let left, let right): left.isOnly(for: tags) && right.isOnly(for: tags)
    }
  }
}
