package import Foundation
package import NotificationHubs

/// What a push service has said against a device's handle (docs/protocol/rest.md, section 6).
package struct HandleFeedback: Hashable, Sendable {
  /// The store's number; rises with every new one.
  package let number: Int64
  package let at: Date
  package let outcome: NotificationOutcome
  package let platform: PushPlatform
  /// The device's; of a browser, its endpoint.
  package let handle: String
  /// The id of the registration, which may be gone; `nil` for a handle that a direct send named.
  package let registration: String?
  /// The installation that the device was registered by; `nil` when a client wrote the
  /// registration itself.
  package let installation: String?
  package let notification: NotificationID
  /// The handle that has taken its place; only with the outcome `RefreshToken`.
  package let newHandle: String?

  package init(
    number: Int64, at: Date, outcome: NotificationOutcome, platform: PushPlatform, handle: String,
    registration: String?, installation: String?, notification: NotificationID,
    newHandle: String? = nil
  ) {
    self.number = number
    self.at = at
    self.outcome = outcome
    self.platform = platform
    self.handle = handle
    self.registration = registration
    self.installation = installation
    self.notification = notification
    self.newHandle = newHandle
  }

  /// The outcomes that say something about the handle rather than about the moment; only these are
  /// kept.
  package static let outcomes: Set<NotificationOutcome> = [
    .badChannel, .expiredChannel, .wrongChannel,
  ]
  /// How long feedback is kept, in seconds: a week.
  package static let lifetime: TimeInterval = 7 * 86_400
  /// How many are kept of a hub; the oldest go first.
  package static let limit = 100_000
}

/// An hour of a hub's feedback.
package struct FeedbackHour: Hashable, Sendable {
  /// Hours since 1970.
  package let hour: Int64
  package let count: Int
  /// Of the youngest.
  package let modifiedAt: Date

  package init(hour: Int64, count: Int, modifiedAt: Date) {
    self.hour = hour
    self.count = count
    self.modifiedAt = modifiedAt
  }
}

/// Which removed registrations are meant.
package struct RemovalWave: Hashable, Sendable {
  /// `nil` means every platform.
  package var platform: PushPlatform?
  /// Those that were removed at this time or later.
  package var since: Date
  /// Whether the push service's word is in doubt: what it has left as feedback goes as well.
  package var isDoubted: Bool

  package init(
    platform: PushPlatform? = nil, since: Date = .distantPast, isDoubted: Bool = false
  ) {
    self.platform = platform
    self.since = since
    self.isDoubted = isDoubted
  }

  /// How long what was removed can be brought back, in seconds: a week.
  package static let lifetime: TimeInterval = 7 * 86_400
}

/// Registrations that were removed, or given another handle, on a push service's word; written by
/// ``WorkStore/checkpoint(_:)``.
///
/// A removed registration is in no audience, list or count. It can be brought back under its old
/// number until ``StoreUpkeep/clear(expiredBy:)`` is called with a time ``RemovalWave/lifetime``
/// after the removal, until a registration is written for the same handle, or its installation,
/// user or hub is deleted.
package protocol RemovalStore: Sendable {
  /// What can be brought back, by hour, the oldest first.
  func removals(_ wave: RemovalWave, hub: Hub.ID) async throws -> [RemovedDevices.Item]
  /// Brings some of it back, in one transaction: registrations that no app has registered again,
  /// and the old handles of those whose new handle was not confirmed by an app.
  /// - Parameter limit: The most that are read; their installations' others come with them.
  func restoreRemoved(
    _ wave: RemovalWave, hub: Hub.ID, asOf now: Date, limit: Int
  ) async throws -> DeviceRestoration
}

/// What push services have said against handles; written by ``WorkStore/checkpoint(_:)``.
///
/// Feedback comes of each failure with one of ``HandleFeedback/outcomes`` and of each replaced
/// handle; it is kept for ``HandleFeedback/lifetime`` and up to ``HandleFeedback/limit``.
package protocol FeedbackStore: RemovalStore {
  /// The hours that have feedback, the oldest first.
  func feedbackHours(hub: Hub.ID) async throws -> [FeedbackHour]
  /// The next feedback of an hour after a number; at most `limit`.
  func feedback(
    hub: Hub.ID, hour: Int64, after: Int64, limit: Int
  ) async throws -> [HandleFeedback]
}
