package import Foundation

/// Deletes expired data of a store, a little at a time, and records statistics once a minute.
package struct StoreMaintenance: Sendable {
  package typealias Cleared = StoreUpkeep & NotificationStore & OutcomeStore & ActivityStore
    & StatisticsStore

  /// The retention of what the store keeps for a time.
  package struct Retention: Hashable, Sendable {
    package var outcomes = OutcomeRetention()
    /// Time for which a notification is kept after its end, in seconds; `nil` keeps it forever.
    package var notifications: TimeInterval? = 30 * 86_400
    package var texts = TextRetention.notification
    package var activity = ActivityRetention()

    package init() {}

    /// See ``HubLimits/keptText``.
    package var keptText: TimeInterval? {
      switch texts {
      case .off: 0
      case .time(let time): min(time, notifications ?? time)
      case .notification: notifications
      }
    }
  }

  private let store: any Cleared
  private let clock: HubClock
  private let retention: Retention
  /// Reports a line for the operator.
  private let report: @Sendable (String) -> Void

  /// Time for which expired data is kept: clocks differ, and an app that comes a little late finds
  /// its registrations under their old numbers.
  package static let grace: TimeInterval = 3_600
  /// Pause between two checks.
  static let interval = Duration.seconds(60)
  /// Pause between two slices of a larger cleanup; other writes take precedence.
  static let pause = Duration.milliseconds(20)

  package init(
    store: any Cleared, clock: HubClock, retention: Retention = Retention(),
    report: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    self.store = store
    self.clock = clock
    self.retention = retention
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
        let oldest = now.addingTimeInterval(-retention.outcomes.lifetime)
        while try await store.clearOutcomes(before: oldest, keeping: retention.outcomes.limit) {
          try await clock.sleep(Self.pause)
        }
        if let notifications = retention.notifications {
          let ended = now.addingTimeInterval(-notifications)
          while try await store.clearNotifications(endedBefore: ended) {
            try await clock.sleep(Self.pause)
          }
        }
        if let ended = retention.texts.limit(asOf: now) {
          while try await store.clearTexts(endedBefore: ended) {
            try await clock.sleep(Self.pause)
          }
        }
        let firstLine = retention.activity.lifetime.map { now.addingTimeInterval(-$0) }
        while try await store.clearActivity(before: firstLine, keeping: retention.activity.limit) {
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
