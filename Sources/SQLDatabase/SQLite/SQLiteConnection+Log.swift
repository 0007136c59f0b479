import CSQLite

/// The write-ahead log: commits append to it, and from time to time it is copied into the database
/// file, after which it starts again.
/// - SeeAlso: <https://www.sqlite.org/wal.html#ckpt>
extension SQLiteConnection {
  /// Number of pages in the log after this connection's last commit; 0 when the connection
  /// checkpoints by itself (``Options/logPages``).
  package var logPageCount: Int { Int(logPages.pointee) }

  /// Makes every commit record the length of the log.
  func countLogPages() {
    sqlite3_wal_hook(
      handle,
      { context, _, _, pages in
        context?.assumingMemoryBound(to: Int32.self).pointee = pages
        return SQLITE_OK
      }, logPages)
  }

  /// Copies as much of the log as is possible without waiting for other connections, and syncs the
  /// file.
  /// - Returns: Number of pages in the log, and number of those that have been copied. When they
  ///   are equal and no reader needs the log, the next write restarts it. Both are 0 when another
  ///   connection is copying.
  package func copyLog() throws(SQLError) -> (pages: Int, copied: Int) {
    var pages: Int32 = 0
    var copied: Int32 = 0
    let code = sqlite3_wal_checkpoint_v2(
      handle, nil, SQLITE_CHECKPOINT_PASSIVE, &pages, &copied)
    if code & 0xff == SQLITE_BUSY { return (0, 0) }
    guard code == SQLITE_OK else { throw SQLError(sqlite: handle) }
    return (Int(pages), Int(copied))
  }
}
