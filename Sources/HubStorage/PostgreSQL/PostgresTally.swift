import HubCore
import SQLDatabase

/// Sums that many writers add to: a row for each lane, which readers add up, so that no writer
/// waits for another's commit.
extension PostgresSession {
  /// Writes the counts of the transaction.
  func writeTally() throws {
    guard !tally.isEmpty else { return }
    // In a fixed order: two writers that share a lane then merely wait for each other.
    let registrations = tally.registrations.filter { $0.value != 0 }
      .sorted { ($0.key.hub, $0.key.platform) < ($1.key.hub, $1.key.platform) }
    if !registrations.isEmpty {
      try execute(
        """
        INSERT INTO registration_count (hub, platform, lane, total)
        SELECT hub, platform, ?1, total
        FROM unnest(?2::int8[], ?3::int2[], ?4::int8[]) AS new (hub, platform, total)
        ON CONFLICT (hub, platform, lane)
        DO UPDATE SET total = registration_count.total + excluded.total
        """, lane, PostgresArray.int8(registrations.map(\.key.hub)),
        PostgresArray.int2(registrations.map(\.key.platform)),
        PostgresArray.int8(registrations.map { Int64($0.value) }))
    }
    let counts = tally.counts.filter { $0.value != 0 }.sorted {
      ($0.key.hub, $0.key.at, $0.key.platform, $0.key.code)
        < ($1.key.hub, $1.key.at, $1.key.platform, $1.key.code)
    }
    for period in counts.isEmpty ? [] : StatisticPeriod.allCases {
      // Several minutes of one hour are summed into one row.
      var rows: [StatisticTally.Count: Int] = [:]
      for (key, total) in counts {
        let at = key.at / (Int64(period.length) * 1_000)
        rows[.init(hub: key.hub, at: at, platform: key.platform, code: key.code), default: 0] +=
          total
      }
      let sorted = rows.sorted {
        ($0.key.hub, $0.key.at, $0.key.platform, $0.key.code)
          < ($1.key.hub, $1.key.at, $1.key.platform, $1.key.code)
      }
      try execute(
        """
        INSERT INTO statistic_count (hub, period, at, platform, code, lane, total)
        SELECT hub, ?1, at, platform, code, ?2, total
        FROM unnest(?3::int8[], ?4::int8[], ?5::int2[], ?6::int2[], ?7::int8[])
          AS new (hub, at, platform, code, total)
        ON CONFLICT (hub, period, at, platform, code, lane)
        DO UPDATE SET total = statistic_count.total + excluded.total
        """, period.rawValue, lane, PostgresArray.int8(sorted.map(\.key.hub)),
        PostgresArray.int8(sorted.map(\.key.at)), PostgresArray.int2(sorted.map(\.key.platform)),
        PostgresArray.int2(sorted.map(\.key.code)),
        PostgresArray.int8(sorted.map { Int64($0.value) }))
    }
    tally = StatisticTally()
  }
}
