package import Foundation
package import NotificationHubs

/// The state of a notification (docs/protocol/rest.md, section 5.8).
package enum NotificationState: String, CaseIterable, Hashable, Sendable {
  case enqueued = "Enqueued"
  case scheduled = "Scheduled"
  case processing = "Processing"
  case completed = "Completed"
  case noTargetFound = "NoTargetFound"
  case abandoned = "Abandoned"
  case canceled = "Canceled"

  /// Whether the state will not change any more.
  package var isFinal: Bool {
    switch self {
    case .enqueued, .scheduled, .processing: false
    case .completed, .noTargetFound, .abandoned, .canceled: true
    }
  }
}

/// The key by which targets are counted: telemetry separates platforms, and template deliveries
/// from native ones.
package struct OutcomeKey: Hashable, Sendable {
  package let platform: PushPlatform
  package let isTemplate: Bool
  package let outcome: NotificationOutcome
  package init(platform: PushPlatform, isTemplate: Bool, outcome: NotificationOutcome) {
    self.platform = platform
    self.isTemplate = isTemplate
    self.outcome = outcome
  }
}

/// A notification with everything that is known of it.
package struct NotificationRecord: Sendable {
  package let id: NotificationID
  package let hub: Hub.ID
  package var request: NotificationRequest
  package var state: NotificationState
  /// The time of acceptance.
  package var enqueuedAt: Date
  /// The time when a scheduled notification is to be sent; `nil` for one that was sent at once.
  package var scheduledFor: Date?
  /// The time when its delivery began; for a scheduled one, when it was released.
  package var startedAt: Date?
  package var endedAt: Date?
  /// The time when its sender aborted it.
  package var abortedAt: Date?
  /// The part of its work that the record represents, if it was claimed; cursor and
  /// ``isAudienceRead`` are those of the part.
  package var lease = WorkLease()
  package var workID: WorkID { WorkID(id, part: lease.part) }
  /// Targets up to this number have their outcome or a retry row.
  package var cursor: RegistrationID
  /// Whether all pages have been read, so that only retries are left.
  package var isAudienceRead: Bool
  package var counts: [OutcomeKey: Int]
  /// The kind of outcomes that were stored device by device; `nil` while there are none.
  package var keeping: OutcomeKeeping?
  /// Whether some of the stored outcomes have been deleted since.
  package var hasClearedOutcomes = false
  /// Whether its payload has been cleared since, so that the body of ``request`` is empty.
  package var hasClearedText = false
  /// The store's last registration when it was accepted: greater numbers did not exist yet.
  package var lastRegistration: RegistrationID?

  /// The time from which the delivery window counts.
  package var releasedAt: Date {
    scheduledFor == nil ? enqueuedAt : startedAt ?? enqueuedAt
  }

  /// ``releasedAt`` in the time of ``HubClock/steady``. `nil` where only the time of day was
  /// stored, as in a file.
  package var steadyRelease: Date?
  /// A placeholder when the node that released it did not know that time yet: the first claim sets
  /// it.
  package static let unknownRelease = Date(timeIntervalSince1970: 0)

  package init(
    id: NotificationID, hub: Hub.ID, request: NotificationRequest, state: NotificationState,
    enqueuedAt: Date, scheduledFor: Date? = nil, startedAt: Date? = nil, endedAt: Date? = nil,
    cursor: RegistrationID = 0,
    isAudienceRead: Bool = false, counts: [OutcomeKey: Int] = [:]
  ) {
    self.id = id
    self.hub = hub
    self.request = request
    self.state = state
    self.enqueuedAt = enqueuedAt
    self.scheduledFor = scheduledFor
    self.startedAt = startedAt
    self.endedAt = endedAt
    self.cursor = cursor
    self.isAudienceRead = isAudienceRead
    self.counts = counts
  }
}

/// Notifications found in a store, and those of them that it cannot read.
package struct FoundNotifications: Sendable {
  package var records: [NotificationRecord]
  package var unreadable: [UnreadableNotification]

  package init(
    _ records: [NotificationRecord] = [], unreadable: [UnreadableNotification] = []
  ) {
    self.records = records
    self.unreadable = unreadable
  }
}

/// A malformed stored notification; it is left unchanged, to be repaired.
package struct UnreadableNotification: Hashable, Sendable {
  package let id: NotificationID
  package let hub: Hub.ID
  /// See ``WorkLease/part``.
  package let part: Int
  package let reason: String

  package init(id: NotificationID, hub: Hub.ID, part: Int = 0, reason: String) {
    self.id = id
    self.hub = hub
    self.part = part
    self.reason = reason
  }
}

extension FoundNotifications: RandomAccessCollection {
  package var startIndex: Int { records.startIndex }
  package var endIndex: Int { records.endIndex }
  package subscript(index: Int) -> NotificationRecord { records[index] }
}
