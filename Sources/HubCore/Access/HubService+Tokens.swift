package import Foundation
package import NotificationHubs

extension HubService {
  /// Makes a token for one resource of a hub, for those who could make it themselves.
  ///
  /// - Parameters:
  ///   - resource: The absolute address that the token opens.
  ///   - right: What the token is for; it is signed with a policy that has as little else as can be.
  ///   - lifetime: In seconds.
  /// - Returns: `nil` when neither hub nor namespace has a policy with that right.
  package func token(
    for resource: String, hub: Hub, right: AccessRights, lifetime: TimeInterval
  ) async throws(HubFailure) -> SharedAccessSignature? {
    let snapshot = try await answering { try await directory.snapshot() }
    let own = snapshot.hub(hub.id)?.policies ?? []
    let policy = (own + snapshot.namespacePolicies).filter { $0.rights.grants(right) }
      .min { $0.rights.rawValue.nonzeroBitCount < $1.rights.rawValue.nonzeroBitCount }
    return policy.map {
      SharedAccessSignature(
        resource: resource, keyName: $0.name, key: $0.primaryKey,
        expiresAt: clock.now().addingTimeInterval(lifetime))
    }
  }
}
