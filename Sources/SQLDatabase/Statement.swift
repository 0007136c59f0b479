/// A compiled statement on loan from its connection; it goes back, reset, when it leaves scope.
///
/// Use it inside the thread that owns the connection. Parameters count from 1, columns from 0.
package struct Statement: ~Copyable {
  private let driver: any StatementDriver

  package init(driver: any StatementDriver) { self.driver = driver }

  deinit { driver.giveBack() }

  package func bind(_ value: Int64, at index: Int32) throws(SQLError) {
    try driver.bind(value, at: index)
  }

  package func bind(_ value: Int64?, at index: Int32) throws(SQLError) {
    if let value { try driver.bind(value, at: index) } else { try driver.bindNull(at: index) }
  }

  package func bind(_ value: Double, at index: Int32) throws(SQLError) {
    try driver.bind(value, at: index)
  }

  /// As 1 or 0.
  package func bind(_ flag: Bool, at index: Int32) throws(SQLError) {
    try driver.bind(Int64(flag ? 1 : 0), at: index)
  }

  package func bind(_ text: String, at index: Int32) throws(SQLError) {
    try driver.bind(text, at: index)
  }

  package func bind(_ text: String?, at index: Int32) throws(SQLError) {
    if let text { try driver.bind(text, at: index) } else { try driver.bindNull(at: index) }
  }

  package func bind(_ bytes: [UInt8], at index: Int32) throws(SQLError) {
    try driver.bind(bytes, at: index)
  }

  package func bind(_ bytes: [UInt8]?, at index: Int32) throws(SQLError) {
    if let bytes { try driver.bind(bytes, at: index) } else { try driver.bindNull(at: index) }
  }

  /// Moves to the next row.
  /// - Returns: `false` when there is none; the statement has then run to its end.
  package func step() throws(SQLError) -> Bool { try driver.step() }

  /// Runs a statement without rows.
  package func run() throws(SQLError) { while try driver.step() {} }

  /// Resets the statement for another run; parameters keep their values until bound again.
  package func reset() { driver.reset() }

  package func isNull(_ column: Int32) -> Bool { driver.isNull(column) }
  /// 0 when null.
  package func integer(_ column: Int32) -> Int64 { driver.integer(column) }
  package func optionalInteger(_ column: Int32) -> Int64? {
    driver.isNull(column) ? nil : driver.integer(column)
  }
  /// 0 when null.
  package func double(_ column: Int32) -> Double { driver.double(column) }
  /// Empty when null; bytes that are not UTF-8 are replaced.
  package func text(_ column: Int32) -> String {
    driver.withBytes(column) { String(decoding: $0, as: UTF8.self) }
  }
  package func optionalText(_ column: Int32) -> String? { isNull(column) ? nil : text(column) }
  /// Empty when null.
  package func bytes(_ column: Int32) -> [UInt8] { driver.withBytes(column) { [UInt8]($0) } }
  package func optionalBytes(_ column: Int32) -> [UInt8]? { isNull(column) ? nil : bytes(column) }
  /// Lends the bytes of a text or bytes column, without a copy, for the length of the call.
  package func withBytes<Value>(
    _ column: Int32, _ body: (UnsafeRawBufferPointer) throws -> Value
  ) rethrows -> Value {
    try driver.withBytes(column, body)
  }
}

/// The operations of a driver for a ``Statement``.
package protocol StatementDriver: AnyObject {
  func bind(_ value: Int64, at index: Int32) throws(SQLError)
  func bind(_ value: Double, at index: Int32) throws(SQLError)
  func bind(_ text: String, at index: Int32) throws(SQLError)
  func bind(_ bytes: [UInt8], at index: Int32) throws(SQLError)
  func bindNull(at index: Int32) throws(SQLError)
  func step() throws(SQLError) -> Bool
  func reset()
  func isNull(_ column: Int32) -> Bool
  func integer(_ column: Int32) -> Int64
  func double(_ column: Int32) -> Double
  func withBytes<Value>(
    _ column: Int32, _ body: (UnsafeRawBufferPointer) throws -> Value
  ) rethrows -> Value
  /// Resets and forgets the parameters; the connection may then lend it again.
  func giveBack()
}
