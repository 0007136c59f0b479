package import Foundation
package import HubCore
import NotificationHubs
import SQLDatabase

/// The statistics that a transaction adds, written once with its commit.
struct StatisticTally {
  struct Count: Hashable {
    let hub: Hub.ID
    /// Milliseconds since 1970, of a whole minute.
    let at: Int64
    /// 0 for counts without a platform.
    let platform: Int64
    /// ``accepted``, or the code of an outcome.
    let code: Int64
  }

  struct Place: Hashable {
    let hub: Hub.ID
    let platform: Int64
  }

  /// The column `code` of accepted notifications. Codes of outcomes are 0 or more.
  static let accepted: Int64 = -1

  private(set) var counts: [Count: Int] = [:]
  /// Change in the number of registrations.
  private(set) var registrations: [Place: Int] = [:]

  var isEmpty: Bool { counts.isEmpty && registrations.isEmpty }

  mutating func add(_ number: Int, hub: Hub.ID, at: Int64, platform: Int64 = 0, code: Int64) {
    let minute = Int64(StatisticPeriod.minute.length) * 1_000
    let key = Count(
      hub: hub, at: at - ((at % minute) + minute) % minute, platform: platform, code: code)
    counts[key, default: 0] += number
  }

  mutating func addRegistrations(_ number: Int, hub: Hub.ID, platform: Int64) {
    registrations[Place(hub: hub, platform: platform), default: 0] += number
  }
}

/// The counts of a transaction.
struct StatisticsWriter: WritingSubject {
  let session: WriteSession

  init(_ session: WriteSession) { self.session = session }

  /// Writes the counts of the transaction: a few rows, however many units of work share it.
  func writeStatistics() throws {
    guard !session.tally.isEmpty else { return }
    let count = try connection.statement(
      """
      INSERT INTO statistic_count (hub, period, at, platform, code, total)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (hub, period, at, platform, code)
      DO UPDATE SET total = statistic_count.total + excluded.total
      """)
    for (key, total) in session.tally.counts where total != 0 {
      for period in StatisticPeriod.allCases {
        try count.run(
          key.hub, period.rawValue, key.at / (Int64(period.length) * 1_000), key.platform,
          key.code, Int64(total))
      }
    }
    let registration = try connection.statement(
      """
      INSERT INTO registration_total (hub, platform, total) VALUES (?1, ?2, ?3)
      ON CONFLICT (hub, platform)
      DO UPDATE SET total = registration_total.total + excluded.total
      """)
    for (place, change) in session.tally.registrations where change != 0 {
      try registration.run(place.hub, place.platform, Int64(change))
    }
    session.tally = StatisticTally()
  }
}

extension SubjectWriting {
  fileprivate func note(_ gauges: [Gauge], at: Int64) throws {
    let row = try sql.statement(
      """
      INSERT INTO statistic_gauge (hub, period, platform, at, total) VALUES (?1, ?2, ?3, ?4, ?5)
      ON CONFLICT (hub, period, platform, at) DO UPDATE SET total = excluded.total
      """)
    for gauge in gauges where try hasHub(gauge.place.hub) {
      for period in StatisticPeriod.allCases {
        try row.run(
          gauge.place.hub, period.rawValue, gauge.place.platform,
          at / (Int64(period.length) * 1_000), gauge.total)
      }
    }
  }
}

/// Stored statistics.
struct StatisticsTable {
  let connection: any SQLConnection

  init(_ connection: any SQLConnection) { self.connection = connection }

  fileprivate func clear(_ due: OldStatistics) throws {
    // An hour's rows at a time, however long ago the last clearing was.
    let first = try connection.statement(
      "SELECT MIN(at) FROM statistic_count WHERE hub = ?1 AND period = ?2", due.hub,
      due.period.rawValue)
    if try first.step(), let end = first.optionalInteger(0) {
      try connection.change(
        "DELETE FROM statistic_count WHERE hub = ?1 AND period = ?2 AND at < ?3", due.hub,
        due.period.rawValue, min(end + 60, due.limit))
    }
    for platform in PushPlatform.allCases {
      // The last one before the limit tells how many there were from then on.
      try connection.change(
        """
        DELETE FROM statistic_gauge WHERE hub = ?1 AND period = ?2 AND platform = ?3
          AND at < (SELECT MAX(at) FROM statistic_gauge
            WHERE hub = ?1 AND period = ?2 AND platform = ?3 AND at < ?4)
        """, due.hub, due.period.rawValue, platform.code, due.limit)
    }
  }
}

private struct Gauge {
  let place: StatisticTally.Place
  let total: Int64
}

/// A hub with rows to be cleared.
private struct OldStatistics {
  let hub: Hub.ID
  let period: StatisticPeriod
  /// In periods since 1970.
  let limit: Int64
}

extension SubjectStore {
  package func statistics(_ span: StatisticSpan, hub: Hub.ID) async throws -> [StatisticPoint] {
    try await reading(#function) { session in
      guard try session.hasHub(hub) else { throw StoreError.noHub }
      var points = try StatisticsTable(session.sql).counts(span, hub: hub)
      try StatisticsTable(session.sql).addRegistrations(to: &points, span, hub: hub)
      return points
    }
  }

