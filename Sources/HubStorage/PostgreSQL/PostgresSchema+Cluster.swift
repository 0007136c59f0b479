import HubCore
import SQLDatabase

/// Transaction numbers are meaningful only in the cluster (a PostgreSQL server's data directory)
/// that has assigned them. After `pg_dump` and `pg_restore` into another, or after the promotion of
/// a logical replica, they may be in the future: earlier writes would count as later than
/// everything, and dead handles would never be removed.
extension PostgresSchema {
  /// The lowest transaction number.
  private static let oldest = "'3'::xid8"

  /// When the database has come to another cluster, makes its rows count as written before
  /// everything that happens there. The cluster is recorded last, so that an interrupted run is
  /// repeated at the next opening.
  static func settle(_ connection: PostgresConnection, _ slots: DeviceSlots) throws {
    guard let here = try cluster(of: connection) else { return }
    let known = try connection.numbers("SELECT cluster FROM store_state WHERE cluster IS NOT NULL")
    if known.first == here { return }
    if known.isEmpty { return try note(here, connection) }
    // Its statements rewrite whole tables and may take long.
    _ = try connection.withoutAnswerLimit { try adopt(connection, slots) }
  }

  /// As ``PostgresHubStore/adoptServer()``, each table in a transaction of its own.
  static func adopt(
    _ connection: any SQLConnection, _ slots: DeviceSlots
  ) throws -> (registrations: Int, notifications: Int) {
    var registrations = 0
    for table in 0..<slots.tableCount { registrations += try freeze(table, connection) }
    let notifications = try connection.change(
      """
      UPDATE notification SET audience_snapshot = pg_current_snapshot()::text
      WHERE ended_at IS NULL AND audience_snapshot IS NOT NULL
      """)
    if let here = try cluster(of: connection) { try note(here, connection) }
    return (registrations, notifications)
  }

  /// - Returns: `nil` where the database's user lacks the permission.
  static func cluster(of connection: any SQLConnection) throws -> Int64? {
    let may = try connection.numbers(
      "SELECT has_function_privilege('pg_control_system()', 'EXECUTE')::int4")
    guard may == [1] else { return nil }
    return try connection.numbers("SELECT system_identifier FROM pg_control_system()").first
  }

  private static func note(_ cluster: Int64, _ connection: any SQLConnection) throws {
    try connection.change("UPDATE store_state SET cluster = ?1", cluster)
  }

  /// Numbers that the cluster has already assigned are harmless, because their transactions are
  /// over.
  private static func freeze(_ table: Int, _ connection: any SQLConnection) throws -> Int {
    try connection.change(
      """
      UPDATE registration_\(table) SET
        confirmed = CASE WHEN confirmed > pg_current_xact_id() THEN \(oldest) ELSE confirmed END,
        written = CASE WHEN written > pg_current_xact_id() THEN \(oldest) ELSE written END,
        shared_at = CASE WHEN shared_at > pg_current_xact_id() THEN \(oldest) ELSE shared_at END
      WHERE confirmed > pg_current_xact_id() OR written > pg_current_xact_id()
        OR shared_at > pg_current_xact_id()
      """)
  }
}
