import SQLDatabase

/// The writes of a subject: a type for each, on the writing thread's session.
protocol WritingSubject {
  var session: WriteSession { get }
}

extension WriteSession: WritingSubject {
  var session: WriteSession { self }
}

extension WritingSubject {
  var connection: SQLiteConnection { session.connection }
  var templates: TemplateTable { session.templates }
  /// See ``WriteSession/revision``.
  var revision: Int64 { session.revision }

  /// Runs a statement with a number.
  /// - Returns: The number of changed rows.
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
