package import Foundation

/// One app's address book: its devices, its access policies, its push-service credentials.
package struct Hub: Hashable, Sendable, Identifiable {
  /// The store's number for a hub.
  package typealias ID = Int64
  package let id: ID
  /// As it was created; compared without regard to letter case (docs/protocol/rest.md,
  /// section 1.1).
  package let name: String
  /// Lifetime of a registration after its last write, in seconds; `nil` is forever.
  package var registrationTTL: TimeInterval?
  /// A disabled hub refuses every data-plane call.
  package var isDisabled: Bool
  /// Text that the owner stores with the hub; Belfry does not interpret it.
  package var userMetadata: String?
  package let createdAt: Date
  /// The time when the hub's description was last replaced.
  package var updatedAt: Date

  package init(
    id: ID, name: String, registrationTTL: TimeInterval? = nil, isDisabled: Bool = false,
    userMetadata: String? = nil, createdAt: Date, updatedAt: Date? = nil
  ) {
    self.id = id
    self.name = name
    self.registrationTTL = registrationTTL
    self.isDisabled = isDisabled
    self.userMetadata = userMetadata
    self.createdAt = createdAt
    self.updatedAt = updatedAt ?? createdAt
  }
}

/// The properties of a hub that its owner sets (docs/protocol/rest.md, section 8.1).
package struct HubContents: Hashable, Sendable {
  /// In seconds; `nil` is forever.
  package var registrationTTL: TimeInterval?
  package var isDisabled: Bool
  package var userMetadata: String?
  /// In their order; `nil` leaves the existing ones.
  package var policies: [AccessPolicy]?
  /// `nil` leaves the existing ones.
  package var credentials: [PushCredential]?

  package init(
    registrationTTL: TimeInterval? = nil, isDisabled: Bool = false, userMetadata: String? = nil,
    policies: [AccessPolicy]? = nil, credentials: [PushCredential]? = nil
  ) {
    self.registrationTTL = registrationTTL
    self.isDisabled = isDisabled
    self.userMetadata = userMetadata
    self.policies = policies
    self.credentials = credentials
  }
}
