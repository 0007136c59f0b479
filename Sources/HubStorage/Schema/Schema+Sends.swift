import SQLDatabase

extension Schema {
  /// Version 3: direct and scheduled sends, keys of repeated ones, and what a failure is told with
  /// when its registration has gone.
  @Sendable static func addSends(_ connection: any SQLConnection) throws {
    let type = connection.dialect
    for sql in [
      "ALTER TABLE notification ADD COLUMN is_direct \(type.integer) NOT NULL DEFAULT 0",
      "ALTER TABLE notification ADD COLUMN due_at \(type.integer)",
      "CREATE INDEX notification_schedule ON notification (due_at) WHERE state = 'Scheduled'",
      // The devices that a direct send names, numbered from 1.
      """
      CREATE TABLE notification_target (
        notification \(type.integer) NOT NULL, number \(type.integer) NOT NULL,
        handle TEXT NOT NULL, is_duplicate \(type.integer) NOT NULL,
        PRIMARY KEY (notification, number)) \(type.clustered)
      """,
      """
      CREATE TABLE idempotency_key (
        hub \(type.integer) NOT NULL, name TEXT NOT NULL, fingerprint \(type.bytes) NOT NULL,
        notification TEXT NOT NULL, expires_at \(type.integer) NOT NULL,
        PRIMARY KEY (hub, name)) \(type.clustered)
      """,
      "CREATE INDEX idempotency_key_expiry ON idempotency_key (expires_at)",
      // Filled when the registration is removed with the failure; otherwise it still tells.
      "ALTER TABLE notification_failure ADD COLUMN platform \(type.integer)",
      "ALTER TABLE notification_failure ADD COLUMN handle TEXT",
      "ALTER TABLE notification_failure ADD COLUMN installation TEXT",
      "ALTER TABLE notification_failure ADD COLUMN public_id TEXT",
    ] {
      try connection.execute(sql)
    }
  }
}
