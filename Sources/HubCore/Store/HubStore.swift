package import Foundation

/// The store of hubs, devices and notifications: all subjects together, for `HubService` and the
/// assembly of a server. The dispatcher, the directory and the watches require only the subjects
/// that they use. Every engine passes `HubStoreContract` unchanged.
///
/// Every writing call returns after its commit is durable; many callers' writes share one
/// transaction. All calls throw ``StoreError``.
///
/// Numbers of rows only rise and are never used twice, but may have gaps: an engine may allocate
/// them to its nodes in blocks.
package protocol HubStore: HubDirectoryStore, InstallationStore, RegistrationStore, AudienceStore,
  NotificationStore, WorkStore, OutcomeStore, FeedbackStore, JobStore, StatisticsStore,
  ActivityStore, OperatorSessionStore, SealStore, StoreUpkeep
{}

/// The store as a whole: its health, its cleanup, its end.
package protocol StoreUpkeep: Sendable {
  /// The clock of all users of the store: the machine's, or the database's where machines share
  /// one, whose own clocks may differ.
  var clock: HubClock { get }
  /// Deletes some invisible data: devices and registrations that had expired by `limit`, and the
  /// remains of deleted hubs. A call does little, in a transaction of its own, so that writers do
  /// not wait for it.
  /// - Returns: `true` when there may be more.
  func clear(expiredBy limit: Date) async throws -> Bool
  /// Whether work can be done now. Cheap to call, and never throws: a store that is closed is
  /// ``StoreCondition/unavailable(reason:)``.
  func condition() async -> StoreCondition
  /// Runs a CPU-intensive part of a request in fair turns between callers, like writes; on a thread
  /// of its own.
  /// - Parameter bytes: Approximate memory that it keeps.
  /// - Throws: Also ``StoreError/busy``.
  func inTurn<Value: Sendable>(
    bytes: Int, _ work: @escaping @Sendable () throws -> Value
  ) async throws -> Value
  /// The statistics since it was opened.
  func statistics() async -> StoreStatistics
  /// Writes everything to disk and closes; later calls throw ``StoreError/closed``.
  func close() async throws
}

/// Statistics of a store since it was opened.
package struct StoreStatistics: Hashable, Sendable {
  /// Time from the start of a transaction until it is on the disk, in seconds.
  package var commits = Histogram.quick
  /// Number of units of work in a transaction.
  package var batches = Histogram.batches
  /// Number of units of work that are waiting for a thread now.
  package var waiting = 0
  /// Number of units that were refused because too much was waiting for their caller, by hub.
  package var refused: [Hub.ID: Int] = [:]
  /// Number of units whose caller had left before their turn.
  package var dropped = 0

  package init() {}
}
