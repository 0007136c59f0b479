package import Foundation
package import NotificationHubs

/// How fine statistics are kept.
package enum StatisticPeriod: Int64, CaseIterable, Sendable {
  /// For a day.
  case minute = 0
  /// For a year.
  case hour = 1

  /// In seconds.
  package var length: Int { self == .minute ? 60 : 3_600 }

  /// Before this time nothing is sure to be kept. Whole hours, so that minutes are cleared away by
  /// the hour.
  package func limit(asOf now: Date) -> Date {
    let hour = (now.timeIntervalSince1970 / 3_600).rounded(.down) * 3_600
    return Date(timeIntervalSince1970: hour - (self == .minute ? 86_400 : 366 * 86_400))
  }
}

/// Steps of equal length, as a reader of statistics asks for them.
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

/// What has happened in one step.
package struct StatisticPoint: Hashable, Sendable {
  package struct Key: Hashable, Sendable {
    package let platform: PushPlatform
    package let outcome: NotificationOutcome
    package init(_ platform: PushPlatform, _ outcome: NotificationOutcome) {
      self.platform = platform
      self.outcome = outcome
    }
  }

  /// Notifications.
  package var accepted: Int
  /// Targets.
  package var outcomes: [Key: Int]
  /// Registrations at the step's end; those that there are none of are left out.
  package var registrations: [PushPlatform: Int]

  package init(
    accepted: Int = 0, outcomes: [Key: Int] = [:], registrations: [PushPlatform: Int] = [:]
  ) {
    self.accepted = accepted
    self.outcomes = outcomes
    self.registrations = registrations
  }
}

/// What a store holds at a moment, whichever process has put it there.
package struct StoreTotals: Hashable, Sendable {
  /// Notifications whose time has come and whose state is not final.
  package var unfinished: Int
  /// Notifications that wait for their time.
  package var scheduled: Int
  /// Targets that wait for another try.
  package var retries: Int
  /// Handles of which a push service has said that they are dead or replaced, as long as that is
  /// kept.
  package var feedback: Int
  /// Native ones and those with a template.
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

/// What has happened in hubs, added up by the minute and the hour.
///
/// ``NotificationStore/accept(_:)`` and ``WorkStore/checkpoint(_:)`` add their counts in their own
/// transactions, under the minute of their time: what telemetry counts is counted here, whatever
/// ends the process. Several nodes on one database keep a row each, which reading adds up.
package protocol StatisticsStore: Sendable {
  /// - Returns: One point for each step.
  func statistics(_ span: StatisticSpan, hub: Hub.ID) async throws -> [StatisticPoint]
  /// Counts what it holds. That costs as much as there is of it: who asks often keeps the answer
  /// for a while.
  func totals() async throws -> StoreTotals
  /// Notes how many registrations of which platform every hub has now, native and template, where
  /// that has changed.
  func noteRegistrations(at: Date) async throws
  /// Deletes some of what is older than ``StatisticPeriod/limit(asOf:)``. A call does little, in a
  /// transaction of its own.
  /// - Returns: `true` when there may be more.
  func clearStatistics(asOf now: Date) async throws -> Bool
}
