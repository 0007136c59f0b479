import CPostgres

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A connection to a PostgreSQL server.
package final class PostgresConnection: SQLConnection {
  package let dialect = Dialect.postgres
  /// Owned by this object; `nil` once closed.
  private(set) var handle: OpaquePointer?
  private let component: String
  /// Time limit for a reply; `nil` for none. After that the connection is lost: a server that
  /// hangs, or a pooler before it, keeps it open without replying.
  package var answerLimit: Duration?
  /// Whether no reply has come within ``answerLimit``.
  private var hasHung = false
  /// Prepared statements, lent or idle, by their text.
  private var statements: [String: PostgresStatement] = [:]
  /// Maximum number of cached statements; the least recently used are dropped. The number of texts
  /// that depend on queries is unlimited.
  private static let statementLimit = 200
  /// The names of statements that are lent only once.
  private var transients: Set<String> = []
  /// Whether a pooler is in front of the server (for example PgBouncer in transaction mode). Each
  /// transaction may then use another session, and none keeps a statement or a setting for us.
  package private(set) var isPooled = false
  /// Settings applied at the beginning of each transaction; see ``set(_:)``.
  private var transactionSettings: String?
  /// The name of an exported snapshot, whose state transactions that only read see; `nil` for the
  /// current one.
  package var snapshot: String?
  private var nextName = 0
  /// Increases with each loan.
  private var loans = 0
  package private(set) var totalChanges = 0
  /// Whether statements are sent without waiting; see ``pipelined(_:)``.
  var isPipelining = false
  /// The statements sent since, with the loan for which each was sent; `nil` for one that is no
  /// ``PostgresStatement``.
  var sent: [(driver: PostgresStatement, loan: Int)?] = []

  /// - Parameters:
  ///   - address: `postgresql://user@host:5432/database?sslmode=verify-full`, or keywords as libpq
  ///     accepts them; missing values come from libpq's variables (`PGPASSWORD`…). Of several hosts
  ///     the first writable one is used, unless `target_session_attrs` says otherwise.
  ///   - component: The owner of these tables: several programs may share a database, each with a
  ///     schema version of its own.
  ///   - answerLimit: See ``answerLimit``.
  package init(
    address: String, component: String, answerLimit: Duration? = nil
  ) throws(SQLError) {
    self.component = component
    self.answerLimit = answerLimit
    // A server that does not reply must not block a thread for the system's two minutes. The
    // database name may be a complete address, which overrides the parameters before it.
    handle = Self.connect([
      ("target_session_attrs", "read-write"), ("tcp_user_timeout", "15000"),
      ("keepalives_idle", "10"), ("keepalives_interval", "5"), ("connect_timeout", "10"),
      ("dbname", address), ("client_encoding", "UTF8"), ("application_name", "belfry"),
    ])
    guard PQstatus(handle) == CONNECTION_OK else {
      let error = SQLError(postgresConnection: handle)
      PQfinish(handle)
      handle = nil
      throw error
    }
    belfry_pq_silence(handle)
    guard serverVersion >= Self.oldestServer else {
      let version = PQparameterStatus(handle, "server_version").map { String(cString: $0) }
      close()
      throw SQLError(
        kind: .cannotOpen, code: 0,
        message: "the server is PostgreSQL \(version ?? "of an unknown version"), older than "
          + "\(Self.oldestServer / 10_000)")
    }
    // Other encodings lack most of the world's letters: the first such letter would fail a write.
    let encoding = PQparameterStatus(handle, "server_encoding").map { String(cString: $0) }
    guard encoding == "UTF8" else {
      close()
      throw SQLError(
        kind: .cannotOpen, code: 0,
        message: "the database's encoding is \(encoding ?? "unknown"), not UTF8")
    }
    isPooled = try serverProcess() != PQbackendPID(handle)
    try set([])
  }

  /// The process id of the server's backend. The client also gets one when it connects, for
  /// cancellation, but a pooler invents that one.
  private func serverProcess() throws(SQLError) -> Int32? {
    let result = answer(ifSent: PQsendQuery(handle, "SELECT pg_backend_pid()"))
    defer { PQclear(result) }
    try check(result)
    return PQgetvalue(result, 0, 0).flatMap { Int32(String(cString: $0)) }
  }

  /// The oldest server version that is known to support everything used here.
  private static let oldestServer = 150_000

  deinit { close() }

  /// Whether libpq can parse an address, and in the intended way: an unescaped `/`, `:` or `@` in a
  /// password turns its rest into a host or a port, which appears in error messages. The address
  /// need not exist.
  package static func isAddress(_ text: String) -> Bool {
    var fault: UnsafeMutablePointer<CChar>?
    let options = PQconninfoParse(text, &fault)
    defer {
      PQconninfoFree(options)
      PQfreemem(fault)
    }
    guard var option = options else { return false }
    while let name = option.pointee.keyword {
      let value = option.pointee.val.map { String(cString: $0) } ?? ""
      switch String(cString: name) {
      case "host": if value.contains("@") { return false }
      case "port": if value.contains(where: { $0 != "," && !("0"..."9" ~= $0) }) { return false }
      default: break
      }
      option += 1
    }
    return true
  }

  private static func connect(_ settings: [(String, String)]) -> OpaquePointer? {
    let names = settings.map { strdup($0.0) }
    let values = settings.map { strdup($0.1) }
    defer { for text in names + values { free(text) } }
    return PQconnectdbParams(
      names.map { UnsafePointer($0) } + [nil], values.map { UnsafePointer($0) } + [nil], 1)
  }

  package func statement(_ sql: String) throws(SQLError) -> Statement {
    if let known = statements[sql] {
      if !known.isLent { return lend(known) }
      // In use further up the stack: prepare a second one, for this time only.
      let second = try prepare(sql)
      if let name = second.name { transients.insert(name) }
      return lend(second)
    }
    let new = try prepare(sql)
    if statements.count >= Self.statementLimit { forgetOldest() }
    statements[sql] = new
    return lend(new)
  }

  private func prepare(_ sql: String) throws(SQLError) -> PostgresStatement {
    nextName += 1
    let name = isPooled ? nil : "s\(nextName)"
    guard isPipelining else { return try PostgresStatement(sql, named: name, on: self) }
    // Between two batches of the pipeline.
    try leavePipeline()
    let new = try PostgresStatement(sql, named: name, on: self)
    try enterPipeline()
    return new
  }

  /// Deallocates a statement, which needs the connection outside of a pipeline.
  private func forgetOldest() {
    guard !isPipelining else { return }
    let idle = statements.filter { !$0.value.isLent }
    if let oldest = idle.min(by: { $0.value.lastLoan < $1.value.lastLoan }) {
      statements[oldest.key] = nil
      deallocate(oldest.value)
    }
  }

  /// Takes a statement back; one that is not cached is deallocated.
  func takeBack(_ statement: PostgresStatement) {
    if let name = statement.name, transients.remove(name) != nil { deallocate(statement) }
  }

  private func deallocate(_ statement: PostgresStatement) {
    // A statement that cannot be deallocated now ends with the connection.
    guard let handle, let name = statement.name, !isPipelining else { return }
    PQclear(answer(ifSent: PQsendQuery(handle, "DEALLOCATE \(name)")))
  }

  private func lend(_ statement: PostgresStatement) -> Statement {
    loans += 1
    statement.lend(by: self, loan: loans)
    return Statement(driver: statement)
  }

  package func execute(_ sql: String) throws(SQLError) {
    let result = answer(ifSent: PQsendQuery(handle, sql))
    defer { PQclear(result) }
    try check(result)
  }

  // MARK: Replies

  /// Waits for all replies to a sent command.
  /// - Parameter isSent: The result of libpq's send function; 0 when it failed.
  /// - Returns: The last result, owned by the caller; `nil` when there is none.
  func answer(ifSent isSent: Int32) -> OpaquePointer? {
    guard isSent == 1 else { return nil }
    var last: OpaquePointer?
    while let result = nextResult() {
      PQclear(last)
      last = result
    }
    return last
  }

  /// Runs `body` without a time limit on its statements.
  package func withoutAnswerLimit<Value>(_ body: () throws -> Value) rethrows -> Value {
    let limit = answerLimit
    answerLimit = nil
    defer { answerLimit = limit }
    return try body()
  }

  /// As `PQgetResult`, within ``answerLimit``.
  func nextResult() -> OpaquePointer? {
    if let answerLimit, handle != nil {
      let limit = ContinuousClock.now + answerLimit
      while PQisBusy(handle) == 1 {
        var socket = pollfd(fd: PQsocket(handle), events: Int16(POLLIN), revents: 0)
        let rest = max(.zero, limit - .now) / .milliseconds(1)
        if poll(&socket, 1, Int32(min(rest.rounded(.up), 1_000_000))) == 0, limit <= .now {
          // libpq then sees the end of the connection, as when the server has gone.
          hasHung = true
          _ = shutdown(socket.fd, Int32(SHUT_RDWR))
        }
        guard PQconsumeInput(handle) == 1 else { break }
      }
    }
    return PQgetResult(handle)
  }

  // MARK: Sessions

  /// Changes settings of the session, or, if a pooler lends sessions, those of each transaction
  /// from now on: a session must be returned to others unchanged.
  ///
  /// In any case a program that is idle in a transaction loses it after ten seconds, because others
  /// wait for its locks.
  package func set(_ settings: [(name: String, value: String)]) throws(SQLError) {
    let settings = [("idle_in_transaction_session_timeout", "10s")] + settings
    guard isPooled else {
      for setting in settings { try execute("SET \(setting.name) = '\(setting.value)'") }
      return
    }
    let calls = settings.map { "set_config('\($0.name)', '\($0.value)', true)" }
    transactionSettings = "SELECT " + calls.joined(separator: ", ")
  }

  package func begin(_ sql: String) throws {
    let snapshot = sql == dialect.beginReading ? snapshot : nil
    guard transactionSettings != nil || snapshot != nil else { return try run(sql) }
    do {
      try pipelined {
        try run(sql)
        // Before any query.
        if let snapshot { try run("SET TRANSACTION SNAPSHOT '\(snapshot)'") }
        if let transactionSettings { try run(transactionSettings) }
      }
    } catch {
      rollBack()
      guard snapshot != nil, let error = error as? SQLError,
        Self.lostSnapshotCodes.contains(error.code)
      else { throw error }
      throw SQLError(kind: .lostSnapshot, code: error.code, message: error.message)
    }
  }

  /// The codes with which a server refuses a snapshot that it does not have (an invalid identifier,
  /// from PostgreSQL 17 on a missing object), or whose transaction has just ended.
  private static let lostSnapshotCodes = ["22023", "42704", "55000"].compactMap {
    Int32($0, radix: 36)
  }

  /// Runs `body`, whose statements each see the current state; where settings apply to a
  /// transaction only, in one.
  package func separately<Value>(_ body: () throws -> Value) throws -> Value {
    transactionSettings == nil ? try body() : try writing(body)
  }

  /// - Throws: An error unless the result is a success.
  func check(_ result: OpaquePointer?) throws(SQLError) {
    switch PQresultStatus(result) {
    case PGRES_COMMAND_OK:
      // Empty for commands that do not count rows.
      if let count = PQcmdTuples(result) { totalChanges += Int(String(cString: count)) ?? 0 }
    case PGRES_TUPLES_OK: break
    default:
      guard !hasHung else {
        throw SQLError(
          kind: .cannotOpen, code: 0, message: "the database does not answer; look at its server")
      }
      throw SQLError(postgres: result, connection: handle)
    }
  }

  /// Whether the server, or the path to it, has gone; the connection is then unusable.
  package var isLost: Bool { handle == nil || PQstatus(handle) == CONNECTION_BAD }

  /// Whether the server is on another machine and the connection is not encrypted.
  package var isExposed: Bool {
    guard let handle, PQsslInUse(handle) == 0, PQgssEncInUse(handle) == 0 else { return false }
    return !Self.isLocal(
      host: PQhost(handle).map { String(cString: $0) } ?? "",
      address: PQhostaddr(handle).map { String(cString: $0) } ?? "")
  }

  /// - Parameters:
  ///   - host: The host in libpq's form: a name, an address, or the directory of a socket.
  ///   - address: The resolved address of the name.
  static func isLocal(host: String, address: String) -> Bool {
    host.isEmpty || host.hasPrefix("/") || host.hasPrefix("@") || address.hasPrefix("127.")
      || address == "::1"
  }

  /// The server's version number: 150004 is 15.4.
  package var serverVersion: Int { Int(PQserverVersion(handle)) }

  /// Whether a statement of the transaction has failed, so that it can only be rolled back.
  package var hasFailedTransaction: Bool { PQtransactionStatus(handle) == PQTRANS_INERROR }

  package var isInTransaction: Bool {
    handle != nil && PQtransactionStatus(handle) != PQTRANS_IDLE
      && PQtransactionStatus(handle) != PQTRANS_UNKNOWN
  }

  package func schemaVersion() throws(SQLError) -> Int {
    // The same outside and inside a transaction: querying a missing table would abort it.
    // `to_regclass` uses the connection's cache: within a transaction it does not show what another
    // process has created since, while this one waited for a lock.
    let known = try statement(
      """
      SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'schema_version'
        AND pg_catalog.pg_table_is_visible(oid))
      """)
    guard try known.step(), known.integer(0) != 0 else { return 0 }
    let row = try statement("SELECT version FROM schema_version WHERE component = ?1")
    try row.bind(component, at: 1)
    return try row.step() ? Int(row.integer(0)) : 0
  }

  package func setSchemaVersion(_ version: Int) throws(SQLError) {
    try execute(
      """
      CREATE TABLE IF NOT EXISTS schema_version (
        component TEXT PRIMARY KEY, version BIGINT NOT NULL)
      """)
    let row = try statement(
      """
      INSERT INTO schema_version (component, version) VALUES (?1, ?2)
      ON CONFLICT (component) DO UPDATE SET version = excluded.version
      """)
    try row.bind(component, at: 1)
    try row.bind(Int64(version), at: 2)
    try row.run()
  }

  package func close() {
    // Without a handle the statements send nothing to the server: they end with the connection.
    let ended = handle
    handle = nil
    statements.removeAll()
    PQfinish(ended)
  }
}

extension SQLConnection {
  /// SQL for the server's current time, in milliseconds since 1970, the clock of all processes that
  /// share a database.
  package static var databaseTime: String {
    "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
  }
}

extension Dialect {
  package static let postgres = Dialect(
    integer: "BIGINT", bytes: "BYTEA", rowNumber: "BIGINT PRIMARY KEY", clustered: "",
    // A database may have another default level; rows read behind a lock must be the current ones.
    beginWriting: "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE",
    beginReading: "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    lockingRows: "FOR UPDATE", freeRows: "FOR UPDATE SKIP LOCKED", sharingRows: "FOR SHARE")
}
