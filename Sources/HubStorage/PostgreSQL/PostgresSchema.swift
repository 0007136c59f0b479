import HubCore
import SQLDatabase

/// The tables of a PostgreSQL database: those that both engines have (``StoredTable``), and its own.
/// All times are milliseconds since 1970.
///
/// Until a version is released its tables are changed in place; afterwards a step never changes. A
/// step declares the oldest version whose nodes may keep running beside it during a rolling update;
/// `schema_step` tells that to nodes that know fewer steps.
enum PostgresSchema {
  /// - Parameters:
  ///   - slots: The slots of a new database; later steps read them from `store_state`.
  ///   - sealing: Seals the word that detects a wrong master key.
  static func migrations(_ slots: DeviceSlots, sealing: any SecretSealing) -> [Migration] {
    [
      step(1) { connection in
        for sql in statements(slots) { try connection.execute(sql) }
        try makeState(connection, slots: slots, sealing: sealing)
      }
    ]
  }

  private static func statements(_ slots: DeviceSlots) -> [String] {
    state + StoredTable.all.flatMap { $0.sql(.postgres) } + nodeTables + deviceTables(slots)
      + workTables
  }

  /// The names of all tables but those of single days.
  static func tables(_ slots: DeviceSlots) -> [String] {
    StoredTable.names(createdBy: statements(slots))
  }

  private static let state = [
    // One row, written when the database is created: the number of slots, the secret from which ids
    // of registrations are made, and a sealed word that detects a wrong master key and is replaced
    // with it. `cluster` is the `system_identifier` of the cluster that has assigned the rows'
    // transaction numbers; `clock_steps` is the number of milliseconds by which the database's
    // clock has been set, as observed by nodes.
    """
    CREATE TABLE store_state (
      id INT PRIMARY KEY CHECK (id = 1), slots SMALLINT NOT NULL, first BIGINT NOT NULL,
      second BIGINT NOT NULL, canary BYTEA NOT NULL, cluster BIGINT,
      clock_steps BIGINT NOT NULL DEFAULT 0)
    """,
    // Marks of committed transactions, by which a lost reply is resolved; kept for a while.
    "CREATE TABLE commit_mark (mark BIGINT PRIMARY KEY, at BIGINT NOT NULL)",
    // The steps that have been applied, each with the oldest version whose nodes may keep running.
    "CREATE TABLE schema_step (version INT PRIMARY KEY, compatible_from INT NOT NULL)",
    // One row; it rises when hubs, policies or credentials change, and only then.
    "CREATE TABLE directory (version BIGINT NOT NULL)",
    "INSERT INTO directory VALUES (1)",
    "CREATE SEQUENCE feedback_id_seq",
  ]

  /// The key of the advisory lock held during schema changes; nodes that start at the same time
  /// wait for each other.
  private static let lock: Int64 = 0x4265_6c66_7279

  /// A step that one node applies when several start at once. The lock ends with the transaction: a
  /// session's lock would stay with any connection that a pooler has lent.
  ///
  /// - Parameter oldest: Nodes that know the steps up to this one may keep running; `nil` when none
  ///   may.
  static func step(
    _ version: Int, besideVersionsFrom oldest: Int? = nil,
    _ apply: @escaping @Sendable (any SQLConnection) throws -> Void
  ) -> Migration {
    Migration(version: version) { connection in
      // Neither the wait for another node's step nor a step on large tables has a limit.
      try connection.execute("SET LOCAL lock_timeout = 0")
      try connection.statement("SELECT pg_advisory_xact_lock(?1)", lock).run()
      guard try connection.schemaVersion() < version else { return }
      try apply(connection)
      try connection.change(
        "INSERT INTO schema_step (version, compatible_from) VALUES (?1, ?2)", Int64(version),
        Int64(oldest ?? version))
    }
  }

  /// Keeps all tables as they are until the transaction ends. A step waits for it before it touches
  /// a table; the tables of days, which come and go without steps, are locked as by their readers.
  static func keepTables(_ connection: PostgresConnection) throws {
    try connection.statement("SELECT pg_advisory_xact_lock_shared(?1)", lock).run()
    for table in [DayTable.failures.name, DayTable.feedback.name] {
      let isThere = try connection.numbers(
        "SELECT 1 WHERE to_regclass('\(table)') IS NOT NULL")
      // Whether the database has the right version is found when it is opened.
      if !isThere.isEmpty { try connection.execute("LOCK TABLE \(table) IN ACCESS SHARE MODE") }
    }
  }

  /// Whether each step that has been applied since admits a node that knows only `known` of them. A
  /// step that the database does not list may have changed anything.
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

  /// - Returns: The version of the database when it excludes nodes that know only `known` steps;
  ///   `nil` when it admits them.
  static func versionBeyond(_ known: Int, _ connection: any SQLConnection) throws -> Int? {
    let row = try connection.statement(
      "SELECT MAX(version) FROM schema_step WHERE version > ?1 AND compatible_from > ?1",
      Int64(known))
    return try row.step() ? row.optionalInteger(0).map(Int.init) : nil
  }

  /// Migrates the schema and reads what never changes.
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
    if version <= steps.count { try Schema.refuseUnreleased(connection) }
    if !options.takesMove { try MoveTable(connection).refuseUnfinishedMove() }
    do {
      if version < steps.count {
        try connection.withoutAnswerLimit { try connection.migrate(with: steps) }
      } else {
        try connection.migrate(with: steps)
      }
    } catch let error as SQLError {
      // A rolling update is in progress, and this node is not the first. A backup would lack what
      // is new.
      guard case .newerSchema(let found, let known) = error.kind, options.snapshot == nil,
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
