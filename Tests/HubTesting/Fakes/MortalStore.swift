package import Foundation
package import HubCore
package import NotificationHubs

/// What a process sees of a store until it is killed: after ``die()`` no call of its gets through,
/// and none is under way, while the store itself lives on for the next process.
package actor MortalStore: HubStore {
  private let store: any HubStore
  private var isDead = false
  private var underWay = 0
  private var remaining: Int?
  private var refusal: (remaining: Int, error: StoreError)?

  package init(_ store: any HubStore) { self.store = store }

  package func die() async {
    isDead = true
    while underWay > 0 { await Task.yield() }
  }

  /// As ``die()``, once so many more calls have begun.
  package func die(afterCalls count: Int) { remaining = count }

  /// Refuses one call: the next for 0, the one after that for 1, and so on.
  package func refuse(call number: Int, with error: StoreError) { refusal = (number, error) }

  func ask<Value: Sendable>(
    _ call: @Sendable (any HubStore) async throws -> Value
  ) async throws -> Value {
    if let left = remaining {
      remaining = left - 1
      if left <= 0 { isDead = true }
    }
    if isDead { throw StoreError.closed }
    if let (left, error) = refusal {
      refusal = left > 0 ? (left - 1, error) : nil
      if left == 0 { throw error }
    }
    underWay += 1
    defer { underWay -= 1 }
    return try await call(store)
  }

  package func hubs() async throws -> [Hub] { try await ask { try await $0.hubs() } }
  package func hub(named name: String) async throws -> Hub? {
    try await ask { try await $0.hub(named: name) }
  }
  package func createHub(
    named name: String, _ contents: HubContents, at: Date
  ) async throws -> Hub {
    try await ask { try await $0.createHub(named: name, contents, at: at) }
  }
  package func updateHub(
    _ id: Hub.ID, _ contents: HubContents, at: Date
  ) async throws -> Hub {
    try await ask { try await $0.updateHub(id, contents, at: at) }
  }
  package func deleteHub(named name: String) async throws -> Bool {
    try await ask { try await $0.deleteHub(named: name) }
  }
  package func clear(expiredBy limit: Date) async throws -> Bool {
    try await ask { try await $0.clear(expiredBy: limit) }
  }
  package func clearNotifications(endedBefore limit: Date) async throws -> Bool {
    try await ask { try await $0.clearNotifications(endedBefore: limit) }
  }
  package func accessPolicies(hub: Hub.ID?) async throws -> [AccessPolicy] {
    try await ask { try await $0.accessPolicies(hub: hub) }
  }
  package func putAccessPolicy(_ policy: AccessPolicy, hub: Hub.ID?) async throws {
    try await ask { try await $0.putAccessPolicy(policy, hub: hub) }
  }
  package func deleteAccessPolicy(named name: String, hub: Hub.ID?) async throws -> Bool {
    try await ask { try await $0.deleteAccessPolicy(named: name, hub: hub) }
  }
  package func credentials(hub: Hub.ID) async throws -> [PushCredential] {
    try await ask { try await $0.credentials(hub: hub) }
  }
  package func putCredential(_ credential: PushCredential, hub: Hub.ID) async throws {
    try await ask { try await $0.putCredential(credential, hub: hub) }
  }
  package func deleteCredential(_ platform: PushPlatform, hub: Hub.ID) async throws -> Bool {
    try await ask { try await $0.deleteCredential(platform, hub: hub) }
  }
  package func statistics() async -> StoreStatistics {
    (try? await ask { await $0.statistics() }) ?? StoreStatistics()
  }
  package func condition() async -> StoreCondition {
    let condition = try? await ask { await $0.condition() }
    return condition ?? .unavailable(reason: "the store is closed")
  }
  package func directoryVersion() async throws -> Int {
    try await ask { try await $0.directoryVersion() }
  }
  package func installation(_ id: String, hub: Hub.ID) async throws -> Installation? {
    try await ask { try await $0.installation(id, hub: hub) }
  }
  package func putInstallation(
    _ installation: Installation, registrations: [RegistrationDraft], hub: Hub.ID, at: Date
  ) async throws {
    try await ask {
      try await $0.putInstallation(installation, registrations: registrations, hub: hub, at: at)
    }
  }
  package func updateInstallation(
    _ id: String, hub: Hub.ID, at: Date,
    change: @escaping @Sendable (Installation) throws -> (Installation, [RegistrationDraft])
  ) async throws -> Bool {
    try await ask { try await $0.updateInstallation(id, hub: hub, at: at, change: change) }
  }
  package func deleteInstallation(_ id: String, hub: Hub.ID) async throws -> Bool {
    try await ask { try await $0.deleteInstallation(id, hub: hub) }
  }
  package func installations(
    hub: Hub.ID, after: String?, limit: Int
  ) async throws -> [Installation] {
    try await ask { try await $0.installations(hub: hub, after: after, limit: limit) }
  }
  package func targets(
    _ query: AudienceQuery, after: RegistrationID, limit: Int
  ) async throws -> TargetPage {
    try await ask { try await $0.targets(query, after: after, limit: limit) }
  }
  package func count(_ query: AudienceQuery) async throws -> Int {
    try await ask { try await $0.count(query) }
  }
  package func notification(
    _ id: NotificationID, hub: Hub.ID
  ) async throws -> NotificationRecord? {
    try await ask { try await $0.notification(id, hub: hub) }
  }
  package func unfinishedNotifications() async throws -> FoundNotifications {
    try await ask { try await $0.unfinishedNotifications() }
  }
  package func checkpoint(_ checkpoint: Checkpoint) async throws {
    try await ask { try await $0.checkpoint(checkpoint) }
  }
  package func dueRetries(
    of lane: LaneKey, asOf now: Date, limit: Int
  ) async throws -> [DueRetries] {
    try await ask { try await $0.dueRetries(of: lane, asOf: now, limit: limit) }
  }
  package func nextRetry(of lane: LaneKey) async throws -> Date? {
    try await ask { try await $0.nextRetry(of: lane) }
  }
  package func retryLanes() async throws -> [LaneKey: Date] {
    try await ask { try await $0.retryLanes() }
  }
  package func retries(
    of lane: LaneKey, notification: NotificationID, limit: Int
  ) async throws -> [DueRetries] {
    try await ask { try await $0.retries(of: lane, notification: notification, limit: limit) }
  }
  package func waitingRetries(_ id: NotificationID, hub: Hub.ID) async throws -> Int {
    try await ask { try await $0.waitingRetries(id, hub: hub) }
  }
  package func failures(
    _ id: NotificationID, hub: Hub.ID, after: RegistrationID, limit: Int
  ) async throws -> [Checkpoint.Failure] {
    try await ask { try await $0.failures(id, hub: hub, after: after, limit: limit) }
  }
  package func close() async throws { try await ask { try await $0.close() } }
}
