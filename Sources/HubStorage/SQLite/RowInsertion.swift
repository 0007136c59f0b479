import SQLDatabase

/// An `INSERT` of several rows a statement; what is left over goes row by row.
///
/// Starting a statement, which opens the table and all of its indexes, costs SQLite about as much as a
/// row.
struct RowInsertion {
  private let rowsPerStatement: Int
  private let one: String
  private let several: String
  private let width: Int32

  /// - Parameters:
  ///   - columns: Their names, in the order in which values are bound.
  ///   - conflict: What follows the rows, as `ON CONFLICT DO NOTHING`.
  init(
    into table: String, _ columns: [String], conflict: String = "", rowsPerStatement: Int = 8
  ) {
    self.rowsPerStatement = rowsPerStatement
    let row = "(" + columns.map { _ in "?" }.joined(separator: ", ") + ")"
    func sql(rows: Int) -> String {
      let rows = Array(repeating: row, count: rows).joined(separator: ", ")
      return "INSERT INTO \(table) (\(columns.joined(separator: ", "))) VALUES \(rows) \(conflict)"
    }
    one = sql(rows: 1)
    several = sql(rows: rowsPerStatement)
    width = Int32(columns.count)
  }

  /// - Parameter bind: Binds all values of a row, from parameter `first` on.
  func insert<Row>(
    _ rows: some RandomAccessCollection<Row>, on connection: SQLiteConnection,
    bind: (Row, borrowing Statement, _ first: Int32) throws -> Void
  ) throws {
    var rest = rows[...]
    while !rest.isEmpty {
      let count = rest.count < rowsPerStatement ? 1 : rowsPerStatement
      let statement = try connection.statement(count == 1 ? one : several)
      for (index, row) in rest.prefix(count).enumerated() {
        try bind(row, statement, 1 + Int32(index) * width)
      }
      try statement.run()
      rest = rest.dropFirst(count)
    }
  }
}
