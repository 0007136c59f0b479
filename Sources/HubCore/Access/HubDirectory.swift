package import Foundation
package import NotificationHubs
import Synchronization

/// A cache of the data that every request needs (hubs, access policies, credentials), valid until
/// ``HubDirectoryStore/directoryVersion()`` shows that it may have changed.
///
/// The store is asked for its version at most every ``checkInterval``, so another process's change
/// of a policy takes effect within that time; this process's own changes do so at once.
package final class HubDirectory: Sendable {
  /// Time for which cached data is used without a check, in seconds.
  package static let checkInterval: TimeInterval = 0.25

  private struct State {
    var snapshot: HubSnapshot?
    var checkedAt = Date.distantPast
    /// The refresh in progress; all callers that need it wait for the same one.
    var refresh: Task<HubSnapshot, any Error>?
  }

  private let store: any HubDirectoryStore
  private let clock: HubClock
  private let state = Mutex(State())

  package init(store: any HubDirectoryStore, clock: HubClock) {
    self.store = store
    self.clock = clock
  }

  /// The complete data, at most ``checkInterval`` old.
  /// - Throws: ``StoreError``.
  package func snapshot() async throws -> HubSnapshot {
    if let fresh { return fresh }
    return try await refresh()
  }

  /// The cached data, if it is at most ``checkInterval`` old.
  var fresh: HubSnapshot? {
    let now = clock.now()
    return state.withLock { state in
      let age = now.timeIntervalSince(state.checkedAt)
      return age >= 0 && age < Self.checkInterval ? state.snapshot : nil
    }
  }

  /// Checks now whether anything has changed: after a change, and when something is not found.
  /// - Throws: ``StoreError``.
  @discardableResult
  package func refresh() async throws -> HubSnapshot {
    let task = state.withLock { state in
      if let running = state.refresh { return running }
      let known = state.snapshot
      let task = Task { try await self.read(known) }
      state.refresh = task
      return task
    }
    return try await task.value
  }

  /// Must be called after a change, because a refresh that began before it may be outdated.
  package func reload() async throws {
    let running = state.withLock { $0.refresh }
    _ = await running?.result
    try await refresh()
  }

  private func read(_ known: HubSnapshot?) async throws -> HubSnapshot {
    do {
      // Time and version come first: after a change during the read, the next check reads again.
      let now = clock.now()
      let version = try await store.directoryVersion()
      let snapshot: HubSnapshot
      if let known, known.version == version {
        snapshot = known
      } else {
        snapshot = try await HubSnapshot(version: version, store: store)
      }
      state.withLock { state in
        state.snapshot = snapshot
        state.checkedAt = now
        state.refresh = nil
      }
      return snapshot
    } catch {
      state.withLock { $0.refresh = nil }
      throw error
    }
  }
}

/// All hubs with their policies and credentials as they were at one moment.
package final class HubSnapshot: Sendable {
  /// A hub with its policies and credentials. A class, since every request takes it along.
  package final class Entry: Sendable {
    package let hub: Hub
    /// In the order of their creation.
    package let policies: [AccessPolicy]
    package let credentials: [PushPlatform: PushCredential]
    /// Those who may sign tokens for it: its policies, then the namespace's.
    let signers: [PolicySigner]

    init(
      hub: Hub, policies: [AccessPolicy], credentials: [PushPlatform: PushCredential],
      signers: [PolicySigner]
    ) {
      self.hub = hub
      self.policies = policies
      self.credentials = credentials
      self.signers = signers
    }
  }

  /// ``HubDirectoryStore/directoryVersion()``.
  package let version: Int
  /// The namespace's policies in the order of their creation; they apply to every hub.
  package let namespacePolicies: [AccessPolicy]
  let namespaceSigners: [PolicySigner]
  private let byName: [String: Entry]
  private let byID: [Hub.ID: Entry]

  init(version: Int, store: any HubDirectoryStore) async throws {
    self.version = version
    namespacePolicies = try await store.accessPolicies(hub: nil)
    namespaceSigners = namespacePolicies.map { PolicySigner($0, isOfNamespace: true) }
    var byName: [String: Entry] = [:]
    var byID: [Hub.ID: Entry] = [:]
    for hub in try await store.hubs() {
      let credentials = try await store.credentials(hub: hub.id)
      let policies = try await store.accessPolicies(hub: hub.id)
      let entry = Entry(
        hub: hub, policies: policies,
        credentials: Dictionary(credentials.map { ($0.platform, $0) }) { $1 },
        signers: policies.map { PolicySigner($0, hub: hub, isOfNamespace: false) }
          + namespaceSigners.map { PolicySigner($0, for: hub) })
      byName[hub.name.lowercased()] = entry
      byID[hub.id] = entry
    }
    self.byName = byName
    self.byID = byID
  }

  /// Ignores letter case.
  package func hub(named name: String) -> Entry? { byName[name] ?? byName[name.lowercased()] }
  package func hub(_ id: Hub.ID) -> Entry? { byID[id] }
  /// In the order of their creation.
  package var hubs: [Entry] { byID.values.sorted { $0.hub.id < $1.hub.id } }
}

/// A policy with its keys, ready to check signatures.
final class PolicySigner: Sendable {
  let policy: AccessPolicy
  /// The caller that a key of it stands for.
  let caller: Caller
  /// To the hub for which it is asked; `nil` for none.
  let admission: Admission?
  let isOfNamespace: Bool
  private let keys: [SigningKey]

  init(_ policy: AccessPolicy, hub: Hub? = nil, isOfNamespace: Bool) {
    self.policy = policy
    let caller = Caller.policy(policy)
    self.caller = caller
    admission = hub.map { Admission(hub: $0, caller: caller) }
    self.isOfNamespace = isOfNamespace
    keys = [policy.primaryKey, policy.secondaryKey].map { SigningKey($0.utf8) }
  }

  /// A signer of the namespace, for one hub.
  init(_ signer: PolicySigner, for hub: Hub) {
    policy = signer.policy
    caller = signer.caller
    admission = Admission(hub: hub, caller: signer.caller)
    isOfNamespace = true
    keys = signer.keys
  }

  func hasSigned(_ token: SharedAccessSignature) -> Bool { keys.contains(where: token.isSigned) }
}
