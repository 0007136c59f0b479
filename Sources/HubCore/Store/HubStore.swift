package import Foundation
package import NotificationHubs

/// Where hubs, devices and notifications live. Every engine passes `HubStoreContract` unchanged.
///
/// Every writing call returns after its commit is durable; many callers' writes share one
/// transaction. All calls throw ``StoreError``.
package protocol HubStore: RegistrationStore, SendStore, JobStore, FeedbackStore,
  OutcomeStore, ExtensionStore, RemovalStore, StoreClearing
{
  // MARK: Hubs and access

  func hubs() async throws -> [Hub]
  /// Letter case aside.
  func hub(named name: String) async throws -> Hub?
  /// Creates the hub with its policies and credentials in one transaction.
  func createHub(named name: String, _ contents: HubContents, at: Date) async throws -> Hub
  /// Replaces what a hub holds of these in one transaction; its devices stay.
  /// - Returns: The hub as it is now.
  func updateHub(_ id: Hub.ID, _ contents: HubContents, at: Date) async throws -> Hub
  /// Deletes the hub with all its data.
  /// - Returns: `false` when there was none.
  func deleteHub(named name: String) async throws -> Bool
  /// The policies of a hub, or with `nil` those of the namespace, in the order of their creation.
  func accessPolicies(hub: Hub.ID?) async throws -> [AccessPolicy]
  /// Creates, or replaces the policy of that name.
  func putAccessPolicy(_ policy: AccessPolicy, hub: Hub.ID?) async throws
  /// - Returns: `false` when there was none.
  func deleteAccessPolicy(named name: String, hub: Hub.ID?) async throws -> Bool
  func credentials(hub: Hub.ID) async throws -> [PushCredential]
  /// Creates, or replaces the credential of that platform. Sealed at rest.
  func putCredential(_ credential: PushCredential, hub: Hub.ID) async throws
  /// - Returns: `false` when there was none.
  func deleteCredential(_ platform: PushPlatform, hub: Hub.ID) async throws -> Bool
  /// Rises whenever hubs, policies or credentials may have changed, so that what was read of them
  /// can be kept. Another process's changes may show some milliseconds late. Cheap to ask.
  func directoryVersion() async throws -> Int

  // MARK: Devices

  func installation(_ id: String, hub: Hub.ID) async throws -> Installation?
  /// Creates or replaces the installation and its derived registrations.
  func putInstallation(
    _ installation: Installation, registrations: [RegistrationDraft], hub: Hub.ID, at: Date
  ) async throws
  /// Reads, changes and writes an installation in one transaction; nothing is written when
  /// `change` throws. The etags of its registrations rise.
  /// - Returns: `false` when there is none (`change` was not called).
  func updateInstallation(
    _ id: String, hub: Hub.ID, at: Date,
    change: @escaping @Sendable (Installation) throws -> (Installation, [RegistrationDraft])
  ) async throws -> Bool
  /// - Returns: `false` when there was none.
  func deleteInstallation(_ id: String, hub: Hub.ID) async throws -> Bool
  /// Up to `limit` installations after the one with the given id, which may be gone, in an order
  /// of the store's own.
  func installations(hub: Hub.ID, after: String?, limit: Int) async throws -> [Installation]

  // MARK: Audience

  /// The next targets of a query after a registration number; at most `limit`.
  func targets(_ query: AudienceQuery, after: RegistrationID, limit: Int) async throws -> TargetPage
  func count(_ query: AudienceQuery) async throws -> Int

  // MARK: Notifications

  func notification(_ id: NotificationID, hub: Hub.ID) async throws -> NotificationRecord?
  /// Every notification whose time has come and whose state is not final, oldest first.
  func unfinishedNotifications() async throws -> FoundNotifications
  func checkpoint(_ checkpoint: Checkpoint) async throws
  /// A lane's retries due by `now`, the longest overdue first, grouped by notification; at most
  /// `limit` targets in all.
  func dueRetries(of lane: LaneKey, asOf now: Date, limit: Int) async throws -> [DueRetries]
  /// A notification's retries that wait for a lane, due or not, at most `limit`.
  /// - Throws: ``StoreError/noHub`` when the lane's hub is gone.
  func retries(
    of lane: LaneKey, notification: NotificationID, limit: Int
  ) async throws -> [DueRetries]
  /// When a lane's next retry is due; `nil` when none waits.
  func nextRetry(of lane: LaneKey) async throws -> Date?
  /// The lanes that retries wait for, and when the next of each is due. Looks at every waiting row.
  func retryLanes() async throws -> [LaneKey: Date]
  /// How many targets of a notification wait for a retry.
  func waitingRetries(_ id: NotificationID, hub: Hub.ID) async throws -> Int
  /// What went wrong for each device, in the order of the registrations; at most `limit`.
  func failures(
    _ id: NotificationID, hub: Hub.ID, after: RegistrationID, limit: Int
  ) async throws -> [Checkpoint.Failure]

  /// Whether work can be done now. Cheap to ask, and never throws: a store that is closed is
  /// ``StoreCondition/unavailable(reason:)``.
  func condition() async -> StoreCondition

  /// What it has done since it was opened.
  func statistics() async -> StoreStatistics

  /// Writes everything out and closes; later calls throw ``StoreError/closed``.
  func close() async throws
}
