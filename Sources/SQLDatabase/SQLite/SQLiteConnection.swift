import CSQLite

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A connection to an SQLite file in write-ahead-log mode.
package final class SQLiteConnection: SQLConnection {
  /// Options for opening a file.
  package struct Options: Hashable, Sendable {
    /// Refuses writes, and does not create the file.
    package var isReadOnly = false
    /// Creates a missing file, readable and writable by its owner only.
    package var createsFile = true
    /// Time to wait for a lock that another connection holds, in milliseconds.
    package var lockTimeout: Int32 = 5_000
    /// Page cache, in KiB.
    package var cacheSize = 8 * 1024
    /// Maximum size of the database in pages of 4 KiB; `nil` is the engine's limit. Writing beyond
    /// it fails like a full disk.
    package var maximumPages: Int?
    /// The program's application id in the file's header. A new file gets it; a file with another
    /// is refused as ``SQLError/Kind/notADatabase`` and left unchanged. `nil` skips the check.
    package var applicationID: Int?
    /// Whether a commit is on the disk when it returns, and so survives a power cut. Otherwise it
    /// survives once its log is synced, which is up to the caller that promises it; the database is
    /// never damaged either way.
    package var syncsCommits = true
    /// Number of pages in the log after which a commit copies them into the database file; `nil`
    /// leaves copying to calls of ``SQLiteConnection/copyLog()``.
    package var logPages: Int? = 16_384
    /// The name of a VFS registered with SQLite, in place of the system's own; tests use disks that
    /// fail, or lose unsynced data.
    package var fileSystem: String?

    package init() {}
  }

  package let dialect = Dialect.sqlite
  /// Owned by this object; `nil` once closed.
  private(set) var handle: OpaquePointer?
  /// Number of pages in the log after the last commit; owned by this object. See ``logPageCount``.
  let logPages = UnsafeMutablePointer<Int32>.allocate(capacity: 1)
  /// Compiled statements, lent or idle, by their text.
  private var statements: [String: SQLiteStatement] = [:]
  /// The same by the address of their text, which for a literal is always the same one; hashing a
  /// long text takes a while.
  private var byAddress = [SQLiteStatement?](repeating: nil, count: 256)
  /// More than the number of distinct statements of this build; a defect must not become a leak.
  private static let statementLimit = 200

  /// Configures the library as a whole, once before its first use.
  private static let configured: Void = {
    // It fails when other code has opened a database before; then its defaults remain.
    _ = belfry_sqlite_disable_statistics()
  }()

  /// - Parameter path: A file; its directory must exist.
  package init(path: String, options: Options = Options()) throws(SQLError) {
    Self.configured
    logPages.initialize(to: 0)
    var handle: OpaquePointer?
    var flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
    flags |= options.isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE
    if options.createsFile && !options.isReadOnly { flags |= SQLITE_OPEN_CREATE }
    if options.createsFile && !options.isReadOnly { Self.makePrivateFile(path) }
    let code = sqlite3_open_v2(path, &handle, flags, options.fileSystem)
    guard code == SQLITE_OK else {
      let error = SQLError(sqlite: handle)
      sqlite3_close_v2(handle)
      throw error
    }
    self.handle = handle
    sqlite3_busy_timeout(handle, options.lockTimeout)
    // Temporary structures are small here; in memory they cost no files.
    try execute("PRAGMA temp_store = MEMORY; PRAGMA cache_size = -\(options.cacheSize)")
    guard !options.isReadOnly else { return }
    if let id = options.applicationID { try claim(as: id) }
    try enableLog()
    // A log that had to grow is truncated again. 16 384 pages are 64 MiB.
    try execute(
      """
      PRAGMA synchronous = \(options.syncsCommits ? "FULL" : "NORMAL");
      PRAGMA wal_autocheckpoint = \(options.logPages ?? 0);
      PRAGMA journal_size_limit = \(128 << 20)
      """)
    if options.logPages == nil { countLogPages() }
    if let pages = options.maximumPages { try execute("PRAGMA max_page_count = \(pages)") }
  }

  deinit {
    close()
    logPages.deallocate()
  }

  /// Creates a missing file, for its owner only; SQLite gives the log and the shared index beside
  /// it the file's own mode. Failures are reported by SQLite.
  static func makePrivateFile(_ path: String) {
    let file = openFile(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0o600)
    // An existing file is not opened: closing it would drop the locks of this process.
    if file >= 0 { closeFile(file) }
  }

  /// Marks a new file, and refuses one of another program.
  private func claim(as id: Int) throws(SQLError) {
    if try integer("PRAGMA application_id") == Int64(id) { return }
    guard try integer("SELECT COUNT(*) FROM sqlite_schema") == 0 else {
      throw SQLError(
        kind: .notADatabase, code: SQLITE_NOTADB, message: "another program's database")
    }
    try execute("PRAGMA application_id = \(id)")
  }

  func integer(_ sql: String) throws(SQLError) -> Int64 {
    let statement = try statement(sql)
    return try statement.step() ? statement.integer(0) : 0
  }

  private func enableLog() throws(SQLError) {
    let statement = try statement("PRAGMA journal_mode = WAL")
    guard try statement.step(), statement.text(0) == "wal" else {
      throw SQLError(
        kind: .cannotOpen, code: SQLITE_CANTOPEN,
        message: "the file system does not support a write-ahead log")
    }
  }

  package func statement(_ sql: String) throws(SQLError) -> Statement {
    let place = Self.place(of: sql)
    // Equality is decided by the address first, then by the text.
    if let known = byAddress[place], known.sql == sql, !known.isLent { return lend(known) }
    if let known = statements[sql] {
      byAddress[place] = known
      if !known.isLent { return lend(known) }
      // In use further up the stack: a second one, for this time only.
      return lend(try SQLiteStatement(sql, on: self))
    }
    let new = try SQLiteStatement(sql, on: self)
    if statements.count < Self.statementLimit { statements[sql] = new }
    return lend(new)
  }

  private static func place(of sql: String) -> Int {
    let address = sql.utf8.withContiguousStorageIfAvailable { UInt(bitPattern: $0.baseAddress) }
    return Int(((address ?? 0) / 16 ^ UInt(sql.utf8.count)) % 256)
  }

  private func lend(_ statement: SQLiteStatement) -> Statement {
    statement.isLent = true
    return Statement(driver: statement)
  }

  package func execute(_ sql: String) throws(SQLError) {
    guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else {
      throw SQLError(sqlite: handle)
    }
  }

  package var totalChanges: Int { Int(sqlite3_total_changes(handle)) }

  package var isInTransaction: Bool { handle != nil && sqlite3_get_autocommit(handle) == 0 }

  package func schemaVersion() throws(SQLError) -> Int {
    Int(try integer("PRAGMA user_version"))
  }

  package func setSchemaVersion(_ version: Int) throws(SQLError) {
    try execute("PRAGMA user_version = \(version)")
  }

  package func close() {
    // Statements are finalized before their connection closes.
    statements.removeAll()
    byAddress = [SQLiteStatement?](repeating: nil, count: byAddress.count)
    sqlite3_close_v2(handle)
    handle = nil
  }
}

// The class has methods of these names.
func openFile(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 {
  open(path, flags, mode)
}

func closeFile(_ file: Int32) { close(file) }
