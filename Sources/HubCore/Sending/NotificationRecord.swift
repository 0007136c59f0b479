package import Foundation
package import NotificationHubs

/// Where a notification stands (docs/protocol/rest.md, section 5.8).
package enum NotificationState: String, CaseIterable, Hashable, Sendable {
  case enqueued = "Enqueued"
  case scheduled = "Scheduled"
  case processing = "Processing"
  case completed = "Completed"
  case noTargetFound = "NoTargetFound"
  case abandoned = "Abandoned"
  case canceled = "Canceled"

  /// Nothing more will happen to it.
  package var isFinal: Bool {
    switch self {
    case .enqueued, .scheduled, .processing: false
    case .completed, .noTargetFound, .abandoned, .canceled: true
    }
  }
}

/// What targets are counted by: telemetry shows each platform apart, and template deliveries
/// apart from native ones.
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

/// One notification with all that is known of it.
package struct NotificationRecord: Sendable {
  package let id: NotificationID
  package let hub: Hub.ID
  package let request: NotificationRequest
  package var state: NotificationState
  /// When it was accepted.
  package var enqueuedAt: Date
  /// When a scheduled notification is to be sent; `nil` for one that was sent at once.
  package var scheduledFor: Date?
  /// When its delivery began; of a scheduled one, when it was released.
  package var startedAt: Date?
  package var endedAt: Date?
  /// When its sender has called it off.
  package var abortedAt: Date?
  /// The part of its work that the record stands for, where it was claimed; cursor and
  /// ``isAudienceRead`` are those of the part.
  package var lease = WorkLease()
  /// Targets up to this number have their outcome or a retry row.
  package var cursor: RegistrationID
  /// All pages have been read; only retries are left.
  package var isAudienceRead: Bool
  package var counts: [OutcomeKey: Int]
  /// Which outcomes were kept device by device; `nil` while there are none, and for a notification
  /// that an older Belfry has delivered.
  package var keeping: OutcomeKeeping?
  /// Some of what was kept has been deleted since.
  package var hasClearedOutcomes = false
  /// The store's last registration when it was accepted: greater numbers were not there yet. `nil`
  /// when an older Belfry has accepted it.
  package var lastRegistration: RegistrationID?

  /// When the hub began to owe its delivery; its time in the hub counts from here.
  package var releasedAt: Date {
    scheduledFor == nil ? enqueuedAt : startedAt ?? enqueuedAt
  }

  /// ``releasedAt`` in the time of ``HubClock/steady``. `nil` where only the time of day was kept,
  /// as a file does.
  package var steadyRelease: Date?
  /// In its place when the node that released it did not know that time yet: the first claim says it.
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

/// Notifications that a store was asked for, and those of them that it cannot read.
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

/// A stored notification that makes no sense; it stays as it is, to be repaired.
package struct UnreadableNotification: Hashable, Sendable {
  package let id: NotificationID
  package let hub: Hub.ID
  package let reason: String

  package init(id: NotificationID, hub: Hub.ID, reason: String) {
    self.id = id
    self.hub = hub
    self.reason = reason
  }
}

extension FoundNotifications: RandomAccessCollection {
  package var startIndex: Int { records.startIndex }
  package var endIndex: Int { records.endIndex }
  package subscript(index: Int) -> NotificationRecord { records[index] }
}
