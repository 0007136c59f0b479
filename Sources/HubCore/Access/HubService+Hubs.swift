package import Foundation
import NotificationHubs

extension HubService {
  /// Maximum length of a hub's name, in characters (docs/protocol/rest.md, section 1.1).
  package static let hubNameLimit = 260
  /// Minimum lifetime of a registration, in seconds: one day (docs/protocol/rest.md, section 9).
  package static let minimumRegistrationTTL: TimeInterval = 86_400

  /// All hubs in the order of their creation.
  package func hubs() async throws(HubFailure) -> [Hub] {
    try await answering { try await store.hubs() }
  }

  /// - Throws: 404.
  package func hub(named name: String) async throws(HubFailure) -> Hub {
    guard let hub = try await answering({ try await store.hub(named: name) }) else { throw .noHub }
    return hub
  }

  /// Creates a hub with `DefaultListenSharedAccessSignature`, `DefaultFullSharedAccessSignature`
  /// and the given policies, which may also replace those two. If the defaults would exceed the
  /// limit, only the given ones are created.
  ///
  /// - Throws: 400 for values that are not allowed, or for a credential that cannot work; 409 when
  ///   the hub exists.
  package func createHub(
    named name: String, _ change: HubChange
  ) async throws(HubFailure) -> Hub {
    guard HubDescription.isName(name) else {
      throw HubFailure(
        status: 400,
        message: "The name of a hub must begin with a letter, hold only letters, digits and -._, "
          + "and have at most \(Self.hubNameLimit) characters")
    }
    try change.check()
    let now = clock.now()
    let given = try change.policies(present: [], at: now, random: random) ?? []
    let all = try defaultPolicies(beside: given, at: now) + given
    // Hub 0 does not exist: a gateway made for the check serves nobody.
    try await check(change.credentials, hub: 0)
    let contents = HubContents(
      registrationTTL: change.registrationTTL, isDisabled: change.isDisabled,
      userMetadata: change.userMetadata, policies: all, credentials: change.credentials)
    return try await changing { try await store.createHub(named: name, contents, at: now) }
  }

  /// The default policies that a new hub gets in addition to the given ones; none if they would not
  /// all fit.
  private func defaultPolicies(
    beside given: [AccessPolicy], at now: Date
  ) throws(HubFailure) -> [AccessPolicy] {
    let missing = [
      (name: AccessPolicy.defaultListenName, rights: AccessRights.listen),
      (name: AccessPolicy.defaultFullName, rights: .all),
    ].filter { policy in !given.contains { $0.name == policy.name } }
    guard given.count + missing.count <= AccessPolicy.countLimit else { return [] }
    var policies: [AccessPolicy] = []
    for policy in missing {
      policies.append(try .new(named: policy.name, rights: policy.rights, at: now, random: random))
    }
    return policies
  }

  /// Creates a hub with these policies and no credentials.
  package func createHub(
    named name: String, registrationTTL: TimeInterval? = nil, policies: [AccessPolicy] = []
  ) async throws(HubFailure) -> Hub {
    let policies = policies.map {
      HubChange.Policy(
        name: $0.name, rights: $0.rights, primaryKey: $0.primaryKey,
        secondaryKey: $0.secondaryKey)
    }
    return try await createHub(
      named: name, HubChange(registrationTTL: registrationTTL, policies: policies))
  }

  /// Replaces the description of a hub; its devices are kept.
  ///
  /// - Throws: 400 for values that are not allowed, or for a credential that cannot work; 404 when
  ///   there is no such hub.
  package func updateHub(
    named name: String, _ change: HubChange
  ) async throws(HubFailure) -> Hub {
    let hub = try await hub(named: name)
    try change.check()
    try await check(change.credentials, hub: hub.id)
    let now = clock.now()
    let present = try await policies.list(hub: name)
    let contents = HubContents(
      registrationTTL: change.registrationTTL, isDisabled: change.isDisabled,
      userMetadata: change.userMetadata,
      policies: try change.policies(present: present, at: now, random: random),
      credentials: change.credentials)
    return try await changing { try await store.updateHub(hub.id, contents, at: now) }
  }

  /// Credentials of platforms without a gateway in this build are accepted without validation.
  private func check(
    _ credentials: [PushCredential]?, hub: Hub.ID
  ) async throws(HubFailure) {
    guard let gateways, let credentials else { return }
    for credential in credentials {
      try await answering {
        do {
          _ = try await gateways.gateway(for: credential, hub: hub)
        } catch let error as CredentialError {
          throw HubFailure(status: 400, message: error.description)
        }
      }
    }
  }

  /// Deletes a hub with all its data.
  /// - Throws: 404.
  package func deleteHub(named name: String) async throws(HubFailure) {
    let hub = try await answering { try await store.hub(named: name) }
    let wasThere = try await changing { try await store.deleteHub(named: name) }
    if let hub { await dispatcher.recheck(hub: hub.id) }
    guard wasThere else { throw .noHub }
  }

  /// A hub with its policies and credentials; `nil` when there is none with that name.
  package func description(ofHub name: String) async throws(HubFailure) -> HubSnapshot.Entry? {
    try await answering { try await directory.snapshot().hub(named: name) }
  }

  /// All hubs with their policies and credentials, in the order of their creation.
  package func descriptions() async throws(HubFailure) -> [HubSnapshot.Entry] {
    try await answering { try await directory.snapshot().hubs }
  }

  /// Runs a change of hubs, policies or credentials and refreshes this process's directory at once.
  func changing<Value>(_ work: () async throws -> Value) async throws(HubFailure) -> Value {
    try await answering {
      let value = try await work()
      try await directory.reload()
      return value
    }
  }
}
