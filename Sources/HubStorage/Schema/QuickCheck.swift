import SQLDatabase

extension SQLConnection {
  /// Looks at both ends of every table, which takes the same few pages however many rows there are.
  /// It finds a file that is cut short or overwritten in large parts; a single damaged page shows
  /// when it is read.
  ///
  /// - Returns: What it has met; `nil` when nothing is wrong where it has looked.
  func quickCheck() -> SQLError? {
    do {
      var tables: [(name: String, isClustered: Bool)] = []
      do {
        let row = try statement(
          """
          SELECT name, sql LIKE '%WITHOUT ROWID' FROM sqlite_schema
          WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
          """)
        while try row.step() { tables.append((row.text(0), row.integer(1) != 0)) }
      }
      for table in tables {
        _ = try statement("SELECT * FROM \"\(table.name)\" LIMIT 1").step()
        guard !table.isClustered else { continue }
        _ = try statement("SELECT * FROM \"\(table.name)\" ORDER BY rowid DESC LIMIT 1").step()
      }
      return nil
    } catch {
      return error
    }
  }
}
