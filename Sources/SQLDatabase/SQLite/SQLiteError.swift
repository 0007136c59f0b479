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
    guard code & 0xff != SQLITE_NOMEM, code != Self.noMemoryForFile else {
      self.init(sqliteWithoutMemory: code)
      return
    }
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

  /// `SQLITE_IOERR_NOMEM`, which its header defines with an expression. Its text is that of a disk
  /// error.
  private static let noMemoryForFile: Int32 = SQLITE_IOERR | 12 << 8

  private init(sqliteWithoutMemory code: Int32) {
    self.init(
      kind: .inputOutput, code: code,
      message: "the system gives this process no more memory: raise its limit (MemoryMax= of its "
        + "service, ulimit -v in its shell), or give the machine more")
  }

  /// The error that a connection reports for its last call.
  init(sqlite handle: OpaquePointer?) {
    guard let handle else {
      self.init(sqliteWithoutMemory: SQLITE_NOMEM)
      return
    }
    let code = sqlite3_extended_errcode(handle)
    let message = String(cString: sqlite3_errmsg(handle))
    let reason = code & 0xff == SQLITE_IOERR ? sqlite3_system_errno(handle) : 0
    if reason == ENOSPC {
      // A full disk appears as a failed write where SQLite did not expect one, as in a sync.
      self.init(kind: .full, code: code, message: message)
    } else if reason == ENOMEM {
      // For example a file that cannot be mapped.
      self.init(sqliteWithoutMemory: code)
    } else {
      self.init(sqlite: code, message: message)
    }
  }
}
