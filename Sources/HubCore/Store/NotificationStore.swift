package import Foundation
package import NotificationHubs

/// A notification that is being submitted, with everything that must be stored in the same
/// transaction.
package struct Submission: Sendable {
  package var record: NotificationRecord
  /// The devices that a direct send names, in its order; the store numbers them from 1.
  package var targets: [DirectTarget]
  /// The claim that identifies a repeat of the same request; `nil` when the sender gave no key.
  package var idempotency: IdempotencyClaim?
  /// The entry of the activity log about it; stored when it is accepted.
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
  /// Whether an earlier target of the same send has the same handle: this one is `Skipped`.
  package let isDuplicate: Bool

  package init(handle: String, isDuplicate: Bool) {
    self.handle = handle
    self.isDuplicate = isDuplicate
  }
}

/// A sender's key for one send, with the fingerprint of the send.
package struct IdempotencyClaim: Hashable, Sendable {
  package let key: String
  /// Equal for equal requests, different for others.
  package let fingerprint: [UInt8]
  /// The time until which a repeat is recognised.
  package let expiresAt: Date

  package init(key: String, fingerprint: [UInt8], expiresAt: Date) {
    self.key = key
    self.fingerprint = fingerprint
    self.expiresAt = expiresAt
  }
}

/// The result of a submission.
package enum Acceptance: Hashable, Sendable {
  /// It is stored durably.
  case accepted
  /// The same request came before; nothing was written. The notification of the first time.
  case repeated(NotificationID)
  /// Another request came with this key before; nothing was written.
  case keyInUse
}

/// The result of aborting a notification.
package enum AbortVerdict: Hashable, Sendable {
  /// It is being delivered, and ends now; or it was aborted before and has not ended yet.
  case aborting
  /// It was aborted before, and has ended.
  case aborted
  /// It was not due yet, and is cancelled.
  case cancelled
  /// It already had this final state; nothing has changed.
  case finished(NotificationState)
}

/// The retention of what a notification says: of its stored payload, of which no other copy is kept.
package enum TextRetention: Hashable, Sendable {
  /// Until the notification has ended, and never shown.
  case off
  /// For some seconds after its end.
  case time(TimeInterval)
  /// As long as the notification.
  case notification

  /// The time before which a notification must have ended for its payload to be cleared; `nil`
  /// clears none.
  func limit(asOf now: Date) -> Date? {
    switch self {
    // Whatever the clock was at its end.
    case .off: .distantFuture
    case .time(let time): now.addingTimeInterval(-time)
    case .notification: nil
    }
  }
}

/// A filter for a list of notifications; `nil` matches everything.
package struct NotificationFilter: Hashable, Sendable {
  package var states: Set<NotificationState>?
  package var kind: NotificationSummary.Kind?
  /// A tag that occurs anywhere in the expression.
  package var tag: Tag?
  /// A part of the title, the text, the tags or the id, in lower case.
  package var search: String?
  /// Whether titles and texts are neither shown nor searched.
  package var hidesText = false
  /// The earliest time: of acceptance or, in a list of schedules, the due time.
  package var from: Date?
  /// The time before which it must be.
  package var until: Date?

  package init(
    states: Set<NotificationState>? = nil, kind: NotificationSummary.Kind? = nil, tag: Tag? = nil,
    search: String? = nil, from: Date? = nil, until: Date? = nil
  ) {
    self.search = search?.lowercased()
    self.states = states
    self.kind = kind
    self.tag = tag
    self.from = from
    self.until = until
  }

  /// Whether state, kind and tag match; times are left to the store's index.
  ///
  /// - Parameter expression: The tag expression of the notification.
  package func concerns(_ summary: NotificationSummary, _ expression: TagExpression?) -> Bool {
    if let states, !states.contains(where: { $0.rawValue == summary.state.rawValue }) {
      return false
    }
    if let kind, summary.kind != kind { return false }
    if let tag, expression?.names(tag) != true { return false }
    return true
  }

  /// Whether the search matches.
  /// - Parameter summary: With its words if the filter has a search.
  package func finds(_ summary: NotificationSummary) -> Bool {
    guard let search else { return true }
    return [summary.title, summary.text, summary.tags, summary.notificationID].contains {
      $0?.lowercased().contains(search) == true
    }
  }
}

