import CSQLite

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The write-ahead log as a file, which can be synced while the connection that writes it continues
/// to write.
///
/// A sync applies to the file, not to its caller: everything written before it, by any handle, is
/// on the disk after it. It uses the engine's own VFS, which knows the right call for the system
/// (`fdatasync` here, `F_FULLFSYNC` there); the VFS holds no locks on a log that closing a handle
/// could drop.
/// - SeeAlso: <https://www.sqlite.org/c3ref/io_methods.html>
package final class SQLiteLogFile: @unchecked Sendable {
  // Created on one thread and then used by the one that syncs; both pointers are owned by this
  // object.
  private let name: UnsafePointer<CChar>
  private let file: UnsafeMutablePointer<sqlite3_file>

  /// - Parameters:
  ///   - path: The path of the database; the log must exist, so its connection must have written.
  ///   - fileSystem: As in ``SQLiteConnection/Options/fileSystem``.
  package init(database path: String, fileSystem: String? = nil) throws(SQLError) {
    guard let system = sqlite3_vfs_find(fileSystem),
      let name = sqlite3_create_filename(path, path + "-journal", path + "-wal", 0, nil),
      let log = sqlite3_filename_wal(name)
    else { throw SQLError(sqlite: SQLITE_NOMEM, message: "the log cannot be opened") }
    let size = Int(system.pointee.szOsFile)
    let memory = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 16)
    memory.initializeMemory(as: UInt8.self, repeating: 0, count: size)
    let file = memory.assumingMemoryBound(to: sqlite3_file.self)
    let code = system.pointee.xOpen(
      system, log, file, SQLITE_OPEN_WAL | SQLITE_OPEN_READWRITE, nil)
    guard code == SQLITE_OK else {
      memory.deallocate()
      sqlite3_free_filename(name)
      throw SQLError(sqlite: code, message: "its log cannot be opened")
    }
    self.name = name
    self.file = file
  }

  deinit {
    _ = file.pointee.pMethods?.pointee.xClose(file)
    UnsafeMutableRawPointer(file).deallocate()
    sqlite3_free_filename(name)
  }

  package func sync() throws(SQLError) {
    let code =
      file.pointee.pMethods?.pointee.xSync(file, SQLITE_SYNC_FULL | SQLITE_SYNC_DATAONLY)
      ?? SQLITE_MISUSE
    let reason = errno
    guard code != SQLITE_OK else { return }
    if code & 0xff == SQLITE_IOERR && reason == ENOSPC {
      throw SQLError(kind: .full, code: code, message: "the log cannot be synced: no space")
    }
    throw SQLError(sqlite: code, message: "the log cannot be synced")
  }
}
