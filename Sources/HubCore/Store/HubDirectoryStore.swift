package import Foundation
package import NotificationHubs

/// The data that deliveries need from the directory: the hubs' push-service credentials.
package protocol CredentialStore: Sendable {
  func credentials(hub: Hub.ID) async throws -> [PushCredential]
  /// Rises whenever hubs, policies or credentials may have changed, so that they can be cached.
  /// Another process's changes may appear some milliseconds late. Cheap to call.
  func directoryVersion() async throws -> Int
}

/// The hubs with their access policies and push-service credentials, which every request needs.
///
/// The only numbers here that rise with every change are those of the directory itself, so several
/// nodes on one database share no row with other writes.
package protocol HubDirectoryStore: CredentialStore {
  func hubs() async throws -> [Hub]
  /// Ignores letter case.
  func hub(named name: String) async throws -> Hub?
  /// Creates the hub with its policies and credentials in one transaction.
  func createHub(named name: String, _ contents: HubContents, at: Date) async throws -> Hub
  /// Replaces the given properties of a hub in one transaction; its devices are kept.
  /// - Returns: The hub after the change.
  func updateHub(_ id: Hub.ID, _ contents: HubContents, at: Date) async throws -> Hub
  /// Deletes the hub with all its data.
  /// - Returns: `false` when there was none.
  func deleteHub(named name: String) async throws -> Bool
  /// The policies of a hub, or with `nil` those of the namespace, in the order of their creation.
  func accessPolicies(hub: Hub.ID?) async throws -> [AccessPolicy]
  /// Creates or replaces the policy with that name.
  func putAccessPolicy(_ policy: AccessPolicy, hub: Hub.ID?) async throws
  /// - Returns: `false` when there was none.
  func deleteAccessPolicy(named name: String, hub: Hub.ID?) async throws -> Bool
  /// Creates or replaces the credential of that platform. Sealed at rest.
  func putCredential(_ credential: PushCredential, hub: Hub.ID) async throws
  /// - Returns: `false` when there was none.
  func deleteCredential(_ platform: PushPlatform, hub: Hub.ID) async throws -> Bool
}

extension HubDirectoryStore {
  /// Creates a hub that only has policies.
  package func createHub(
    named name: String, registrationTTL: TimeInterval?, policies: [AccessPolicy], at: Date
  ) async throws -> Hub {
    try await createHub(
      named: name, HubContents(registrationTTL: registrationTTL, policies: policies), at: at)
  }
}
