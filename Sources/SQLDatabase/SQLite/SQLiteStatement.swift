import CSQLite

/// One compiled SQLite statement; finalized with this object.
/// - SeeAlso: <https://www.sqlite.org/c3ref/stmt.html>
final class SQLiteStatement: StatementDriver {
  /// Between ``SQLiteConnection/statement(_:)`` and ``giveBack()``.
  var isLent = false
  let sql: String
  /// Owned by this object.
  private let handle: OpaquePointer

  init(_ sql: String, on connection: SQLiteConnection) throws(SQLError) {
    guard let database = connection.handle else {
      throw SQLError(kind: .other, code: SQLITE_MISUSE, message: "the connection is closed")
    }
    var handle: OpaquePointer?
    let code = sqlite3_prepare_v3(
      database, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &handle, nil)
    guard code == SQLITE_OK else { throw SQLError(sqlite: database) }
    guard let handle else {
      throw SQLError(kind: .other, code: SQLITE_MISUSE, message: "empty statement")
    }
    self.handle = handle
    self.sql = sql
  }

  deinit { sqlite3_finalize(handle) }

  private func check(_ code: Int32) throws(SQLError) {
    if code != SQLITE_OK { throw SQLError(sqlite: sqlite3_db_handle(handle)) }
  }

  func bind(_ value: Int64, at index: Int32) throws(SQLError) {
    try check(sqlite3_bind_int64(handle, index, value))
  }

  func bind(_ value: Double, at index: Int32) throws(SQLError) {
    try check(sqlite3_bind_double(handle, index, value))
  }

  func bind(_ text: String, at index: Int32) throws(SQLError) {
    var text = text
    let code = text.withUTF8 { bytes in
      // Without an address SQLite would bind null.
      guard let address = bytes.baseAddress, !bytes.isEmpty else {
        return sqlite3_bind_text(handle, index, "", 0, belfry_sqlite_transient())
      }
      return address.withMemoryRebound(to: CChar.self, capacity: bytes.count) {
        sqlite3_bind_text(
          handle, index, $0, Int32(clamping: bytes.count), belfry_sqlite_transient())
      }
    }
    try check(code)
  }

  func bind(_ bytes: [UInt8], at index: Int32) throws(SQLError) {
    let code =
      bytes.isEmpty
      ? sqlite3_bind_zeroblob(handle, index, 0)
      : sqlite3_bind_blob64(
        handle, index, bytes, UInt64(bytes.count), belfry_sqlite_transient())
    try check(code)
  }

  func bindNull(at index: Int32) throws(SQLError) {
    try check(sqlite3_bind_null(handle, index))
  }

  func step() throws(SQLError) -> Bool {
    switch sqlite3_step(handle) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    default: throw SQLError(sqlite: sqlite3_db_handle(handle))
    }
  }

  func reset() { sqlite3_reset(handle) }

  func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }
  func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }
  func double(_ column: Int32) -> Double { sqlite3_column_double(handle, column) }

  func withBytes<Value>(
    _ column: Int32, _ body: (UnsafeRawBufferPointer) throws -> Value
  ) rethrows -> Value {
    // The pointer stays valid until the next step or reset, so longer than the call.
    let address = sqlite3_column_blob(handle, column)
    let count = Int(sqlite3_column_bytes(handle, column))
    return try body(UnsafeRawBufferPointer(start: address, count: address == nil ? 0 : count))
  }

  func giveBack() {
    sqlite3_reset(handle)
    sqlite3_clear_bindings(handle)
    isLent = false
  }
}
