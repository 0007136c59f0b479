import Foundation
import HubCore

/// Counts what the store holds, and no more often than is cheap, however many ask.
actor StoreTotalsReader {
  /// How long an answer counts at least, in seconds; longer where it takes long to count.
  static let life = 2.0
  /// So many times the time that it took to count.
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

  /// `nil` when the store cannot be read.
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
