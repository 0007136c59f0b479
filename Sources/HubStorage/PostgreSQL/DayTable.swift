import HubCore
import SQLDatabase

/// A table partitioned by day (UTC), so that expired rows are dropped with their partition:
/// deleting them leaves vacuum as much work as writing them did.
///
/// The node that clears creates the partitions of the coming days. Rows of a day without a
/// partition (no node ran in time, or they were moved here) are in a default partition and are
/// deleted one by one: no INSERT fails because a partition is missing.
struct DayTable {
  let name: String
  /// The column that determines the day of a row, and the number of its values in a day.
  let column: String
  let length: Int64

  /// Partitioned by the day of the notification, so that all rows of a notification are in one.
  static let failures = DayTable(name: "notification_failure", column: "day", length: 1)
  static let feedback = DayTable(name: "feedback", column: "hour", length: 24)

  /// The length of a day.
  static let milliseconds: Int64 = 86_400_000
  private static let daysAhead: Int64 = 3

  var rest: String { name + "_rest" }
  func part(_ day: Int64) -> String { "\(name)_\(day)" }

  var makingRest: String { "CREATE TABLE \(rest) PARTITION OF \(name) DEFAULT" }

  /// Attached instead of created as a partition: that would wait for every user of the table.
  fileprivate func making(_ day: Int64) -> String {
    """
    CREATE TABLE \(part(day)) (LIKE \(name) INCLUDING ALL);
    ALTER TABLE \(name) ATTACH PARTITION \(part(day))
      FOR VALUES FROM (\(day * length)) TO (\((day + 1) * length))
    """
  }

  fileprivate static func daysAhead(of time: Int64) -> ClosedRange<Int64> {
    let today = time / milliseconds
    return today...today + daysAhead
  }
}

/// Creates and drops the partitions of a ``DayTable``.
struct DayPartitions: PostgresSubject {
  let session: PostgresSession

  init(_ session: PostgresSession) { self.session = session }

  /// The days that have a partition of their own, the earliest first.
  func days(of table: DayTable) throws -> [Int64] {
    try connection.numbers(
      """
      SELECT substring(c.relname from '[0-9]+$')::int8 AS day
      FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent = '\(table.name)'::regclass AND c.relname <> '\(table.rest)' ORDER BY day
      """)
  }

  /// Sets a short lock timeout. Dropping or attaching a partition waits for others, and blocks
  /// those behind it meanwhile.
  func waitBriefly() throws { try connection.execute("SET LOCAL lock_timeout = '200ms'") }

  /// The next step in SQL to create the partitions of the coming days and to drop old feedback;
  /// `nil` when all is done.
  /// - Parameter time: Milliseconds since 1970.
  func nextDayStep(at time: Int64) throws -> String? {
    guard time > 0 else { return nil }
    let days = try days(of: .feedback)
    let hour = time / 3_600_000 - Int64(HandleFeedback.lifetime / 3_600)
    if let day = days.first, (day + 1) * DayTable.feedback.length <= hour {
      return "DROP TABLE \(DayTable.feedback.part(day))"
    }
    let rest = DayTable.feedback.rest
    let old = "SELECT id FROM \(rest) WHERE hour < \(hour) ORDER BY hour, id LIMIT 2000"
    if try first(old) != nil {
      return "DELETE FROM \(rest) WHERE hour < \(hour) AND id = ANY(ARRAY(\(old)))"
    }
    for (table, known) in [(.failures, try self.days(of: .failures)), (DayTable.feedback, days)] {
      for day in DayTable.daysAhead(of: time) where !known.contains(day) {
        // The partition can no longer be created when the default one has rows of that day.
        let row = try first(
          """
          SELECT 1 FROM \(table.rest) WHERE \(table.column) >= ?1 AND \(table.column) < ?2 LIMIT 1
          """, day * table.length, (day + 1) * table.length)
        if row == nil { return table.making(day) }
      }
    }
    return nil
  }
}
