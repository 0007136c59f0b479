package import Foundation
package import NotificationHubs

/// One addressable target as it is written to the store: native, or one template
/// (docs/protocol/rest.md, sections 3.1 and 4.6).
package struct RegistrationDraft: Hashable, Sendable {
  /// The kind of sends that a registration receives.
  package enum Kind: Hashable, Sendable {
    /// Native sends of its platform.
    case native
    /// Template sends; the name is that of the template, `nil` when it has none.
    case template(PushTemplate, name: String?)
  }

  package var kind: Kind
  package var platform: PushPlatform
  /// The address of the device at the push service, in its stored form: Apple tokens in upper case.
  package var channel: PushChannel
  /// The tags including the implicit ones, in the order of the wire.
  package var tags: [Tag]
  package var pushVariables: [String: String]
  /// `nil` means never.
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

/// The identity of a registration within its installation, the same from write to write.
package struct RegistrationKey: Hashable, Sendable {
  package let isNative: Bool
  /// The template's name.
  package let name: String?
  /// The secondary tile's id.
  package let tile: String?

  package init(isNative: Bool, name: String?, tile: String?) {
    self.isNative = isNative
    self.name = name
    self.tile = tile
  }
}

extension RegistrationDraft {
  package var key: RegistrationKey {
    switch kind {
    case .native: RegistrationKey(isNative: true, name: nil, tile: secondaryTileName)
    case .template(_, let name):
      RegistrationKey(isNative: false, name: name, tile: secondaryTileName)
    }
  }
}

/// The store's number for a registration. See ``AudienceStore`` for the meaning of its order.
package typealias RegistrationID = Int64

/// Registrations that clients write themselves, and those derived from installations
/// (docs/protocol/rest.md, section 3).
///
/// An expired registration does not exist for any of these calls; writing it again creates it.
package protocol RegistrationStore: Sendable {
  /// Reserves an id for a registration that does not exist yet.
  func reserveRegistrationID(hub: Hub.ID) async throws -> String
  /// Creates a registration, regardless of others that the device has.
  func createRegistration(
    _ draft: RegistrationDraft, hub: Hub.ID, at: Date
  ) async throws -> StoredRegistration
  /// Replaces a registration, or creates it when it is missing and there is no condition.
  ///
  /// One that is derived from an installation keeps its implicit tags, and is derived again with
  /// the next write of the installation.
  func putRegistration(
    _ id: String, _ draft: RegistrationDraft, hub: Hub.ID, condition: ETagCondition, at: Date
  ) async throws -> RegistrationWrite
  /// Deletes a registration; one that is derived from an installation is created again with the
  /// next write of the installation.
  /// - Returns: With ``RegistrationWrite/done(_:)``, the deleted registration.
  func deleteRegistration(
    _ id: String, hub: Hub.ID, condition: ETagCondition, at: Date
  ) async throws -> RegistrationWrite
  func registration(_ id: String, hub: Hub.ID, asOf: Date) async throws -> StoredRegistration?
  /// The next registrations of a list after a number; at most `limit`, and fewer when they are large
  /// (``PageSize``).
  func registrations(
    _ query: RegistrationQuery, hub: Hub.ID, asOf: Date, after: RegistrationID, limit: Int
  ) async throws -> RegistrationPage
  /// The ids of registrations for clients; deleted ones are omitted.
  func registrationNames(
    _ numbers: [RegistrationID], hub: Hub.ID
  ) async throws -> [RegistrationID: String]
  /// The devices that have a handle: registrations of any kind, and installations, also those whose
  /// registrations were removed because the push service reported the handle dead, as long as that
  /// can be undone (``FeedbackStore``).
  /// - Parameter limit: Maximum number of registrations, and of installations.
  func devices(
    _ filter: RegistrationFilter, hub: Hub.ID, asOf: Date, limit: Int
  ) async throws -> FoundDevices
}
