package import Foundation
package import NotificationHubs
import Synchronization

/// What is asked for with every request (hubs, access policies, credentials), read once and kept
/// until ``HubDirectoryStore/directoryVersion()`` says that it may have changed.
///
/// The store is asked for its version at most every ``checkInterval``, so another process's change
/// of a policy takes effect within that time; this process's own changes do at once.
package final class HubDirectory: Sendable {
  /// How long what was read is trusted without asking, in seconds.
  package static let checkInterval: TimeInterval = 0.25

  private struct State {
    var snapshot: HubSnapshot?
    var checkedAt = Date.distantPast
    /// The reading under way; everyone who needs it waits for the same one.
    var refresh: Task<HubSnapshot, any Error>?
  }

  private let store: any HubDirectoryStore
  private let clock: HubClock
  private let state = Mutex(State())

  package init(store: any HubDirectoryStore, clock: HubClock) {
    self.store = store
    self.clock = clock
  }

  /// Everything, at most ``checkInterval`` old.
  /// - Throws: ``StoreError``.
  package func snapshot() async throws -> HubSnapshot {
    if let fresh { return fresh }
    return try await refresh()
  }

  /// What is in memory, if it is at most ``checkInterval`` old.
  var fresh: HubSnapshot? {
    let now = clock.now()
    return state.withLock { state in
      let age = now.timeIntervalSince(state.checkedAt)
      return age >= 0 && age < Self.checkInterval ? state.snapshot : nil
    }
  }

  /// Asks the store now whether anything has changed: after a change, and when something is not
  /// found.
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

  /// Call after a change: a reading that began before it cannot be relied on.
  package func reload() async throws {
    let running = state.withLock { $0.refresh }
    _ = await running?.result
    try await refresh()
  }

  private func read(_ known: HubSnapshot?) async throws -> HubSnapshot {
    do {
      // Time and version come first: a change while reading makes the next check read again.
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
  /// A hub with what belongs to it.
  package struct Entry: Sendable {
    package let hub: Hub
    /// In the order of their creation.
    package let policies: [AccessPolicy]
    package let credentials: [PushPlatform: PushCredential]
  }

  /// ``HubDirectoryStore/directoryVersion()``.
  package let version: Int
  /// The namespace's policies in the order of their creation; they hold for every hub.
  package let namespacePolicies: [AccessPolicy]
  private let byName: [String: Entry]
  private let byID: [Hub.ID: Entry]

  init(version: Int, store: any HubDirectoryStore) async throws {
    self.version = version
    namespacePolicies = try await store.accessPolicies(hub: nil)
    var byName: [String: Entry] = [:]
    var byID: [Hub.ID: Entry] = [:]
    for hub in try await store.hubs() {
      let credentials = try await store.credentials(hub: hub.id)
      let entry = Entry(
        hub: hub, policies: try await store.accessPolicies(hub: hub.id),
        credentials: Dictionary(credentials.map { ($0.platform, $0) }) { $1 })
      byName[hub.name.lowercased()] = entry
      byID[hub.id] = entry
    }
    self.byName = byName
    self.byID = byID
  }

  /// Letter case aside.
  package func hub(named name: String) -> Entry? { byName[name] ?? byName[name.lowercased()] }
  package func hub(_ id: Hub.ID) -> Entry? { byID[id] }
  /// In the order of their creation.
  package var hubs: [Entry] { byID.values.sorted { $0.hub.id < $1.hub.id } }
}
