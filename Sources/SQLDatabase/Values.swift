/// A value that can be bound to a statement.
package protocol SQLValue {
  func bind(to statement: borrowing Statement, at index: Int32) throws(SQLError)
}

extension Int64: SQLValue {
  package func bind(to statement: borrowing Statement, at index: Int32) throws(SQLError) {
    try statement.bind(self, at: index)
  }
}

extension Bool: SQLValue {
  package func bind(to statement: borrowing Statement, at index: Int32) throws(SQLError) {
    try statement.bind(self, at: index)
  }
}

extension String: SQLValue {
  package func bind(to statement: borrowing Statement, at index: Int32) throws(SQLError) {
    try statement.bind(self, at: index)
  }
}

extension Double: SQLValue {
  package func bind(to statement: borrowing Statement, at index: Int32) throws(SQLError) {
    try statement.bind(self, at: index)
  }
}

extension [UInt8]: SQLValue {
  package func bind(to statement: borrowing Statement, at index: Int32) throws(SQLError) {
    try statement.bind(self, at: index)
  }
}

extension Optional: SQLValue where Wrapped: SQLValue {
  package func bind(to statement: borrowing Statement, at index: Int32) throws(SQLError) {
    guard let self else { return try statement.bind(Int64?.none, at: index) }
    try self.bind(to: statement, at: index)
  }
}

extension Statement {
  /// Binds the values of `?1`, `?2` and so on.
  package func bind<each Value: SQLValue>(_ values: repeat each Value) throws(SQLError) {
    var index: Int32 = 0
    for value in repeat each values {
      index += 1
      try value.bind(to: self, at: index)
    }
  }

  /// Runs the statement, which returns no rows, with these values; it can be run again with others.
  package func run<each Value: SQLValue>(_ values: repeat each Value) throws(SQLError) {
    try bind(repeat each values)
    try run()
    reset()
  }
}

extension SQLConnection {
  /// A statement with the values of `?1`, `?2` and so on.
  ///
  /// For infrequent statements. Those that run for each device bind their values individually,
  /// because every value is boxed here.
  package func statement(
    _ sql: String, _ first: any SQLValue, _ others: any SQLValue...
  ) throws(SQLError) -> Statement {
    try statement(sql, values: [first] + others)
  }

  package func statement(
    _ sql: String, values: [any SQLValue]
  ) throws(SQLError) -> Statement {
    let row = try statement(sql)
    for (index, value) in values.enumerated() { try value.bind(to: row, at: Int32(index + 1)) }
    return row
  }

  /// The results of `body` for each row of a statement with these values.
  package func rows<Value>(
    _ sql: String, _ values: any SQLValue..., body: (borrowing Statement) throws -> Value
  ) throws -> [Value] {
    let row = try statement(sql, values: values)
    var found: [Value] = []
    while try row.step() { found.append(try body(row)) }
    return found
  }

  /// Runs a statement without rows, with the values of `?1`, `?2` and so on.
  /// - Returns: Number of changed rows.
  @discardableResult
  package func change(_ sql: String, _ values: any SQLValue...) throws(SQLError) -> Int {
    try changes(running: statement(sql, values: values))
  }

  /// The numbers in the first column.
  package func numbers(_ sql: String, _ values: any SQLValue...) throws -> [Int64] {
    let row = try statement(sql, values: values)
    var numbers: [Int64] = []
    while try row.step() { numbers.append(row.integer(0)) }
    return numbers
  }
}