  package func totals() async throws -> StoreTotals {
    try await reading(#function) { session in
      func count(_ rows: String) throws -> Int {
        Int(try session.sql.numbers("SELECT COUNT(*) FROM \(rows)").first ?? 0)
      }
      var totals = StoreTotals(
        unfinished: try count("notification WHERE ended_at IS NULL AND state <> 'Scheduled'"),
        scheduled: try count("notification WHERE state = 'Scheduled'"),
        retries: try count("retry"), feedback: try count("feedback"))
      let rows = try session.sql.statement(
        """
        SELECT platform, CAST(SUM(total) AS \(session.sql.dialect.integer)) FROM registration_total
        GROUP BY platform
        """)
      while try rows.step() {
        totals.registrations[try PushPlatform(code: rows.integer(0))] = Int(rows.integer(1))
      }
      return totals
    }
  }

  package func noteRegistrations(at: Date) async throws {
    let changed = try await reading(#function) {
      try StatisticsTable($0.sql).changedRegistrations()
    }
    guard !changed.isEmpty else { return }
    try await writing(#function) { try $0.note(changed, at: at.milliseconds) }
  }

  package func clearStatistics(asOf now: Date) async throws -> Bool {
    let old = try await reading(#function) { try StatisticsTable($0.sql).oldStatistics(asOf: now) }
    guard let due = old else { return false }
    try await writing(#function) { try StatisticsTable($0.sql).clear(due) }
    return true
  }
}

extension StatisticsTable {
  fileprivate func counts(_ span: StatisticSpan, hub: Hub.ID) throws -> [StatisticPoint] {
    var points = Array(repeating: StatisticPoint(), count: span.count)
    let row = try connection.statement(
      """
      SELECT (at - ?3) / ?5 AS step, platform, code, CAST(SUM(total) AS BIGINT)
      FROM statistic_count
      WHERE hub = ?1 AND period = ?2 AND at >= ?3 AND at < ?4 GROUP BY step, platform, code
      """, hub, span.period.rawValue, span.first, span.end, span.step)
    while try row.step() {
      guard let index = Int(exactly: row.integer(0)), points.indices.contains(index) else {
        continue
      }
      let total = Int(row.integer(3))
      if row.integer(2) == StatisticTally.accepted {
        points[index].accepted += total
      } else {
        let key = StatisticPoint.Key(
          try PushPlatform(code: row.integer(1)), NotificationOutcome(code: row.integer(2)))
        points[index].outcomes[key, default: 0] += total
      }
    }
    return points
  }

  fileprivate func addRegistrations(
    to points: inout [StatisticPoint], _ span: StatisticSpan, hub: Hub.ID
  ) throws {
    for platform in PushPlatform.allCases {
      var current = try lastGauge(
        hub: hub, span.period, platform: platform.code, before: span.first)
      var next = 0
      func fill(to index: Int) {
        while next < min(index, points.count) {
          if let current, current > 0 { points[next].registrations[platform] = Int(current) }
          next += 1
        }
      }
      let row = try connection.statement(
        """
        SELECT at, total FROM statistic_gauge
        WHERE hub = ?1 AND period = ?2 AND platform = ?3 AND at >= ?4 AND at < ?5 ORDER BY at
        """, hub, span.period.rawValue, platform.code, span.first, span.end)
      while try row.step() {
        fill(to: Int((row.integer(0) - span.first) / span.step))
        current = row.integer(1)
      }
      fill(to: points.count)
    }
  }

  /// - Parameter end: In periods since 1970.
  private func lastGauge(
    hub: Hub.ID, _ period: StatisticPeriod, platform: Int64, before end: Int64
  ) throws -> Int64? {
    let row = try connection.statement(
      """
      SELECT total FROM statistic_gauge
      WHERE hub = ?1 AND period = ?2 AND platform = ?3 AND at < ?4 ORDER BY at DESC LIMIT 1
      """, hub, period.rawValue, platform, end)
    return try row.step() ? row.integer(0) : nil
  }

  fileprivate func changedRegistrations() throws -> [Gauge] {
    let gauges = try connection.rows(
      """
      SELECT hub, platform, total FROM registration_total JOIN hub ON hub.id = registration_total.hub
      """
    ) {
      Gauge(place: .init(hub: $0.integer(0), platform: $0.integer(1)), total: $0.integer(2))
    }
    return try gauges.filter { gauge in
      let last = try lastGauge(
        hub: gauge.place.hub, .minute, platform: gauge.place.platform, before: .max)
      return last ?? 0 != gauge.total
    }
  }

  fileprivate func oldStatistics(asOf now: Date) throws -> OldStatistics? {
    let hubs = try connection.numbers("SELECT id FROM hub")
    for period in StatisticPeriod.allCases {
      let limit = period.limit(asOf: now).milliseconds / (Int64(period.length) * 1_000)
      for hub in hubs {
        let due = OldStatistics(hub: hub, period: period, limit: limit)
        let count = try connection.statement(
          "SELECT 1 FROM statistic_count WHERE hub = ?1 AND period = ?2 AND at < ?3 LIMIT 1", hub,
          period.rawValue, limit)
        if try count.step() { return due }
        for platform in PushPlatform.allCases {
          let gauge = try connection.statement(
            """
            SELECT at FROM statistic_gauge
            WHERE hub = ?1 AND period = ?2 AND platform = ?3 AND at < ?4 LIMIT 2
            """, hub, period.rawValue, platform.code, limit)
          if try gauge.step(), try gauge.step() { return due }
        }
      }
    }
    return nil
  }
}

extension StatisticSpan {
  /// The end of the last step, in periods since 1970.
  fileprivate var end: Int64 { first + step * Int64(count) }
}
