import HubCore
import SQLDatabase

/// The tables of a PostgreSQL database. All times are milliseconds since 1970.
///
/// Each area has its file. Until a version is released its tables are changed in place; afterwards
/// a step never changes. It says which is the oldest version whose nodes may go on beside it, as
/// they do while servers are updated one after the other: `schema_step` has that for those that
/// know fewer steps.
enum PostgresSchema {
  /// - Parameters:
  ///   - slots: Of a new database; later steps ask `store_state`.
  ///   - sealing: Seals the word that tells a wrong master key.
  static func migrations(_ slots: DeviceSlots, sealing: any SecretSealing) -> [Migration] {
    [
      step(1) { connection in
        for sql in state + directoryTables + sharedTables + deviceTables(slots) + workTables {
          try connection.execute(sql)
        }
        try makeState(connection, slots: slots, sealing: sealing)
      }
    ]
  }

  private static let state = [
    // One row, written when the database is made: how many slots it has, the secret that ids of
    // registrations are made with, and a sealed word that tells a wrong master key and is replaced
    // with it. `cluster` is the `system_identifier` of the cluster that has given out the rows'
    // transaction numbers; `clock_steps` is by how many milliseconds the database's clock has been
    // set, as nodes have noticed.
    """
    CREATE TABLE store_state (
      id INT PRIMARY KEY CHECK (id = 1), slots SMALLINT NOT NULL, first BIGINT NOT NULL,
      second BIGINT NOT NULL, canary BYTEA NOT NULL, cluster BIGINT,
      clock_steps BIGINT NOT NULL DEFAULT 0)
    """,
    // What tells of a transaction whose answer was lost that it was committed; kept for a while.
    "CREATE TABLE commit_mark (mark BIGINT PRIMARY KEY, at BIGINT NOT NULL)",
  ]

  /// Held by who changes the schema; nodes that start at the same time wait for each other.
  private static let lock: Int64 = 0x4265_6c66_7279

  /// A step that one node takes when several start at once. The lock goes with the transaction:
  /// one of the session would stay with whatever connection a pooler has lent.
  ///
  /// - Parameter oldest: Nodes that know the steps up to this one may go on; `nil` when none may.
  static func step(
    _ version: Int, besideVersionsFrom oldest: Int? = nil,
    _ apply: @escaping @Sendable (any SQLConnection) throws -> Void
  ) -> Migration {
    Migration(version: version) { connection in
      // Another node's step, and our own on large tables, take as long as they take.
      try connection.execute("SET LOCAL lock_timeout = 0")
      try connection.statement("SELECT pg_advisory_xact_lock(?1)", lock).run()
      guard try connection.schemaVersion() < version else { return }
      try apply(connection)
      try connection.change(
        "INSERT INTO schema_step (version, compatible_from) VALUES (?1, ?2)", Int64(version),
        Int64(oldest ?? version))
    }
  }

  /// Whether each step that has been taken since allows a node that knows only `known` of them. One
  /// of which the database does not tell may have changed anything.
  private static func admits(
    _ known: Int, at found: Int, _ connection: any SQLConnection
  ) throws -> Bool {
    do {
      let table = try connection.statement("SELECT to_regclass('schema_step') IS NOT NULL")
      guard try table.step(), table.integer(0) != 0 else { return false }
    }
    let steps = try connection.numbers(
      """
      SELECT COUNT(*) FROM schema_step
      WHERE version > ?1 AND version <= ?2 AND compatible_from <= ?1
      """, Int64(known), Int64(found))
    return steps.first == Int64(found - known)
  }

  /// - Returns: The version of the database when it has been changed so that who knows only `known`
  ///   steps must not work with it; `nil` when that may.
  static func versionBeyond(_ known: Int, _ connection: any SQLConnection) throws -> Int? {
    let row = try connection.statement(
      "SELECT MAX(version) FROM schema_step WHERE version > ?1 AND compatible_from > ?1",
      Int64(known))
    return try row.step() ? row.optionalInteger(0).map(Int.init) : nil
  }

  /// Brings the schema up to date and reads what never changes.
  static func prepare(
    _ connection: PostgresConnection, address: String, sealing: any SecretSealing,
    options: PostgresHubStore.Options
  ) throws -> PostgresShared {
    guard let slots = DeviceSlots(count: options.slots) else {
      throw StoreError.cannotOpen(
        "a database has a power of two of slots, from 1 to \(DeviceSlots.limit), not "
          + "\(options.slots)")
    }
    let steps = migrations(slots, sealing: sealing) + options.laterSteps
    let version = try connection.schemaVersion()
    guard options.mayMigrate || version == 0 || version >= steps.count else {
      throw StoreError.cannotOpen(
        "it is of an older version (\(version), this belfry has \(steps.count)), and servers may be "
          + "working with it; update and restart one of them first")
    }
    if !options.takesMove { try connection.refuseUnfinishedMove() }
    do {
      if version < steps.count {
        try connection.withoutAnswerLimit { try connection.migrate(with: steps) }
      } else {
        try connection.migrate(with: steps)
      }
    } catch let error as SQLError {
      // Servers are being updated one after the other, and this is not the first.
      guard case .newerSchema(let found, let known) = error.kind,
        try admits(known, at: found, connection)
      else { throw error }
    }
    try settle(connection, slots)
    return try shared(
      connection, version: steps.count, address: address, sealing: sealing, options: options)
  }

  private static func makeState(
    _ connection: any SQLConnection, slots: DeviceSlots, sealing: any SecretSealing
  ) throws {
    let canary = try Canary.make(sealing)
    try connection.statement(
      """
      INSERT INTO store_state (id, slots, first, second, canary) VALUES (1, ?1, ?2, ?3, ?4)
      """, Int64(slots.count), Int64.random(in: .min ... .max), Int64.random(in: .min ... .max),
      canary
    ).run()
  }

  private static func shared(
    _ connection: PostgresConnection, version: Int, address: String, sealing: any SecretSealing,
    options: PostgresHubStore.Options
  ) throws -> PostgresShared {
    let row = try connection.statement("SELECT slots, first, second, canary FROM store_state")
    guard try row.step(), let slots = DeviceSlots(count: Int(row.integer(0))) else {
      throw StoreError.corrupt("store_state cannot be read")
    }
    _ = try Canary.key(row.bytes(3), sealing)
    let coding = RegistrationIDCoding(
      key: (UInt64(bitPattern: row.integer(1)), UInt64(bitPattern: row.integer(2))))
    return PostgresShared(
      address: address, version: version, sealing: sealing, coding: coding, slots: slots,
      options: options)
  }
}
