package import Foundation
package import NotificationHubs

/// One addressable target as it is written to the store: native, or one template
/// (docs/protocol/rest.md, sections 3.1 and 4.6).
package struct RegistrationDraft: Hashable, Sendable {
  /// What a registration can be sent.
  package enum Kind: Hashable, Sendable {
    /// Native sends of its platform.
    case native
    /// Template sends; the name is that of the template, `nil` when it has none.
    case template(PushTemplate, name: String?)
  }

  package var kind: Kind
  package var platform: PushPlatform
  /// Where the push service reaches the device, in its stored form: Apple tokens in upper case.
  package var channel: PushChannel
  /// With the implicit tags, in the order of the wire.
  package var tags: [Tag]
  package var pushVariables: [String: String]
  /// `nil` is never.
  package var expiresAt: Date?
  /// The secondary tile it belongs to (Windows only).
  package var secondaryTileName: String?

  package init(
    kind: Kind, platform: PushPlatform, channel: PushChannel, tags: [Tag] = [],
    pushVariables: [String: String] = [:], expiresAt: Date? = nil,
    secondaryTileName: String? = nil
  ) {
    self.kind = kind
    self.platform = platform
    self.channel = channel
    self.tags = tags
    self.pushVariables = pushVariables
    self.expiresAt = expiresAt
    self.secondaryTileName = secondaryTileName
  }
}

/// The store's number for a registration. See ``AudienceStore`` for what its order means.
package typealias RegistrationID = Int64

/// Registrations which clients write themselves, and those which installations have made
/// (docs/protocol/rest.md, section 3).
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
  /// The next registrations of a list after a number; at most `limit`, and fewer when they are large
  /// (``PageSize``).
  func registrations(
    _ query: RegistrationQuery, hub: Hub.ID, asOf: Date, after: RegistrationID, limit: Int
  ) async throws -> RegistrationPage
  /// What clients call registrations; those that have gone are left out.
  func registrationNames(
    _ numbers: [RegistrationID], hub: Hub.ID
  ) async throws -> [RegistrationID: String]
  /// The devices that have a handle: registrations of any kind, and installations, also those whose
  /// registrations were removed because the push service called the handle dead, as long as that
  /// can be undone (``FeedbackStore``).
  /// - Parameter limit: The most registrations, and the most installations.
  func devices(
    _ filter: RegistrationFilter, hub: Hub.ID, asOf: Date, limit: Int
  ) async throws -> FoundDevices
}
