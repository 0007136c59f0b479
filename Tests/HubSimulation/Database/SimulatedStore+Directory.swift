package import Foundation
package import HubCore
package import NotificationHubs
import Synchronization

package struct PolicyRow: Sendable {
  /// 0 for the namespace.
  package let hub: Hub.ID
  package var policy: AccessPolicy
  /// The keys that its two keys are sealed under.
  var seals: [String]
}

package struct CredentialRow: Sendable {
  package let hub: Hub.ID
  package var credential: PushCredential
  var seals: [String]
}

/// Hubs, their policies and credentials.
extension SimulatedStore {
  package func hubs() async throws -> [Hub] { try await read { Array($0.hubs) } }

  package func hub(named name: String) async throws -> Hub? {
    try await read { $0.hub(named: name) }
  }

  package func createHub(
    named name: String, _ contents: HubContents, at: Date
  ) async throws -> Hub {
    try await changeDirectory { state in
      guard state.hub(named: name) == nil else { throw StoreError.hubExists(name) }
      let hub = Hub(
        id: state.sequences.next(\.hub), name: name, registrationTTL: contents.registrationTTL,
        isDisabled: contents.isDisabled, userMetadata: contents.userMetadata, createdAt: at.stored)
      state.hubs.put(hub)
      state.put(contents, hub: hub.id)
      return hub
    }
  }

  package func updateHub(_ id: Hub.ID, _ contents: HubContents, at: Date) async throws -> Hub {
    try await changeDirectory { state in
      guard var hub = state.hubs[number: id] else { throw StoreError.noHub }
      hub.registrationTTL = contents.registrationTTL
      hub.isDisabled = contents.isDisabled
      hub.userMetadata = contents.userMetadata
      hub.updatedAt = at.stored
      state.hubs.put(hub)
      state.put(contents, hub: id)
      return hub
    }
  }

  package func deleteHub(named name: String) async throws -> Bool {
    try await changeDirectory { state in
      guard let hub = state.hub(named: name)?.id else { return false }
      state.hubs[number: hub] = nil
      state.policies.removeAll { $0.hub == hub }
      state.credentials.removeAll { $0.hub == hub }
      state.jobs.removeAll { $0.job.hub == hub }
      // An engine deletes these a slice at a time, which nobody can see.
      state.installations.removeAll { $0.hub == hub }
      state.installationNumbers = state.installationNumbers.filter { $0.key.hub != hub }
      state.registrations.removeAll { $0.hub == hub }
      state.removed.removeAll { $0.row.hub == hub }
      state.feedback.removeAll { $0.hub == hub }
      state.notifications.removeAll { $0.record.hub == hub }
      state.notificationNumbers = state.notificationNumbers.filter { $0.key.hub != hub }
      state.keys = state.keys.filter { $0.key.hub != hub }
      state.statistics = state.statistics.filter { $0.key.hub != hub }
      return true
    }
  }

  package func accessPolicies(hub: Hub.ID?) async throws -> [AccessPolicy] {
    try await read { $0.policies.filter { $0.hub == hub ?? 0 }.map(\.policy) }
  }

  package func putAccessPolicy(_ policy: AccessPolicy, hub: Hub.ID?) async throws {
    try await changeDirectory { state in
      if let hub { try state.requireHub(hub) }
      state.put(policy, hub: hub ?? 0)
    }
  }

  package func deleteAccessPolicy(named name: String, hub: Hub.ID?) async throws -> Bool {
    try await changeDirectory { state in
      let count = state.policies.count
      state.policies.removeAll { $0.hub == hub ?? 0 && $0.policy.name == name }
      return state.policies.count < count
    }
  }

  package func credentials(hub: Hub.ID) async throws -> [PushCredential] {
    try await read { state in
      state.credentials.filter { $0.hub == hub }.map(\.credential)
        .sorted { $0.platform.storedCode < $1.platform.storedCode }
    }
  }

  package func putCredential(_ credential: PushCredential, hub: Hub.ID) async throws {
    try await changeDirectory { state in
      try state.requireHub(hub)
      state.put(credential, hub: hub)
    }
  }

