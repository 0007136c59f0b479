/// The access policies of hubs and of the namespace, with their keys.
package struct HubPolicies: HubSubject {
  package let service: HubService

  /// One of a policy's two keys.
  package enum KeySlot: String, CaseIterable, Sendable {
    case primary
    case secondary
  }

  /// The policies of a hub, or with `nil` those of the namespace, in the order of their creation.
  /// - Throws: 404 when there is no such hub.
  package func list(hub name: String?) async throws(HubFailure) -> [AccessPolicy] {
    let hub = try await id(ofHub: name)
    return try await answering { try await store.accessPolicies(hub: hub) }
  }

  /// - Throws: 404 when there is no such hub or policy.
  package func get(named name: String, hub: String?) async throws(HubFailure) -> AccessPolicy {
    guard let policy = try await list(hub: hub).first(where: { $0.name == name }) else {
      throw .noPolicy(name)
    }
    return policy
  }

  /// Creates a policy; keys that are not given are random.
  /// - Throws: 400 for values that are not allowed, 404 for a missing hub, 409 when the policy
  ///   exists.
  package func create(
    named name: String, rights: AccessRights, hub: String?, primaryKey: String? = nil,
    secondaryKey: String? = nil
  ) async throws(HubFailure) -> AccessPolicy {
    let policy = try AccessPolicy.new(
      named: name, rights: rights, primaryKey: primaryKey, secondaryKey: secondaryKey,
      at: clock.now(), random: random)
    let id = try await id(ofHub: hub)
    try await changing {
      let present = try await store.accessPolicies(hub: id)
      if present.contains(where: { $0.name == name }) { throw StoreError.policyExists(name) }
      guard present.count < AccessPolicy.countLimit else {
        throw HubFailure(
          status: 400,
          message: "There are \(AccessPolicy.countLimit) access policies already; delete one first")
      }
      try await store.putAccessPolicy(policy, hub: id)
    }
    return policy
  }

  /// - Throws: 404 when there is no such hub or policy.
  package func delete(named name: String, hub: String?) async throws(HubFailure) {
    let id = try await id(ofHub: hub)
    let wasThere = try await changing {
      try await store.deleteAccessPolicy(named: name, hub: id)
    }
    guard wasThere else { throw .noPolicy(name) }
  }

  /// Replaces one key of a policy with a random one. Tokens signed with it become invalid; those of
  /// the other key stay valid, so that clients can switch between two rotations.
  /// - Throws: 404 when there is no such hub or policy.
  package func rotateKey(
    _ slot: KeySlot, ofPolicy name: String, hub: String?
  ) async throws(HubFailure) -> AccessPolicy {
    var policy = try await get(named: name, hub: hub)
    switch slot {
    case .primary: policy.primaryKey = AccessPolicy.randomKey(random)
    case .secondary: policy.secondaryKey = AccessPolicy.randomKey(random)
    }
    policy.modifiedAt = clock.now()
    let changed = policy
    let id = try await id(ofHub: hub)
    try await changing { try await store.putAccessPolicy(changed, hub: id) }
    return changed
  }

  /// The namespace's `RootManageSharedAccessKey`; created when it is missing, as on the first
  /// start.
  package func root() async throws(HubFailure) -> AccessPolicy {
    let present = try await list(hub: nil).first { $0.name == AccessPolicy.rootName }
    if let present { return present }
    return try await create(named: AccessPolicy.rootName, rights: .all, hub: nil)
  }

  private func id(ofHub name: String?) async throws(HubFailure) -> Hub.ID? {
    guard let name else { return nil }
    return try await service.hub(named: name).id
  }
}

extension HubService {
  package var policies: HubPolicies { HubPolicies(service: self) }
}

extension HubFailure {
  static func noPolicy(_ name: String) -> HubFailure {
    HubFailure(status: 404, message: "There is no access policy named '\(name)'")
  }
}
