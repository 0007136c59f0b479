/// What a store has done since it was opened.
package struct StoreStatistics: Hashable, Sendable {
  /// From the start of a transaction until it is on the disk, in seconds.
  package var commits = Histogram.quick
  /// How many pieces of work shared a transaction.
  package var batches = Histogram.batches

  package init() {}
}
