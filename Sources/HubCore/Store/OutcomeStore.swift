package import Foundation
package import NotificationHubs

/// Which outcomes are kept device by device, so that somebody can ask for them later. The counts of
/// telemetry do not depend on it.
package enum OutcomeKeeping: String, CaseIterable, Hashable, Sendable {
  case none
  /// Every outcome but success; what is not there has succeeded.
  case failures
  case all
}

/// How long kept outcomes stay.
package struct OutcomeRetention: Hashable, Sendable {
  /// After a notification's last outcome, in seconds.
  package var lifetime: Double
  /// How many are kept of all notifications together; those of the oldest go first.
  package var limit: Int

  package init(lifetime: Double = 7 * 86_400, limit: Int = 1_000_000) {
    self.lifetime = lifetime
    self.limit = limit
  }
}

/// What has become of a notification for one device, with what is still known of the device.
package struct KeptOutcome: Hashable, Sendable {
  /// Also of a success, where those are kept.
  package let failure: Checkpoint.Failure
  /// When it was recorded; `nil` for one that an older Belfry has kept.
  package let at: Date?
  /// `nil` when a template send failed for a device whose registration has gone since.
  package let platform: PushPlatform?
  /// In the form of ``TargetPage/handles``; `nil` when the registration has gone since, for
  /// another reason than this failure.
  package let handle: String?
  /// What clients call the registration; `nil` for a direct send.
  package let registrationID: String?
  /// `nil` for a direct send, and for a device without installation.
  package let installationID: String?

  package init(
    failure: Checkpoint.Failure, at: Date?, platform: PushPlatform?, handle: String?,
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

/// Which kept outcomes are wanted; what is `nil` does not matter.
package struct OutcomeFilter: Hashable, Sendable {
  package var outcomes: Set<NotificationOutcome>?
  package var platform: PushPlatform?
  /// The id, letter for letter.
  package var installation: String?
  /// What clients call the registration.
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

  /// Devices that were not reached for another reason than that another one has their handle.
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
  /// The number after which the list goes on; `nil` at its end. A page may be short, or even
  /// empty, and yet not the last: looking for rare ones is done by stretches.
  package var next: RegistrationID?

  package init(outcomes: [KeptOutcome] = [], next: RegistrationID? = nil) {
    self.outcomes = outcomes
    self.next = next
  }
}

/// What became of a notification for one device. It is written by ``WorkStore/checkpoint(_:)``, as
/// far as ``Checkpoint/keeping`` says.
package protocol OutcomeStore: Sendable {
  /// The next kept outcomes of a notification, in the order of the registrations; at most `limit`.
  func outcomes(
    of id: NotificationID, hub: Hub.ID, _ filter: OutcomeFilter, after: RegistrationID, limit: Int
  ) async throws -> OutcomePage
  /// What a target waits for that is to be tried again; `nil` when it waits for nothing.
  func retry(
    of id: NotificationID, hub: Hub.ID, registration: RegistrationID
  ) async throws -> Checkpoint.Retry?
  /// Deletes some kept outcomes: those of notifications that had their last one before a time, and
  /// when there are more than `maximum`, the oldest of the hub that keeps the most. An engine may
  /// keep those of a day's notifications until all of them are old. A call does little, in a
  /// transaction of its own. A notification's own row remembers that some have gone.
  /// - Returns: `true` when there may be more.
  func clearOutcomes(before: Date, keeping maximum: Int) async throws -> Bool
}
