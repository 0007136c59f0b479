import SQLDatabase

extension Schema {
  /// Version 16: what is kept of feedback and outcomes is counted for each hub.
  @Sendable static func addHubRetention(_ connection: any SQLConnection) throws {
    for sql in [
      // Rises by one with each row of a hub, so that its oldest are found without counting.
      "ALTER TABLE feedback ADD COLUMN number \(connection.dialect.integer) NOT NULL DEFAULT 0",
      """
      UPDATE feedback SET number = numbered.number FROM (
        SELECT id, ROW_NUMBER() OVER (PARTITION BY hub ORDER BY id) AS number FROM feedback
      ) AS numbered WHERE numbered.id = feedback.id
      """,
      "CREATE INDEX feedback_number ON feedback (hub, number)",
      """
      CREATE INDEX notification_kept_hub ON notification (hub, kept_at, kept_rows)
      WHERE kept_at IS NOT NULL
      """,
    ] { try connection.execute(sql) }
  }
}
