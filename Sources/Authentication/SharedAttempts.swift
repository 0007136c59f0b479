import Foundation
package import SQLDatabase

/// A PostgreSQL database in which processes count password attempts together.
package protocol AttemptDatabase: Sendable {
  /// The name of a table of ``SharedAttempts/tables(named:)``.
  var attemptTable: String { get }
  /// The maximum number of attempts of a process that wait for the database, of which one site may
  /// have a quarter: a flood of guesses must not delay the other work of the process.
  var attemptsAtOnce: Int { get }
  /// Runs `body` in a transaction; returns once it is durable.
  func countingAttempts<Value: Sendable>(
    _ body: @escaping @Sendable (any SQLConnection) throws -> Value
  ) async throws -> Value
}

/// Password attempts as rows, by the rules of ``AttemptRecords`` and the clock of the database.
///
/// An attempt counts as a failure as soon as it is reserved, and a correct password takes that
/// back. So concurrent attempts count across processes, and a process that dies during an attempt
/// leaves a failure, not an attempt that never ends.
package struct SharedAttempts: Sendable {
  /// The maximum number of rows, separately for sites with a sign-in and for all others; beyond it
  /// those that expire first are removed.
  package static let capacity: Int64 = 200_000
  /// The maximum number of rows deleted at a time.
  private static let sliceLimit: Int64 = 2_000

  let database: any AttemptDatabase
  let rules: AttemptLimiter.Rules

  /// - Returns: The counts that the attempt belongs to, or the time to wait.
  func reserve(
    account: String, network: String, site: String
  ) async throws -> Result<[AttemptRecords.Key], AttemptLimiter.Wait> {
    try await database.countingAttempts { [table = database.attemptTable, rules] connection in
      let pair = AttemptRecords.Key.pair(account: account, network: network)
      var rows = try AttemptRows(table, AttemptRecords(rules), connection)
      try rows.lock(.account(account))
      try rows.read([pair])
      if !rows.records.isKnown(pair, at: rows.now) {
        // Always locked after the account, to avoid deadlocks.
        try rows.lock(.network(network))
        try rows.read([
          .account(account), .network(network), .turn(account: account, site: site),
        ])
      }
      let keys = rows.records.keys(account: account, network: network, at: rows.now)
      let wait = rows.records.wait(account: account, network: network, site: site, at: rows.now)
      if wait == nil { rows.records.fail(keys, at: rows.now) }
      try rows.write()
      return wait.map { .failure(AttemptLimiter.Wait($0)) } ?? .success(keys)
    }
  }

  /// If the write fails, the attempt stays counted as a failure.
  func finish(
    _ pair: AttemptRecords.Key, _ keys: [AttemptRecords.Key], as outcome: AttemptLimiter.Outcome
  ) async {
    guard outcome != .wrong else { return }
    try? await database.countingAttempts { [table = database.attemptTable, rules] connection in
      var rows = try AttemptRows(table, AttemptRecords(rules), connection)
      for key in keys where key != pair { try rows.lock(key) }
      // For a known pair only its own row is written, but still under the lock of its account.
      if keys == [pair], case .pair(let account, _) = pair { try rows.lock(.account(account)) }
      try rows.read(keys)
      for key in keys {
        guard let failures = rows.records.counts[key]?.failures, failures > 0 else { continue }
        rows.records.counts[key]?.failures = failures - 1
      }
      if outcome == .right { rows.records.succeed(pair, at: rows.now) }
      try rows.write()
    }
  }

  // MARK: The table

  /// The statements that create the table in PostgreSQL. `id` is a digest; times are milliseconds
  /// since 1970, 0 for none.
  package static func tables(named table: String) -> [String] {
    [
      """
      CREATE TABLE \(table) (
        id BYTEA PRIMARY KEY, failures INT NOT NULL, failed_at BIGINT NOT NULL,
        next_turn BIGINT NOT NULL, turn BIGINT NOT NULL, known_at BIGINT NOT NULL,
        expires_at BIGINT NOT NULL) WITH (fillfactor = 70)
      """,
      "CREATE INDEX \(table)_expiry ON \(table) (expires_at) WHERE known_at = 0",
      "CREATE INDEX \(table)_known_expiry ON \(table) (expires_at) WHERE known_at > 0",
    ]
  }

  /// Deletes some of the expired and surplus rows.
  /// - Returns: `true` if there may be more.
  package static func clear(
    _ table: String, keeping capacity: Int64 = capacity, _ connection: any SQLConnection
  ) throws -> Bool {
    var deleted = 0
    for kind in ["known_at = 0", "known_at > 0"] {
      deleted += try connection.change(
        """
        DELETE FROM \(table) WHERE \(kind) AND id IN (SELECT id FROM \(table)
          WHERE \(kind) AND expires_at <= \(PostgresConnection.databaseTime) LIMIT \(sliceLimit))
        """)
      // Keeps those that expire last.
      deleted += try connection.change(
        """
        DELETE FROM \(table) WHERE \(kind) AND id IN (SELECT id FROM \(table)
          WHERE \(kind) ORDER BY expires_at DESC OFFSET ?1 LIMIT \(sliceLimit))
        """, capacity)
    }
    return deleted > 0
  }
}

