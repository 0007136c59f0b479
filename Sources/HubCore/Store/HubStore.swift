package import Foundation

/// Where hubs, devices and notifications live: all subjects of the store together, for `HubService`
/// and the places that put a server together. The dispatcher, the directory and the watches ask for
/// the subjects that they use. Every engine passes `HubStoreContract` unchanged.
///
/// Every writing call returns after its commit is durable; many callers' writes share one
/// transaction. All calls throw ``StoreError``.
///
/// Numbers of rows only rise and are never used twice, but may have gaps: an engine may give them
/// to its nodes in blocks.
package protocol HubStore: HubDirectoryStore, InstallationStore, RegistrationStore, AudienceStore,
  NotificationStore, WorkStore, OutcomeStore, FeedbackStore, JobStore, StatisticsStore,
  ActivityStore, OperatorSessionStore, SealStore, StoreUpkeep
{}

/// The store as a whole: its health, what it gives back, its end.
package protocol StoreUpkeep: Sendable {
  /// What all who work on the store tell the time by: the machine's clock, or the database's where
  /// machines share one, whose own may differ.
  var clock: HubClock { get }
  /// Deletes some of what is no longer visible: devices and registrations whose time was over
  /// by `limit`, and what deleted hubs have left behind. A call does little, in a transaction of
  /// its own, so that writers do not wait for it.
  /// - Returns: `true` when there may be more.
  func clear(expiredBy limit: Date) async throws -> Bool
  /// Whether work can be done now. Cheap to ask, and never throws: a store that is closed is
  /// ``StoreCondition/unavailable(reason:)``.
  func condition() async -> StoreCondition
  /// Does a part of a request that costs the processor much, in the turns of those who ask, as
  /// writes are done; on a thread of its own.
  /// - Parameter bytes: About how much it keeps in memory.
  /// - Throws: Also ``StoreError/busy``.
  func inTurn<Value: Sendable>(
    bytes: Int, _ work: @escaping @Sendable () throws -> Value
  ) async throws -> Value
  /// What it has done since it was opened.
  func statistics() async -> StoreStatistics
  /// Writes everything out and closes; later calls throw ``StoreError/closed``.
  func close() async throws
}

/// What a store has done since it was opened.
package struct StoreStatistics: Hashable, Sendable {
  /// From the start of a transaction until it is on the disk, in seconds.
  package var commits = Histogram.quick
  /// How many pieces of work shared a transaction.
  package var batches = Histogram.batches
  /// Pieces of work that wait for a thread now.
  package var waiting = 0
  /// Those that were refused because too much waited for their caller, by hub.
  package var refused: [Hub.ID: Int] = [:]
  /// Those whose caller had left before their turn came.
  package var dropped = 0

  package init() {}
}
