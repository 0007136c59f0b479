package import Foundation

/// All of a hub that its owner decides (spec `rest-api.md` 8.1).
package struct HubContents: Hashable, Sendable {
  /// In seconds; `nil` is forever.
  package var registrationTTL: TimeInterval?
  package var isDisabled: Bool
  package var userMetadata: String?
  /// In their order; `nil` leaves those there are.
  package var policies: [AccessPolicy]?
  /// `nil` leaves those there are.
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

extension HubStore {
  /// Creates a hub that has policies and nothing else yet.
  package func createHub(
    named name: String, registrationTTL: TimeInterval?, policies: [AccessPolicy], at: Date
  ) async throws -> Hub {
    try await createHub(
      named: name, HubContents(registrationTTL: registrationTTL, policies: policies), at: at)
  }
}
