import HubCore
import SQLDatabase

/// Transaction numbers mean something in the cluster (a PostgreSQL server's data directory) that has
/// given them out. After `pg_dump` and `pg_restore` into another they may lie in its future: what
/// was written before the dump would count as written after everything, and no dead handle leave.
extension PostgresSchema {
  /// The oldest number that a transaction can have.
  private static let oldest = "'3'::xid8"

  /// Where the database has come to another cluster, lets its rows count as written before all that
  /// happens there. Interrupted, it goes on with the next opening: the cluster is noted last.
  static func settle(_ connection: PostgresConnection, _ slots: DeviceSlots) throws {
    guard let here = try cluster(of: connection) else { return }
    let known = try connection.numbers("SELECT cluster FROM store_state WHERE cluster IS NOT NULL")
    if known.first == here { return }
    if !known.isEmpty { try freeze(connection, slots) }
    try connection.change("UPDATE store_state SET cluster = ?1", here)
  }

  /// - Returns: `nil` where the database's user may not know.
  private static func cluster(of connection: PostgresConnection) throws -> Int64? {
    do {
      return try connection.numbers("SELECT system_identifier FROM pg_control_system()").first
    } catch let error as SQLError where error.kind == .notAllowed {
      return nil
    }
  }

  /// A transaction for each table of devices. Numbers that the cluster has given out already do no
  /// harm: their transactions are over.
  private static func freeze(_ connection: PostgresConnection, _ slots: DeviceSlots) throws {
    for table in 0..<slots.tableCount {
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
    try connection.change(
      """
      UPDATE notification SET audience_snapshot = pg_current_snapshot()::text
      WHERE ended_at IS NULL AND audience_snapshot IS NOT NULL
      """)
  }
}