/// The position in a list that is ordered by time: after the entry with this time and number.
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
  /// The position of the next page; `nil` at the list's end. A page may be short, or even empty,
  /// without being the last: rare entries are searched for in slices.
  package var next: ListPosition?
  /// Number of notifications that a search passed over without their text, which is not kept.
  package var unsearched = 0

  package init(notifications: [NotificationSummary] = [], next: ListPosition? = nil) {
    self.notifications = notifications
    self.next = next
  }
}

/// The two lists of notifications.
package enum NotificationOrder: Hashable, Sendable {
  /// All notifications, the last accepted first.
  case newestFirst
  /// Those that are not due yet, the soonest first.
  case scheduled
}

/// Notifications as their senders see them: accepted, scheduled, listed, cancelled.
package protocol NotificationStore: Sendable {
  /// Stores a notification with its targets, or recognises it as a repeat, in one transaction.
  ///
  /// The id is chosen beforehand, so that an engine whose commit may end without a reply can check
  /// whether it exists.
  func accept(_ submission: Submission) async throws -> Acceptance
  /// The next notifications of a list, without payloads and devices; at most `limit`.
  func notifications(
    _ filter: NotificationFilter, in order: NotificationOrder, hub: Hub.ID,
    after: ListPosition?, limit: Int
  ) async throws -> NotificationPage
  /// Cancels a notification that is not due yet.
  /// - Returns: `false` when there is none with that id, or it was due.
  func cancelSchedule(_ id: NotificationID, hub: Hub.ID, at: Date) async throws -> Bool
  /// Stores the abort of a notification; one that is not due yet is cancelled. From here on no
  /// process sends anything more of it, also after a restart.
  /// - Returns: `nil` when there is none with that id.
  func abort(_ id: NotificationID, hub: Hub.ID, at: Date) async throws -> AbortVerdict?
  /// Deletes some notifications that had their final state before a time, with all their data;
  /// those that are being delivered, scheduled or wait for a retry have no final state. A call does
  /// little, in a transaction of its own.
  /// - Returns: `true` when there may be more.
  func clearNotifications(endedBefore limit: Date) async throws -> Bool
  /// Clears the payloads of some notifications that had their final state before a time: nothing of
  /// them is sent any more. A call does little, in a transaction of its own.
  /// - Returns: `true` when there may be more.
  func clearTexts(endedBefore limit: Date) async throws -> Bool
}

extension NotificationStore {
  /// Durably stores a notification that goes to an audience.
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
  /// The value of the header `ServiceBusNotification-Format`.
  package var word: String {
    switch self {
    case .template: WireName.templateFormat
    case .native(let platform): platform.sendFormat
    }
  }
}

extension TagExpression {
  /// Whether the tag occurs anywhere in it, negated or not.
  package func names(_ tag: Tag) -> Bool {
    switch self {
    case .tag(let other): other == tag
    case .not(let operand): operand.names(tag)
    case .and(let left, let right), .or(let left, let right):
      left.names(tag) || right.names(tag)
    }
  }

  /// Whether its form limits it to registrations with one of these tags: it is one of them, or a
  /// restriction of one.
  package func isOnly(for tags: Set<Tag>) -> Bool {
    switch self {
    case .tag(let tag): tags.contains(tag)
    case .not: false
    case .and(let left, let right): left.isOnly(for: tags) || right.isOnly(for: tags)
    case .or(let left, let right): left.isOnly(for: tags) && right.isOnly(for: tags)
    }
  }
}
