package import Foundation
package import NotificationHubs

/// What a push service has said against a device's handle (spec `rest-api.md` section 6).
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

/// The part of a ``HubStore`` that keeps what push services have said about handles. It is written
/// by ``HubStore/checkpoint(_:)``, for each failure with one of ``HandleFeedback/outcomes`` and each
/// replaced handle, and kept for ``HandleFeedback/lifetime`` and up to ``HandleFeedback/limit``.
package protocol FeedbackStore: Sendable {
  /// The hours that have feedback, the oldest first.
  func feedbackHours(hub: Hub.ID) async throws -> [FeedbackHour]
  /// The next feedback of an hour after a number; at most `limit`.
  func feedback(
    hub: Hub.ID, hour: Int64, after: Int64, limit: Int
  ) async throws -> [HandleFeedback]
}
