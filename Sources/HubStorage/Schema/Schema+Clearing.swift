import SQLDatabase

extension Schema {
  /// Version 6: when installations end, and which hubs have left something behind.
  @Sendable static func addClearing(_ connection: any SQLConnection) throws {
    let type = connection.dialect
    for sql in [
      "ALTER TABLE installation ADD COLUMN expires_at \(type.integer)",
      // As its registrations have it, unless clients have changed one.
      """
      UPDATE installation SET expires_at =
        (SELECT MAX(expires_at) FROM registration WHERE installation = installation.id)
      WHERE id IN (SELECT installation FROM registration WHERE expires_at IS NOT NULL)
      """,
      """
      CREATE INDEX installation_expiry ON installation (expires_at)
      WHERE expires_at IS NOT NULL
      """,
      // Hubs that are gone for everyone while their rows are deleted a slice at a time.
      "CREATE TABLE deleted_hub (id \(type.rowNumber))",
    ] { try connection.execute(sql) }
  }
}
