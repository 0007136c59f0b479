/// The few expressions in which SQL engines differ. All other SQL is written once.
///
/// Placeholders are written `?1`, `?2`… everywhere; a driver whose engine spells them differently
/// translates them when it prepares the statement.
package struct Dialect: Hashable, Sendable {
  /// The type of a 64-bit integer column.
  package let integer: String
  /// The type of a column of bytes.
  package let bytes: String
  /// The type and constraint of a column that numbers the rows of its table, numbers given by us.
  package let rowNumber: String
  /// What follows the column list of a table whose rows are stored in the order of their key.
  package let clustered: String
  /// Starts a transaction that will write.
  package let beginWriting: String
  /// Starts a transaction that only reads, all of it from one state of the database.
  package let beginReading: String

  package init(
    integer: String, bytes: String, rowNumber: String, clustered: String, beginWriting: String,
    beginReading: String
  ) {
    self.integer = integer
    self.bytes = bytes
    self.rowNumber = rowNumber
    self.clustered = clustered
    self.beginWriting = beginWriting
    self.beginReading = beginReading
  }

  package static let sqlite = Dialect(
    integer: "INTEGER", bytes: "BLOB", rowNumber: "INTEGER PRIMARY KEY",
    clustered: "WITHOUT ROWID", beginWriting: "BEGIN IMMEDIATE", beginReading: "BEGIN")
}
