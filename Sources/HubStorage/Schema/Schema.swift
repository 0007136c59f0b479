import HubCore
import SQLDatabase

/// The tables of an SQLite file: those that both engines have (``StoredTable``), and its own. All
/// times are milliseconds since 1970.
///
/// Until a version is released its tables are changed in place; afterwards a step never changes.
enum Schema {
  static let migrations = [Migration(version: 1, apply: createTables)]

  /// The bits that mark an SQLite file as Belfry's (`Belf`).
  static let applicationID = 0x4265_6c66

  private static let statements =
    state + StoredTable.all.flatMap { $0.sql(.sqlite) } + deviceTables

  /// The names of all tables.
  static let tables = StoredTable.names(createdBy: statements)

  @Sendable private static func createTables(_ connection: any SQLConnection) throws {
    for sql in statements { try connection.execute(sql) }
    try connection.change(
      "INSERT INTO registration_key VALUES (1, ?1, ?2)", Int64.random(in: .min ... .max),
      Int64.random(in: .min ... .max))
  }

  /// Refuses a database from before the first release in which payloads cannot be cleared. It has
  /// the same version: until then tables were changed in place.
  static func refuseUnreleased(_ connection: any SQLConnection) throws {
    let required =
      connection.dialect == .postgres
      ? """
      SELECT 1 FROM pg_attribute
      WHERE attrelid = to_regclass('notification') AND attname = 'body' AND attnotnull
      """
      : #"SELECT 1 FROM pragma_table_info('notification') WHERE name = 'body' AND "notnull" = 1"#
    guard try connection.numbers(required).isEmpty else {
      throw StoreError.cannotOpen(
        "a build before the first release has made it, and its tables differ from this build's; save "
          + "the devices with `belfry export` of that build, and start with a new database")
    }
  }

  /// Adds to a file from before the first release what its tables have gained since.
  /// - Parameter mayChange: Whether no server of an older build can be working with it.
  static func complete(_ connection: any SQLConnection, mayChange: Bool) throws {
    let request = "SELECT 1 FROM pragma_table_info('installation') WHERE name = 'request'"
    guard try connection.numbers(request).isEmpty else { return }
    guard mayChange else {
      throw StoreError.cannotOpen(
        "a build before the first release has made it, and a server is working with it; update and "
          + "restart the server first")
    }
    try connection.writing {
      // Another process may have done it meanwhile.
      guard try connection.numbers(request).isEmpty else { return }
      try connection.execute(
        "ALTER TABLE installation ADD COLUMN request INTEGER NOT NULL DEFAULT 0")
    }
  }

  // One row. Every commit raises `commit_number` and records its writer, so that each process that
  // has the database open can tell others' commits from its own. Row numbers are allocated here and
  // never used twice: caches and retries refer to them.
  private static let state = [
    """
    CREATE TABLE store_state (
      id INTEGER PRIMARY KEY, commit_number INTEGER NOT NULL, writer INTEGER NOT NULL,
      directory_version INTEGER NOT NULL, last_hub INTEGER NOT NULL,
      last_installation INTEGER NOT NULL, last_registration INTEGER NOT NULL,
      last_tag INTEGER NOT NULL, last_template INTEGER NOT NULL,
      last_notification INTEGER NOT NULL, canary BLOB)
    """,
    "INSERT INTO store_state VALUES (1, 0, 0, 1, 0, 0, 0, 0, 0, 0, NULL)",
  ]
}
