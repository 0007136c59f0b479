import SQLDatabase

extension Schema {
  /// Version 4: what describes a hub beyond its name; jobs; feedback about handles.
  @Sendable static func addManagement(_ connection: any SQLConnection) throws {
    let type = connection.dialect
    for sql in [
      "ALTER TABLE hub ADD COLUMN user_metadata TEXT",
      "ALTER TABLE hub ADD COLUMN updated_at \(type.integer)",
      // `uris` are sealed: they may hold signatures. `ended_at` is null while there is something
      // left to do.
      """
      CREATE TABLE job (
        hub \(type.integer) NOT NULL, public_id TEXT NOT NULL, kind TEXT NOT NULL,
        uris \(type.bytes) NOT NULL, status TEXT NOT NULL, progress DOUBLE PRECISION NOT NULL,
        results \(type.bytes) NOT NULL, position \(type.bytes) NOT NULL,
        created_at \(type.integer) NOT NULL, updated_at \(type.integer) NOT NULL,
        ended_at \(type.integer), PRIMARY KEY (hub, public_id)) \(type.clustered)
      """,
      "CREATE INDEX job_unfinished ON job (created_at) WHERE ended_at IS NULL",
      // `hour` counts from 1970; `public_id` is null when it follows from `registration`.
      """
      CREATE TABLE feedback (
        id \(type.rowNumber), hub \(type.integer) NOT NULL, hour \(type.integer) NOT NULL,
        at \(type.integer) NOT NULL, outcome \(type.integer) NOT NULL,
        platform \(type.integer) NOT NULL, handle TEXT NOT NULL,
        registration \(type.integer) NOT NULL, public_id TEXT, installation TEXT,
        notification TEXT NOT NULL)
      """,
      "CREATE INDEX feedback_hour ON feedback (hub, hour)",
    ] { try connection.execute(sql) }
  }
}
