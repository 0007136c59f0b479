import CSQLite

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

extension SQLError {
  /// The error for an extended result code.
  /// - SeeAlso: <https://www.sqlite.org/rescode.html>
  init(sqlite code: Int32, message: String) {
    let kind: Kind =
      switch code & 0xff {
      case SQLITE_FULL: .full
      case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL: .locked
      case SQLITE_CORRUPT: .corrupt
      case SQLITE_NOTADB: .notADatabase
      case SQLITE_READONLY: .readOnly
      case SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_AUTH: .cannotOpen
      case SQLITE_IOERR: .inputOutput
      case SQLITE_CONSTRAINT: .constraint
      default: .other
      }
    self.init(kind: kind, code: code, message: message)
  }

  /// The error that a connection reports for its last call.
  init(sqlite handle: OpaquePointer?) {
    guard let handle else {
      self.init(kind: .other, code: SQLITE_NOMEM, message: "out of memory")
      return
    }
    let code = sqlite3_extended_errcode(handle)
    let message = String(cString: sqlite3_errmsg(handle))
    if code & 0xff == SQLITE_IOERR && sqlite3_system_errno(handle) == ENOSPC {
      // A full disk shows as a failed write where SQLite did not expect one, as in a sync.
      self.init(kind: .full, code: code, message: message)
    } else {
      self.init(sqlite: code, message: message)
    }
  }
}
