import SQLDatabase

extension Schema {
  /// Version 15: registrations that a push service has called dead stay for a while, and each
  /// registration says which commit has written it.
  @Sendable static func addRemovals(_ connection: any SQLConnection) throws {
    let type = connection.dialect
    for sql in [
      // The `commit_number` of the last write by an app or a client.
      "ALTER TABLE registration ADD COLUMN revision \(type.integer) NOT NULL DEFAULT 0",
      // A row of `registration` as it was. `new_handle` is null when the row was deleted there; else
      // it got that handle from its push service, and has it still unless it was written since.
      """
      CREATE TABLE removed_registration (
        id \(type.rowNumber), hub \(type.integer) NOT NULL, installation \(type.integer) NOT NULL,
        public_id TEXT, public_hash \(type.integer), etag \(type.integer) NOT NULL, name TEXT,
        tile TEXT, tag_text TEXT, template_handle \(type.integer), platform \(type.integer) NOT NULL,
        template \(type.integer), handle TEXT NOT NULL, handle_hash \(type.integer) NOT NULL,
        variables \(type.bytes), tags \(type.bytes) NOT NULL, expires_at \(type.integer),
        confirmed_at \(type.integer) NOT NULL, environment \(type.integer),
        removed_at \(type.integer) NOT NULL, outcome \(type.integer) NOT NULL, new_handle TEXT)
      """,
      "CREATE INDEX removed_registration_time ON removed_registration (hub, removed_at)",
      "CREATE INDEX removed_registration_handle ON removed_registration (handle_hash)",
      """
      CREATE INDEX removed_registration_installation ON removed_registration (installation)
      WHERE installation <> 0
      """,
      """
      CREATE INDEX removed_registration_public ON removed_registration (hub, public_hash)
      WHERE public_hash IS NOT NULL
      """,
    ] { try connection.execute(sql) }
  }
}
