package import Foundation

/// One app's address book: its devices, its access policies, its push-service credentials.
package struct Hub: Hashable, Sendable, Identifiable {
  /// The store's number for a hub.
  package typealias ID = Int64
  package let id: ID
  /// As it was created; compared without regard to letter case (spec `rest-api.md` 1.1).
  package let name: String
  /// How long a registration lives after its last write, in seconds; `nil` is forever.
  package var registrationTTL: TimeInterval?
  /// A disabled hub refuses every data-plane call.
  package var isDisabled: Bool
  /// Text that the owner keeps with the hub; Belfry makes nothing of it.
  package var userMetadata: String?
  package let createdAt: Date
  /// When the hub was last described again.
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
