import SQLDatabase

/// The tables of an SQLite file. All times are milliseconds since 1970.
///
/// Until a version is released its tables are changed in place; afterwards a step never changes.
enum Schema {
  static let migrations = [Migration(version: 1, apply: createTables)]

  /// The bits that mark an SQLite file as Belfry's (`Belf`).
  static let applicationID = 0x4265_6c66

  @Sendable private static func createTables(_ connection: any SQLConnection) throws {
    let type = connection.dialect
    for sql in directoryTables(type) + deviceTables(type) + notificationTables(type)
      + outcomeTables(type) + statisticTables(type)
    {
      try connection.execute(sql)
    }
    try connection.change(
      "INSERT INTO registration_key VALUES (1, ?1, ?2)", Int64.random(in: .min ... .max),
      Int64.random(in: .min ... .max))
  }

  /// The state of the file; hubs, policies and credentials; operators, their log and jobs.
  private static func directoryTables(_ type: Dialect) -> [String] {
    [
      // One row. Every commit raises `commit_number` and records its writer, so that each process
      // that has the database open can tell others' commits from its own. Row numbers are allocated
      // here and never used twice: caches and retries refer to them.
      """
      CREATE TABLE store_state (
        id \(type.rowNumber), commit_number \(type.integer) NOT NULL,
        writer \(type.integer) NOT NULL, directory_version \(type.integer) NOT NULL,
        last_hub \(type.integer) NOT NULL, last_installation \(type.integer) NOT NULL,
        last_registration \(type.integer) NOT NULL, last_tag \(type.integer) NOT NULL,
        last_template \(type.integer) NOT NULL, last_notification \(type.integer) NOT NULL,
        canary \(type.bytes))
      """,
      "INSERT INTO store_state VALUES (1, 0, 0, 1, 0, 0, 0, 0, 0, 0, NULL)",
      """
      CREATE TABLE hub (
        id \(type.rowNumber), name TEXT NOT NULL, folded_name TEXT NOT NULL UNIQUE,
        registration_ttl DOUBLE PRECISION, is_disabled \(type.integer) NOT NULL,
        created_at \(type.integer) NOT NULL, user_metadata TEXT, updated_at \(type.integer))
      """,
      // Hubs that are already deleted for everyone, while their rows are deleted slice by slice.
      "CREATE TABLE deleted_hub (id \(type.rowNumber))",
      // Hub 0 is the namespace. `position` keeps the order of creation.
      """
      CREATE TABLE access_policy (
        hub \(type.integer) NOT NULL, name TEXT NOT NULL, position \(type.integer) NOT NULL,
        rights \(type.integer) NOT NULL, primary_key \(type.bytes) NOT NULL,
        secondary_key \(type.bytes) NOT NULL, created_at \(type.integer) NOT NULL,
        modified_at \(type.integer) NOT NULL, PRIMARY KEY (hub, name)) \(type.clustered)
      """,
      """
      CREATE TABLE push_credential (
        hub \(type.integer) NOT NULL, platform \(type.integer) NOT NULL,
        properties \(type.bytes) NOT NULL, modified_at \(type.integer) NOT NULL,
        PRIMARY KEY (hub, platform)) \(type.clustered)
      """,
      // `id` is a digest of the value that the browser presents.
      """
      CREATE TABLE operator_session (
        id \(type.bytes) NOT NULL PRIMARY KEY, user_key TEXT NOT NULL,
        fingerprint \(type.bytes) NOT NULL, started_at \(type.integer) NOT NULL,
        seen_at \(type.integer) NOT NULL, confirmed_at \(type.integer) NOT NULL)
      """,
      "CREATE INDEX operator_session_user ON operator_session (user_key, seen_at)",
      "CREATE INDEX operator_session_seen ON operator_session (seen_at)",
      // Hub 0 is the namespace. The name is kept when the hub is deleted.
      """
      CREATE TABLE activity (
        id \(type.rowNumber), hub \(type.integer) NOT NULL, hub_name TEXT,
        at \(type.integer) NOT NULL, actor TEXT NOT NULL, via TEXT NOT NULL, action TEXT NOT NULL,
        object TEXT, address TEXT NOT NULL, status \(type.integer) NOT NULL)
      """,
      "CREATE INDEX activity_time ON activity (at, id)",
      "CREATE INDEX activity_hub ON activity (hub, at, id)",
      // `uris` are sealed, because they may contain signatures. `ended_at` is null while work
      // remains.
      """
      CREATE TABLE job (
        hub \(type.integer) NOT NULL, public_id TEXT NOT NULL, kind TEXT NOT NULL,
        uris \(type.bytes) NOT NULL, status TEXT NOT NULL, progress DOUBLE PRECISION NOT NULL,
        results \(type.bytes) NOT NULL, position \(type.bytes) NOT NULL,
        created_at \(type.integer) NOT NULL, updated_at \(type.integer) NOT NULL,
        ended_at \(type.integer), PRIMARY KEY (hub, public_id)) \(type.clustered)
      """,
      "CREATE INDEX job_unfinished ON job (created_at) WHERE ended_at IS NULL",
    ]
  }
}
