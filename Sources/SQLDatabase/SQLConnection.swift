/// One connection to a database. It is used by one thread at a time: the one that made it, which
/// is why it is not `Sendable`.
package protocol SQLConnection: AnyObject {
  var dialect: Dialect { get }
  /// A compiled statement, lent until it leaves scope; the connection caches it for reuse.
  /// - Parameter sql: One statement with placeholders `?1`, `?2`….
  func statement(_ sql: String) throws(SQLError) -> Statement
  /// Runs any number of statements without parameters or rows.
  func execute(_ sql: String) throws(SQLError)
  /// Starts a transaction.
  /// - Parameter sql: ``Dialect/beginWriting`` or ``Dialect/beginReading``.
  func begin(_ sql: String) throws
  /// Rows changed since the connection was opened; equal before and after means nothing was
  /// written.
  var totalChanges: Int { get }
  /// Whether a transaction is open; after some failures the engine ends it by itself.
  var isInTransaction: Bool { get }
  /// The number of the last migration that has been applied; 0 for a new database.
  func schemaVersion() throws(SQLError) -> Int
  /// Records the number of the last migration, in the current transaction.
  func setSchemaVersion(_ version: Int) throws(SQLError)
  /// Closes; no statement may be lent at that time. Later calls fail.
  func close()
}

extension SQLConnection {
  /// Runs one statement without parameters or rows; cheaper than ``execute(_:)`` when repeated.
  package func run(_ sql: String) throws(SQLError) { try statement(sql).run() }

  package func begin(_ sql: String) throws { try run(sql) }

  /// Runs a statement that gives no rows.
  /// - Returns: Number of changed rows.
  package func changes(running statement: borrowing Statement) throws(SQLError) -> Int {
    let before = totalChanges
    try statement.run()
    return totalChanges - before
  }

  /// Runs `body` in a transaction that can write, and commits it unless `body` throws.
  package func writing<Value>(_ body: () throws -> Value) throws -> Value {
    try begin(dialect.beginWriting)
    return try ending(body)
  }

  /// Runs `body` in a transaction that sees one state of the database throughout.
  package func reading<Value>(_ body: () throws -> Value) throws -> Value {
    try begin(dialect.beginReading)
    return try ending(body)
  }

  private func ending<Value>(_ body: () throws -> Value) throws -> Value {
    do {
      let value = try body()
      try run("COMMIT")
      return value
    } catch {
      rollBack()
      throw error
    }
  }

  /// Rolls the transaction back, if one is open.
  package func rollBack() {
    // It can only fail when the engine has already rolled back.
    if isInTransaction { try? run("ROLLBACK") }
  }
}

/// The few expressions in which SQL engines differ. All other SQL is written once.
///
/// Placeholders are written `?1`, `?2`… everywhere; a driver whose engine spells them differently
/// translates them when it prepares the statement.
package struct Dialect: Hashable, Sendable {
  /// The type of a 64-bit integer column.
  package let integer: String
  /// The type of a column of bytes.
  package let bytes: String
  /// The type and constraint of a column that numbers the rows of its table, with our own numbers.
  package let rowNumber: String
  /// The clause after the column list of a table whose rows are stored in the order of their key.
  package let clustered: String
  /// Begins a transaction that will write.
  package let beginWriting: String
  /// Begins a transaction that only reads, all of it from one state of the database.
  package let beginReading: String
  /// The clause after a query whose rows the transaction will change, which locks them against
  /// others.
  package var lockingRows = ""
  /// The same, passing over rows that another transaction has locked.
  package var freeRows = ""
  /// As ``lockingRows``, for rows that are not changed.
  package var sharingRows = ""

  package static let sqlite = Dialect(
    integer: "INTEGER", bytes: "BLOB", rowNumber: "INTEGER PRIMARY KEY",
    clustered: "WITHOUT ROWID", beginWriting: "BEGIN IMMEDIATE", beginReading: "BEGIN")
}
