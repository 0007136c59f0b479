import SQLDatabase

/// Another process's write lock on a store's file.
final class HeldLock {
  private let connection: SQLiteConnection

  init(path: String) throws {
    connection = try SQLiteConnection(path: path)
    try connection.execute(connection.dialect.beginWriting)
  }

  func release() { connection.rollBack() }
}
