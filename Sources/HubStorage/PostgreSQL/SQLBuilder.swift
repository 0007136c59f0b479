import SQLDatabase

/// A statement whose text depends on the query; values are bound, never written.
struct SQLBuilder {
  private var text = ""
  private var values: [any SQLValue] = []

  /// - Returns: The placeholder of a value.
  mutating func bind(_ value: any SQLValue) -> String {
    values.append(value)
    return "?\(values.count)"
  }

  static func += (builder: inout SQLBuilder, sql: String) { builder.text += sql }

  /// - Parameters:
  ///   - start: The SQL before the text.
  ///   - end: The SQL after it.
  func statement(
    on connection: any SQLConnection, _ start: String = "", _ end: String = ""
  ) throws -> Statement {
    try connection.statement("\(start)\(text) \(end)", values: values)
  }
}