/// The rows that one attempt concerns, in a transaction.
private struct AttemptRows {
  private struct Row: Hashable {
    var failures: Int64 = 0
    var failedAt: Int64 = 0
    var nextTurn: Int64 = 0
    var turn: Int64 = 0
    var knownAt: Int64 = 0
  }

  private let table: String
  private let connection: any SQLConnection
  private var found: [AttemptRecords.Key: Row] = [:]
  var records: AttemptRecords
  /// The time by the clock of the database.
  let now: Date

  init(_ table: String, _ records: AttemptRecords, _ connection: any SQLConnection) throws {
    self.table = table
    self.connection = connection
    self.records = records
    let row = try connection.statement("SELECT \(PostgresConnection.databaseTime)")
    now = try row.step() ? Self.date(row.integer(0)) : .distantPast
  }

  /// Locks an account or a network against other attempts until the transaction ends.
  func lock(_ key: AttemptRecords.Key) throws {
    let kind: Int64 = if case .account = key { 2 } else { 3 }
    let number = key.digest.prefix(4).reduce(Int32(0)) { $0 << 8 | Int32($1) }
    try connection.statement(
      "SELECT pg_advisory_xact_lock(?1::int8::int4, ?2::int8::int4)", kind, Int64(number)
    ).run()
  }

  mutating func read(_ keys: [AttemptRecords.Key]) throws {
    for key in keys {
      let row = try connection.statement(
        "SELECT failures, failed_at, next_turn, turn, known_at FROM \(table) WHERE id = ?1",
        key.digest)
      var read = Row()
      if try row.step() {
        read = Row(
          failures: row.integer(0), failedAt: row.integer(1), nextTurn: row.integer(2),
          turn: row.integer(3), knownAt: row.integer(4))
      }
      found[key] = read
      if read.failedAt > 0 {
        records.counts[key] = .init(
          failures: Int(read.failures), last: Self.date(read.failedAt),
          nextTurn: Self.date(read.nextTurn))
      }
      if read.turn > 0 { records.turns[key] = Self.date(read.turn) }
      if read.knownAt > 0 { records.known[key] = Self.date(read.knownAt) }
    }
  }

  /// Writes the rows that have changed.
  func write() throws {
    for (key, old) in found {
      let count = records.counts[key]
      let row = Row(
        failures: Int64(count?.failures ?? 0), failedAt: Self.time(count?.last),
        nextTurn: Self.time(count?.nextTurn), turn: Self.time(records.turns[key]),
        knownAt: Self.time(records.known[key]))
      guard row != old else { continue }
      let end = max(
        row.failedAt + Int64(AttemptRecords.countLife * 1000),
        row.turn + Int64(AttemptRecords.turnLife * 1000),
        row.knownAt + Int64(AttemptRecords.knownLife * 1000))
      try connection.change(
        """
        INSERT INTO \(table) (id, failures, failed_at, next_turn, turn, known_at, expires_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
        ON CONFLICT (id) DO UPDATE SET failures = excluded.failures,
          failed_at = excluded.failed_at, next_turn = excluded.next_turn, turn = excluded.turn,
          known_at = excluded.known_at, expires_at = excluded.expires_at
        """, key.digest, row.failures, row.failedAt, row.nextTurn, row.turn, row.knownAt, end)
    }
  }

  private static func date(_ time: Int64) -> Date {
    time > 0 ? Date(timeIntervalSince1970: Double(time) / 1000) : .distantPast
  }

  private static func time(_ date: Date?) -> Int64 {
    date.map { Int64(max(0, $0.timeIntervalSince1970 * 1000).rounded()) } ?? 0
  }
}
