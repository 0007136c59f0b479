package import Foundation
package import NotificationHubs

/// The kind of outcomes that are stored device by device, for later queries. The counts of
/// telemetry do not depend on it.
package enum OutcomeKeeping: String, CaseIterable, Hashable, Sendable {
  case none
  /// Every outcome but success; devices without a stored outcome succeeded.
  case failures
  case all
}

/// The retention of stored outcomes.
package struct OutcomeRetention: Hashable, Sendable {
  /// Time after a notification's last outcome, in seconds.
  package var lifetime: Double
  /// Maximum number for all notifications together; those of the oldest are deleted first.
  package var limit: Int

  package init(lifetime: Double = 7 * 86_400, limit: Int = 1_000_000) {
    self.lifetime = lifetime
    self.limit = limit
  }
}

/// The outcome of a notification for one device, with what is still known of the device.
package struct KeptOutcome: Hashable, Sendable {
  /// Also used for a success, where those are stored.
  package let failure: Checkpoint.Failure
  /// The time when it was recorded.
  package let at: Date
  /// `nil` when a template send failed for a device whose registration was deleted since.
  package let platform: PushPlatform?
  /// In the form of ``TargetPage/handles``; `nil` when the registration was deleted since for a
  /// reason other than this failure.
  package let handle: String?
  /// The id of the registration for clients; `nil` for a direct send.
  package let registrationID: String?
  /// `nil` for a direct send, and for a device without installation.
  package let installationID: String?

  package init(
    failure: Checkpoint.Failure, at: Date, platform: PushPlatform?, handle: String?,
    registrationID: String?, installationID: String?
  ) {
    self.failure = failure
    self.at = at
    self.platform = platform
    self.handle = handle
    self.registrationID = registrationID
    self.installationID = installationID
  }
}

/// A filter for stored outcomes; `nil` matches everything.
package struct OutcomeFilter: Hashable, Sendable {
  package var outcomes: Set<NotificationOutcome>?
  package var platform: PushPlatform?
  /// The exact id.
  package var installation: String?
  /// The id of the registration for clients.
  package var registrationID: String?

  package init(
    outcomes: Set<NotificationOutcome>? = nil, platform: PushPlatform? = nil,
    installation: String? = nil, registrationID: String? = nil
  ) {
    self.outcomes = outcomes
    self.platform = platform
    self.installation = installation
    self.registrationID = registrationID
  }

  /// Devices that were not reached for a reason other than a duplicate handle.
  package static let errors = OutcomeFilter(
    outcomes: Set(NotificationOutcome.allCases).subtracting([.success, .skipped]))

  package func matches(_ kept: KeptOutcome) -> Bool {
    if let outcomes, !outcomes.contains(kept.failure.outcome) { return false }
    if let platform, kept.platform != platform { return false }
    if let installation, kept.installationID != installation { return false }
    return registrationID == nil || kept.registrationID == registrationID
  }
}

/// A part of a notification's kept outcomes.
package struct OutcomePage: Sendable {
  package var outcomes: [KeptOutcome]
  /// The number after which the list continues; `nil` at its end. A page may be short, or even
  /// empty, without being the last: rare entries are searched for in slices.
  package var next: RegistrationID?

  package init(outcomes: [KeptOutcome] = [], next: RegistrationID? = nil) {
    self.outcomes = outcomes
    self.next = next
  }
}

/// Outcomes of notifications for single devices. They are written by ``WorkStore/checkpoint(_:)``,
/// according to ``Checkpoint/keeping``.
package protocol OutcomeStore: Sendable {
  /// The next stored outcomes of a notification, in the order of the registrations; at most
  /// `limit`.
  func outcomes(
    of id: NotificationID, hub: Hub.ID, _ filter: OutcomeFilter, after: RegistrationID, limit: Int
  ) async throws -> OutcomePage
  /// The pending retry of a target; `nil` when there is none.
  func retry(
    of id: NotificationID, hub: Hub.ID, registration: RegistrationID
  ) async throws -> Checkpoint.Retry?
  /// Deletes some stored outcomes: those of notifications that had their last one before a time,
  /// and when there are more than `maximum`, the oldest of the hub that stores the most. An engine
  /// may keep those of a day's notifications until all of them are old. A call does little, in a
  /// transaction of its own. A notification's own row records that some were deleted.
  /// - Returns: `true` when there may be more.
  func clearOutcomes(before: Date, keeping maximum: Int) async throws -> Bool
}
