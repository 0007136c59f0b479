import SQLDatabase

/// Another process's write lock on a store's file.
package final class HeldLock {
  private let connection: SQLiteConnection

  package init(path: String) throws {
    connection = try SQLiteConnection(path: path)
    try connection.execute(connection.dialect.beginWriting)
  }

  package func release() { connection.rollBack() }
}
