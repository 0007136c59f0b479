package import Foundation

/// Deletes expired data of a store, a little at a time, and records statistics once a minute.
package struct StoreMaintenance: Sendable {
  package typealias Cleared = StoreUpkeep & NotificationStore & OutcomeStore & ActivityStore
    & StatisticsStore

  private let store: any Cleared
  private let clock: HubClock
  private let outcomes: OutcomeRetention
  private let notifications: TimeInterval?
  private let activity: ActivityRetention
  /// Reports a line for the operator.
  private let report: @Sendable (String) -> Void

  /// Time for which expired data is kept: clocks differ, and an app that comes a little late finds
  /// its registrations under their old numbers.
  package static let grace: TimeInterval = 3_600
  /// Pause between two checks.
  static let interval = Duration.seconds(60)
  /// Pause between two slices of a larger cleanup; other writes take precedence.
  static let pause = Duration.milliseconds(20)

  /// - Parameter notifications: Time for which a notification is kept after its end, in seconds;
  ///   `nil` keeps it forever.
  package init(
    store: any Cleared, clock: HubClock, outcomes: OutcomeRetention = OutcomeRetention(),
    notifications: TimeInterval? = 30 * 86_400,
    activity: ActivityRetention = ActivityRetention(),
    report: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    self.store = store
    self.clock = clock
    self.outcomes = outcomes
    self.notifications = notifications
    self.activity = activity
    self.report = report
  }

  /// Works until its task is cancelled or the store is closed.
  package func run() async {
    var lastFault: String?
    var clearedHour: Date?
    while !Task.isCancelled {
      do {
        let now = clock.now()
        try await store.noteRegistrations(at: now)
        let hour = StatisticPeriod.minute.limit(asOf: now)
        if clearedHour != hour {
          while try await store.clearStatistics(asOf: now) { try await clock.sleep(Self.pause) }
          clearedHour = hour
        }
        let limit = now.addingTimeInterval(-Self.grace)
        while try await store.clear(expiredBy: limit) { try await clock.sleep(Self.pause) }
        let oldest = now.addingTimeInterval(-outcomes.lifetime)
        while try await store.clearOutcomes(before: oldest, keeping: outcomes.limit) {
          try await clock.sleep(Self.pause)
        }
        if let notifications {
          let ended = now.addingTimeInterval(-notifications)
          while try await store.clearNotifications(endedBefore: ended) {
            try await clock.sleep(Self.pause)
          }
        }
        let firstLine = activity.lifetime.map { now.addingTimeInterval(-$0) }
        while try await store.clearActivity(before: firstLine, keeping: activity.limit) {
          try await clock.sleep(Self.pause)
        }
        lastFault = nil
      } catch is CancellationError {
        return
      } catch StoreError.closed {
        return
      } catch {
        // One report is enough for a disk that stays full.
        let fault = "cannot note statistics or clear the store of what has expired: \(error)"
        if fault != lastFault { report(fault) }
        lastFault = fault
      }
      do { try await clock.sleep(Self.interval) } catch { return }
    }
  }
}
