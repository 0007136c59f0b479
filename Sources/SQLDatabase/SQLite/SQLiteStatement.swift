import CSQLite

/// One compiled SQLite statement; finalized with this object.
/// - SeeAlso: <https://www.sqlite.org/c3ref/stmt.html>
final class SQLiteStatement: StatementDriver {
  /// Between ``SQLiteConnection/statement(_:)`` and ``giveBack()``.
  var isLent = false
  let sql: String
  /// Owned by this object.
  private let handle: OpaquePointer
  /// Bound texts and bytes, as far as they fit: SQLite reads them there instead of allocating a copy
  /// of each. They stay until the statement is given back. Owned by this object.
  private var bound: UnsafeMutableRawBufferPointer?
  private var boundCount = 0

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

  deinit {
    sqlite3_finalize(handle)
    bound?.deallocate()
  }

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
      let kept = keep(UnsafeRawBufferPointer(bytes))
      return sqlite3_bind_text(
        handle, index, (kept ?? UnsafeRawPointer(address)).assumingMemoryBound(to: CChar.self),
        Int32(clamping: bytes.count), kept == nil ? belfry_sqlite_transient() : nil)
    }
    try check(code)
  }

  /// SQLite gets `nil` as the destructor of these: it neither copies nor frees them.
  /// - Returns: The address of a copy; `nil` if there is no more room.
  private func keep(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawPointer? {
    let room =
      bound
      ?? .allocate(
        byteCount: max(1_024, 64 * Int(sqlite3_bind_parameter_count(handle))), alignment: 1)
    bound = room
    guard bytes.count <= room.count - boundCount else { return nil }
    let copy = UnsafeMutableRawBufferPointer(rebasing: room[boundCount...].prefix(bytes.count))
    copy.copyMemory(from: bytes)
    boundCount += bytes.count
    return UnsafeRawPointer(copy.baseAddress)
  }

  func bind(_ bytes: [UInt8], at index: Int32) throws(SQLError) {
    let code = bytes.withUnsafeBytes { bytes in
      guard let address = bytes.baseAddress, !bytes.isEmpty else {
        return sqlite3_bind_zeroblob(handle, index, 0)
      }
      let kept = keep(bytes)
      return sqlite3_bind_blob64(
        handle, index, kept ?? address, UInt64(bytes.count),
        kept == nil ? belfry_sqlite_transient() : nil)
    }
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

  // Parameters stay bound, so what they point to stays, too.
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
    boundCount = 0
    isLent = false
  }
}
