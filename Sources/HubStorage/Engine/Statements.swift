import SQLDatabase

/// A value that a statement is given.
protocol SQLValue {
  func bind(to statement: borrowing Statement, at index: Int32) throws(SQLError)
}

extension Int64: SQLValue {
  func bind(to statement: borrowing Statement, at index: Int32) throws(SQLError) {
    try statement.bind(self, at: index)
  }
}

extension Bool: SQLValue {
  func bind(to statement: borrowing Statement, at index: Int32) throws(SQLError) {
    try statement.bind(self, at: index)
  }
}

extension String: SQLValue {
  func bind(to statement: borrowing Statement, at index: Int32) throws(SQLError) {
    try statement.bind(self, at: index)
  }
}

extension Double: SQLValue {
  func bind(to statement: borrowing Statement, at index: Int32) throws(SQLError) {
    try statement.bind(self, at: index)
  }
}

extension [UInt8]: SQLValue {
  func bind(to statement: borrowing Statement, at index: Int32) throws(SQLError) {
    try statement.bind(self, at: index)
  }
}

extension Optional: SQLValue where Wrapped: SQLValue {
  func bind(to statement: borrowing Statement, at index: Int32) throws(SQLError) {
    guard let self else { return try statement.bind(Int64?.none, at: index) }
    try self.bind(to: statement, at: index)
  }
}

extension SQLConnection {
  /// A statement with the values of `?1`, `?2` and so on.
  ///
  /// For what is done now and then. What is done for each device binds by itself: here every value
  /// costs a box.
  func statement(
    _ sql: String, _ first: any SQLValue, _ others: any SQLValue...
  ) throws(SQLError) -> Statement {
    try statement(sql, values: [first] + others)
  }

  func statement(
    _ sql: String, values: [any SQLValue]
  ) throws(SQLError) -> Statement {
    let row = try statement(sql)
    for (index, value) in values.enumerated() { try value.bind(to: row, at: Int32(index + 1)) }
    return row
  }

  /// What `body` makes of each row of a statement with these values.
  func rows<Value>(
    _ sql: String, _ values: any SQLValue..., body: (borrowing Statement) throws -> Value
  ) throws -> [Value] {
    let row = try statement(sql, values: values)
    var found: [Value] = []
    while try row.step() { found.append(try body(row)) }
    return found
  }

  /// Runs a statement that gives no rows, with the values of `?1`, `?2` and so on.
  /// - Returns: How many rows it has changed.
  @discardableResult
  func change(_ sql: String, _ values: any SQLValue...) throws(SQLError) -> Int {
    try changes(running: statement(sql, values: values))
  }

  /// The numbers in the first column.
  func numbers(_ sql: String, _ values: any SQLValue...) throws -> [Int64] {
    let row = try statement(sql, values: values)
    var numbers: [Int64] = []
    while try row.step() { numbers.append(row.integer(0)) }
    return numbers
  }
}

extension WriteSession {
  /// Runs a statement with a number.
  /// - Returns: How many rows it has changed.
  @discardableResult
  func execute(_ sql: String, _ number: Int64) throws -> Int {
    let row = try connection.statement(sql)
    try row.bind(number, at: 1)
    return try connection.changes(running: row)
  }

  /// As above, with the values of `?1`, `?2` and so on; see ``SQLConnection/statement(_:_:_:)``.
  @discardableResult
  func execute(_ sql: String, _ values: any SQLValue...) throws -> Int {
    try connection.changes(running: connection.statement(sql, values: values))
  }

  func first(_ sql: String, _ number: Int64? = nil) throws -> Int64? {
    let row = try connection.statement(sql)
    if let number { try row.bind(number, at: 1) }
    return try row.step() ? row.integer(0) : nil
  }
}
