import HubCore
import SQLDatabase

extension Schema {
  /// Version 7: how often and when a push was tried, what was said to a try that was not the last,
  /// and how long all that is kept.
  @Sendable static func addOutcomes(_ connection: any SQLConnection) throws {
    let type = connection.dialect
    for sql in [
      // `kept` is an `OutcomeKeeping`; `kept_rows` counts what of the notification is in
      // notification_failure, `kept_at` says when the last came; it is null when there is none.
      // `last_registration` is that of store_state when the notification was accepted.
      "ALTER TABLE notification ADD COLUMN kept \(type.integer)",
      "ALTER TABLE notification ADD COLUMN kept_rows \(type.integer) NOT NULL DEFAULT 0",
      "ALTER TABLE notification ADD COLUMN kept_at \(type.integer)",
      "ALTER TABLE notification ADD COLUMN kept_cleared \(type.integer) NOT NULL DEFAULT 0",
      "ALTER TABLE notification ADD COLUMN last_registration \(type.integer)",
      """
      UPDATE notification SET kept_at = COALESCE(ended_at, enqueued_at), kept_rows =
        (SELECT COUNT(*) FROM notification_failure WHERE notification = notification.id)
      WHERE id IN (SELECT notification FROM notification_failure)
      """,
      """
      CREATE INDEX notification_kept ON notification (kept_at, kept_rows)
      WHERE kept_at IS NOT NULL
      """,
      "ALTER TABLE notification_failure ADD COLUMN at \(type.integer)",
      "ALTER TABLE notification_failure ADD COLUMN attempts \(type.integer) NOT NULL DEFAULT 0",
      "ALTER TABLE retry ADD COLUMN outcome \(type.integer)",
      "ALTER TABLE retry ADD COLUMN status \(type.integer)",
      "ALTER TABLE retry ADD COLUMN reason TEXT",
    ] { try connection.execute(sql) }
  }
}

extension OutcomeKeeping {
  /// The number in the column `kept`; never changes.
  var code: Int64 {
    switch self {
    case .none: 0
    case .failures: 1
    case .all: 2
    }
  }

  /// - Returns: `nil` for a number that a newer build has written.
  init?(code: Int64) {
    guard let found = Self.allCases.first(where: { $0.code == code }) else { return nil }
    self = found
  }
}
