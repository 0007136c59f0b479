import Foundation
import HubCore

/// Counts the contents of the store, no more often than is cheap, regardless of the number of
/// readers.
actor StoreTotalsReader {
  /// The minimum time for which a result is reused, in seconds; longer if counting takes long.
  static let life = 2.0
  /// The reuse time as a multiple of the time that counting took.
  private static let share = 20.0
  private static let longestLife = 60.0

  private let store: any StatisticsStore
  private let clock: HubClock
  private var known: (totals: StoreTotals?, until: Date)?
  private var counting: Task<StoreTotals?, Never>?

  init(store: any StatisticsStore, clock: HubClock) {
    self.store = store
    self.clock = clock
  }

  /// The totals; `nil` if the store cannot be read.
  func totals() async -> StoreTotals? {
    if let known, clock.steady() < known.until { return known.totals }
    if let counting { return await counting.value }
    let began = ContinuousClock.now
    let task = Task { [store] in try? await store.totals() }
    counting = task
    let totals = await task.value
    counting = nil
    let cost = (ContinuousClock.now - began) / .seconds(1)
    let life = min(max(Self.life, cost * Self.share), Self.longestLife)
    known = (totals, clock.steady().addingTimeInterval(life))
    return totals
  }
}
