package import Foundation
package import NotificationHubs

/// A push service's report about a device's handle (docs/protocol/rest.md, section 6).
package struct HandleFeedback: Hashable, Sendable {
  /// The store's number, which rises with every new one.
  package let number: Int64
  package let at: Date
  package let outcome: NotificationOutcome
  package let platform: PushPlatform
  /// The device's handle; for a browser, its endpoint.
  package let handle: String
  /// The id of the registration, which may have been deleted; `nil` for a handle that a direct send
  /// named.
  package let registration: String?
  /// The installation that the device was registered by; `nil` when a client wrote the
  /// registration itself.
  package let installation: String?
  package let notification: NotificationID
  /// The handle that replaces it; only with the outcome `RefreshToken`.
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

  /// The outcomes that concern the handle rather than the moment; only these are stored.
  package static let outcomes: Set<NotificationOutcome> = [
    .badChannel, .expiredChannel, .wrongChannel,
  ]
  /// Retention of feedback, in seconds: a week.
  package static let lifetime: TimeInterval = 7 * 86_400
  /// Maximum number of entries for a hub; the oldest are deleted first.
  package static let limit = 100_000
}

/// An hour of a hub's feedback.
package struct FeedbackHour: Hashable, Sendable {
  /// Hours since 1970.
  package let hour: Int64
  package let count: Int
  /// The time of the youngest.
  package let modifiedAt: Date

  package init(hour: Int64, count: Int, modifiedAt: Date) {
    self.hour = hour
    self.count = count
    self.modifiedAt = modifiedAt
  }
}

/// A selection of removed registrations.
package struct RemovalWave: Hashable, Sendable {
  /// `nil` means every platform.
  package var platform: PushPlatform?
  /// Those that were removed at this time or later.
  package var since: Date
  /// Whether the push service's reports are in doubt: their feedback is then deleted as well.
  package var isDoubted: Bool

  package init(
    platform: PushPlatform? = nil, since: Date = .distantPast, isDoubted: Bool = false
  ) {
    self.platform = platform
    self.since = since
    self.isDoubted = isDoubted
  }

  /// Time for which removed registrations can be restored, in seconds: a week.
  package static let lifetime: TimeInterval = 7 * 86_400
}

/// Registrations that were removed, or given another handle, because of a push service's report;
/// written by ``WorkStore/checkpoint(_:)``.
///
/// A removed registration is in no audience, list or count. It can be restored under its old number
/// until ``StoreUpkeep/clear(expiredBy:)`` is called with a time ``RemovalWave/lifetime`` after the
/// removal, until a registration is written for the same handle, or its installation, user or hub
/// is deleted.
package protocol RemovalStore: Sendable {
  /// The registrations that can be restored, by hour, the oldest first.
  func removals(_ wave: RemovalWave, hub: Hub.ID) async throws -> [RemovedDevices.Item]
  /// Restores some of them, in one transaction: registrations that no app has registered again, and
  /// the old handles of those whose new handle was not confirmed by an app.
  /// - Parameter limit: Maximum number that is read; the others of their installations are restored
  ///   with them.
  func restoreRemoved(
    _ wave: RemovalWave, hub: Hub.ID, asOf now: Date, limit: Int
  ) async throws -> DeviceRestoration
}

/// Push services' reports about handles; written by ``WorkStore/checkpoint(_:)``.
///
/// Each failure with one of ``HandleFeedback/outcomes`` and each replaced handle becomes feedback;
/// it is stored for ``HandleFeedback/lifetime`` and up to ``HandleFeedback/limit``.
package protocol FeedbackStore: RemovalStore {
  /// The hours that have feedback, the oldest first.
  func feedbackHours(hub: Hub.ID) async throws -> [FeedbackHour]
  /// The next feedback of an hour after a number; at most `limit`.
  func feedback(
    hub: Hub.ID, hour: Int64, after: Int64, limit: Int
  ) async throws -> [HandleFeedback]
}

extension Checkpoint {
  /// The changes that become feedback: failures that say something about the handle, handles that
  /// were replaced, and dead ones whose device was reached through another.
  package var handleNews:
    [(registration: RegistrationID, outcome: NotificationOutcome, newHandle: String?)]
  {
    let failed = failures.filter {
      HandleFeedback.outcomes.contains($0.outcome) && !spared.contains($0.registration)
    }
    let reported = deadHandles.isEmpty ? [] : Set(failed.map(\.registration))
    return failed.map { ($0.registration, $0.outcome, nil) }
      + replacedHandles.map { ($0.registration, .refreshToken, $0.newHandle) }
      + deadHandles.filter { !reported.contains($0.registration) }
      .map { ($0.registration, $0.outcome, nil) }
  }
}
