package import Foundation
package import NotificationHubs

/// The resolutions of statistics.
package enum StatisticPeriod: Int64, CaseIterable, Sendable {
  /// Kept for a day.
  case minute = 0
  /// Kept for a year.
  case hour = 1

  /// In seconds.
  package var length: Int { self == .minute ? 60 : 3_600 }

  /// The time before which data may be missing. A whole hour, so that minutes are cleared by the
  /// hour.
  package func limit(asOf now: Date) -> Date {
    let hour = (now.timeIntervalSince1970 / 3_600).rounded(.down) * 3_600
    return Date(timeIntervalSince1970: hour - (self == .minute ? 86_400 : 366 * 86_400))
  }
}

/// Steps of equal length, as requested by a query for statistics.
package struct StatisticSpan: Hashable, Sendable {
  package let period: StatisticPeriod
  /// The start of the first step in periods since 1970.
  package let first: Int64
  /// The length of a step in periods.
  package let step: Int64
  package let count: Int

  package init(period: StatisticPeriod, first: Int64, step: Int64, count: Int) {
    self.period = period
    self.first = first
    self.step = step
    self.count = count
  }
}

/// The statistics of one step.
package struct StatisticPoint: Hashable, Sendable {
  package struct Key: Hashable, Sendable {
    package let platform: PushPlatform
    package let outcome: NotificationOutcome
    package init(_ platform: PushPlatform, _ outcome: NotificationOutcome) {
      self.platform = platform
      self.outcome = outcome
    }
  }

  /// Number of notifications.
  package var accepted: Int
  /// Number of targets by outcome.
  package var outcomes: [Key: Int]
  /// Number of registrations at the step's end; platforms without any are omitted.
  package var registrations: [PushPlatform: Int]

  package init(
    accepted: Int = 0, outcomes: [Key: Int] = [:], registrations: [PushPlatform: Int] = [:]
  ) {
    self.accepted = accepted
    self.outcomes = outcomes
    self.registrations = registrations
  }
}

/// The contents of a store at a moment, whichever process has written them.
package struct StoreTotals: Hashable, Sendable {
  /// Number of notifications that are due and whose state is not final.
  package var unfinished: Int
  /// Number of notifications that are not due yet.
  package var scheduled: Int
  /// Number of targets that wait for a retry.
  package var retries: Int
  /// Number of handles that a push service has reported dead or replaced, as long as the feedback
  /// is stored.
  package var feedback: Int
  /// Native registrations and those with a template.
  package var registrations: [PushPlatform: Int]

  package init(
    unfinished: Int = 0, scheduled: Int = 0, retries: Int = 0, feedback: Int = 0,
    registrations: [PushPlatform: Int] = [:]
  ) {
    self.unfinished = unfinished
    self.scheduled = scheduled
    self.retries = retries
    self.feedback = feedback
    self.registrations = registrations
  }
}

/// Statistics of hubs, summed by the minute and the hour.
///
/// ``NotificationStore/accept(_:)`` and ``WorkStore/checkpoint(_:)`` add their counts in their own
/// transactions, under the minute of their time: everything that telemetry counts is counted here,
/// even if the process crashes. Several nodes on one database have a row each, which readers add
/// up.
package protocol StatisticsStore: Sendable {
  /// - Returns: One point for each step.
  func statistics(_ span: StatisticSpan, hub: Hub.ID) async throws -> [StatisticPoint]
  /// Counts its contents. The cost is proportional to their number: frequent callers cache the
  /// result for a while.
  func totals() async throws -> StoreTotals
  /// Records the number of registrations by platform of every hub, native and template, where it
  /// has changed.
  func noteRegistrations(at: Date) async throws
  /// Deletes some data older than ``StatisticPeriod/limit(asOf:)``. A call does little, in a
  /// transaction of its own.
  /// - Returns: `true` when there may be more.
  func clearStatistics(asOf now: Date) async throws -> Bool
}
