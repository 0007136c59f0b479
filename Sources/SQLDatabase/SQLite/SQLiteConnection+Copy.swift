#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Copies of a database, and checks of its integrity.
extension SQLiteConnection {
  /// Writes the current contents of the database into a new file that only its owner can read.
  /// Other connections can continue to write; the log cannot restart until the copy is complete.
  ///
  /// The copy has no log of its own, and is on the disk when the call returns.
  /// - Parameter copy: A path at which there is no file.
  /// - Throws: ``SQLError``; an incomplete copy is removed.
  package func writeCopy(to copy: String) throws(SQLError) {
    Self.makePrivateFile(copy)
    do throws(SQLError) {
      let vacuum = try statement("VACUUM INTO ?1", copy)
      try vacuum.run()
      let file = openFile(copy, O_RDWR | O_CLOEXEC, 0)
      defer { if file >= 0 { closeFile(file) } }
      guard file >= 0, fsync(file) == 0 else {
        throw SQLError(
          kind: errno == ENOSPC ? .full : .inputOutput, code: errno,
          message: "the copy cannot be written to the disk")
      }
    } catch {
      unlink(copy)
      throw error
    }
  }

  /// Size of the database in bytes, including the log.
  package func size() throws(SQLError) -> Int64 {
    try integer("PRAGMA page_count") * integer("PRAGMA page_size")
  }

  /// The program's own mark in the file's header; see ``Options/applicationID``.
  package func applicationID() throws(SQLError) -> Int {
    Int(try integer("PRAGMA application_id"))
  }

  /// Checks the whole file.
  ///
  /// - Parameter comparesIndexes: Also checks each index against the rows of its table, which takes
  ///   several times as long.
  /// - Returns: Faults in the engine's words, up to twenty; empty when there are none.
  package func faults(comparesIndexes: Bool) -> [String] {
    do throws(SQLError) {
      let row = try statement("PRAGMA \(comparesIndexes ? "integrity" : "quick")_check(20)")
      var faults: [String] = []
      while try row.step() { faults.append(row.text(0)) }
      return faults == ["ok"] ? [] : faults
    } catch {
      return [error.message]
    }
  }
}

/// Free space of a disk.
package enum DiskSpace {
  /// Number of bytes that this user can still write on the disk of a file or directory; `nil` where
  /// the system does not tell.
  package static func available(at path: String) -> Int64? {
    var status = statvfs()
    guard statvfs(path, &status) == 0 else { return nil }
    let (bytes, isTooMuch) = UInt64(status.f_bavail)
      .multipliedReportingOverflow(by: UInt64(status.f_frsize))
    return isTooMuch ? .max : Int64(clamping: bytes)
  }
}