  package func deleteCredential(_ platform: PushPlatform, hub: Hub.ID) async throws -> Bool {
    try await changeDirectory { state in
      let count = state.credentials.count
      state.credentials.removeAll { $0.hub == hub && $0.credential.platform == platform }
      return state.credentials.count < count
    }
  }

  private func changeDirectory<Value: Sendable>(
    _ name: String = #function, _ body: @escaping @Sendable (inout State) throws -> Value
  ) async throws -> Value {
    let value = try await write(name) { state in
      let value = try body(&state)
      // A deletion that finds nothing does not change the directory.
      if value as? Bool != false { state.directoryVersion += 1 }
      return value
    }
    process.withLock { process in
      process.directory = nil
      process.directoryChanges += 1
    }
    return value
  }

  /// Changes of other processes show so much later at most.
  private static let directoryInterval = 0.1

  package func directoryVersion() async throws -> Int {
    let now = machine.steady()
    let (known, changes) = try process.withLock { process in
      if process.isClosed { throw StoreError.closed }
      return (process.directory, process.directoryChanges)
    }
    if let known, now.timeIntervalSince(known.at) < Self.directoryInterval { return known.version }
    let version = try await read { $0.directoryVersion }
    process.withLock { process in
      if process.directoryChanges == changes { process.directory = (version, now) }
    }
    return version
  }

  // MARK: Seals

  package func sealingKey() async throws -> String { try await read { $0.sealingKey } }

  /// Every process of a life has every key.
  package func changeSealingKey(to key: String) async throws -> [String] {
    try await write { state in
      state.sealingKey = key
      return []
    }
  }

  package func resealSome(limit: Int) async throws -> Int {
    try await write { state in
      let key = state.sealingKey
      var left = limit
      for index in state.policies.indices { reseal(&state.policies[index].seals, key, &left) }
      for index in state.credentials.indices { reseal(&state.credentials[index].seals, key, &left) }
      for index in state.jobs.indices { reseal(&state.jobs[index].seals, key, &left) }
      return limit - left
    }
  }

  package func sealedValues() async throws -> SealedValues {
    try await read { state in
      var values = SealedValues()
      let all =
        state.policies.flatMap(\.seals) + state.credentials.flatMap(\.seals)
        + state.jobs.flatMap(\.seals)
      for key in all { values.counts[key, default: 0] += 1 }
      return values
    }
  }
}

/// Seals values under a key, at most as many as are left.
private func reseal(_ seals: inout [String], _ key: String, _ left: inout Int) {
  for index in seals.indices where seals[index] != key && left > 0 {
    seals[index] = key
    left -= 1
  }
}

extension Hub: NumberedRow { package var number: Int64 { id } }

extension SimulatedDatabase.State {
  func hub(named name: String) -> Hub? { hubs.first { $0.name.lowercased() == name.lowercased() } }

  /// Replaces a hub's policies and credentials by those given.
  fileprivate mutating func put(_ contents: HubContents, hub: Hub.ID) {
    if let new = contents.policies {
      policies.removeAll { $0.hub == hub }
      for policy in new { put(policy, hub: hub) }
    }
    if let new = contents.credentials {
      credentials.removeAll { $0.hub == hub }
      for credential in new { put(credential, hub: hub) }
    }
  }

  /// One that is replaced keeps its place in the order.
  fileprivate mutating func put(_ policy: AccessPolicy, hub: Hub.ID) {
    let row = PolicyRow(hub: hub, policy: policy, seals: [sealingKey, sealingKey])
    let place = policies.firstIndex { $0.hub == hub && $0.policy.name == policy.name }
    if let place { policies[place] = row } else { policies.append(row) }
  }

  fileprivate mutating func put(_ credential: PushCredential, hub: Hub.ID) {
    credentials.removeAll { $0.hub == hub && $0.credential.platform == credential.platform }
    credentials.append(CredentialRow(hub: hub, credential: credential, seals: [sealingKey]))
  }
}
