package import Foundation
package import NotificationHubs

/// The part of a ``HubStore`` that keeps registrations which clients write themselves, and shows
/// those which installations have made (spec `rest-api.md` section 3).
///
/// A registration whose time is over is not there for any of these calls; to write it again is to
/// create it.
package protocol RegistrationStore: Sendable {
  /// An id for a registration that does not exist yet.
  func reserveRegistrationID(hub: Hub.ID) async throws -> String
  /// Creates a registration, whatever others the device has.
  func createRegistration(
    _ draft: RegistrationDraft, hub: Hub.ID, at: Date
  ) async throws -> StoredRegistration
  /// Replaces a registration, or creates it when it is missing and there is no condition.
  ///
  /// One that an installation has made keeps its implicit tags, and is again what the installation
  /// says with the next write of that.
  func putRegistration(
    _ id: String, _ draft: RegistrationDraft, hub: Hub.ID, condition: ETagCondition, at: Date
  ) async throws -> RegistrationWrite
  /// Deletes a registration; one that an installation has made comes back with the next write of
  /// the installation.
  /// - Returns: With ``RegistrationWrite/done(_:)``, what it was.
  func deleteRegistration(
    _ id: String, hub: Hub.ID, condition: ETagCondition, at: Date
  ) async throws -> RegistrationWrite
  func registration(_ id: String, hub: Hub.ID, asOf: Date) async throws -> StoredRegistration?
  /// The next registrations of a list after a number; at most `limit`.
  func registrations(
    _ query: RegistrationQuery, hub: Hub.ID, asOf: Date, after: RegistrationID, limit: Int
  ) async throws -> RegistrationPage
}
