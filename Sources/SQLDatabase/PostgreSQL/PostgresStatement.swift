import CPostgres

/// One statement whose parameters a PostgreSQL server has described; it stays prepared there until
/// its connection deallocates it. Values travel in binary form; the rows of an answer are held
/// whole.
/// - SeeAlso: <https://www.postgresql.org/docs/current/libpq-exec.html>
final class PostgresStatement: StatementDriver {
  /// The types that are written and read here, by their numbers in `pg_type`.
  private enum TypeNumber {
    static let bool: Oid = 16
    static let bytes: Oid = 17
    static let int8: Oid = 20
    static let int2: Oid = 21
    static let int4: Oid = 23
    static let float4: Oid = 700
    static let float8: Oid = 701
  }

  /// The connection that has lent it, between ``PostgresConnection/statement(_:)`` and
  /// ``giveBack()``: a connection stays as long as one of its statements is in use.
  private var lender: PostgresConnection?
  /// The connection's loan counter when it was last lent.
  private(set) var lastLoan = 0
  /// The name on the server; `nil` when it is not prepared there, and sent with each use.
  let name: String?
  private let text: String
  /// The types that the server has inferred for the parameters.
  private let types: [Oid]
  private var values: [[UInt8]?]
  /// Owned by this object; the current result.
  private var result: OpaquePointer?
  private var row: Int32 = -1

  init(_ sql: String, named name: String?, on connection: PostgresConnection) throws(SQLError) {
    self.name = name
    text = Self.translated(sql)
    types = try connection.parameters(ofPreparing: text, as: name ?? "")
    values = Array(repeating: nil, count: types.count)
  }

  deinit { PQclear(result) }

  var isLent: Bool { lender != nil }

  func lend(by connection: PostgresConnection, loan: Int) {
    lender = connection
    lastLoan = loan
  }

  /// Translates `?1` to `$1`, outside of quotes.
  static func translated(_ sql: String) -> String {
    var out: [UInt8] = []
    var quote: UInt8?
    for byte in sql.utf8 {
      if let open = quote {
        if byte == open { quote = nil }
      } else if byte == UInt8(ascii: "'") || byte == UInt8(ascii: "\"") {
        quote = byte
      } else if byte == UInt8(ascii: "?") {
        out.append(UInt8(ascii: "$"))
        continue
      }
      out.append(byte)
    }
    return String(decoding: out, as: UTF8.self)
  }

  // MARK: Parameters

  private func set(_ bytes: [UInt8]?, at index: Int32) throws(SQLError) {
    guard values.indices.contains(Int(index) - 1) else {
      throw SQLError(kind: .other, code: 0, message: "there is no parameter \(index)")
    }
    values[Int(index) - 1] = bytes
  }

  private func type(at index: Int32) -> Oid {
    types.indices.contains(Int(index) - 1) ? types[Int(index) - 1] : 0
  }

  func bind(_ value: Int64, at index: Int32) throws(SQLError) {
    switch type(at: index) {
    case TypeNumber.int2: try set(Self.bytes(Int16(clamping: value)), at: index)
    case TypeNumber.int4: try set(Self.bytes(Int32(clamping: value)), at: index)
    case TypeNumber.bool: try set([value == 0 ? 0 : 1], at: index)
    case TypeNumber.float8: try bind(Double(value), at: index)
    case TypeNumber.int8: try set(Self.bytes(value), at: index)
    // The server treats a parameter of unknown type as text.
    default: try bind(String(value), at: index)
    }
  }

  func bind(_ value: Double, at index: Int32) throws(SQLError) {
    switch type(at: index) {
    case TypeNumber.float4: try set(Self.bytes(Float(value).bitPattern), at: index)
    case TypeNumber.float8: try set(Self.bytes(value.bitPattern), at: index)
    default: try bind(String(value), at: index)
    }
  }

  func bind(_ text: String, at index: Int32) throws(SQLError) {
    try set(Array(text.utf8), at: index)
  }

  func bind(_ bytes: [UInt8], at index: Int32) throws(SQLError) { try set(bytes, at: index) }

  func bindNull(at index: Int32) throws(SQLError) { try set(nil, at: index) }

  private static func bytes(_ value: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: value.bigEndian) { Array($0) }
  }

  // MARK: Rows

  func step() throws(SQLError) -> Bool {
    if result == nil, try start() { return false }
    guard row + 1 < PQntuples(result) else { return false }
    row += 1
    return true
  }

  /// - Returns: Whether it was only sent, and has no rows yet; see
  ///   ``PostgresConnection/pipelined(_:)``.
  private func start() throws(SQLError) -> Bool {
    guard let connection = lender else {
      throw SQLError(kind: .other, code: 0, message: "the statement was given back")
    }
    let lengths = values.map { Int32(clamping: $0?.count ?? 0) }
    let formats = values.map { _ in Int32(1) }
    // All values in one allocation whose address is stable during the call.
    var joined: [UInt8] = []
    joined.reserveCapacity(values.reduce(1) { $0 + ($1?.count ?? 0) })
    for value in values { if let value { joined += value } }
    joined.append(0)
    var isSent = false
    let answer = joined.withUnsafeBufferPointer { bytes -> OpaquePointer? in
      var offset = 0
      let pointers = values.map { value -> UnsafePointer<CChar>? in
        guard let value, let start = bytes.baseAddress else { return nil }
        defer { offset += value.count }
        return UnsafeRawPointer(start + offset).assumingMemoryBound(to: CChar.self)
      }
      let (handle, count) = (connection.handle, Int32(values.count))
      switch (name, connection.isPipelining) {
      case (let name?, true):
        isSent = PQsendQueryPrepared(handle, name, count, pointers, lengths, formats, 1) == 1
      case (let name?, false):
        return connection.answer(
          ifSent: PQsendQueryPrepared(handle, name, count, pointers, lengths, formats, 1))
      case (nil, true):
        isSent = PQsendQueryParams(handle, text, count, types, pointers, lengths, formats, 1) == 1
      case (nil, false):
        return connection.answer(
          ifSent: PQsendQueryParams(handle, text, count, types, pointers, lengths, formats, 1))
      }
      return nil
    }
    if connection.isPipelining {
      guard isSent else { throw SQLError(postgresConnection: connection.handle) }
      connection.sent.append((self, lastLoan))
      return true
    }
    do {
      try connection.check(answer)
    } catch {
      PQclear(answer)
      throw error
    }
    if let answer { take(answer) }
    return false
  }

  /// Gets a result, which it owns from now on.
  func take(_ answer: OpaquePointer) {
    PQclear(result)
    result = answer
    row = -1
  }

  func reset() {
    PQclear(result)
    result = nil
    row = -1
  }

  func giveBack() {
    reset()
    values = Array(repeating: nil, count: types.count)
    let lender = lender
    self.lender = nil
    lender?.takeBack(self)
  }

  func isNull(_ column: Int32) -> Bool { PQgetisnull(result, row, column) != 0 }

  func integer(_ column: Int32) -> Int64 {
    withBytes(column) { bytes in
      switch PQftype(result, column) {
      case TypeNumber.float8, TypeNumber.float4: Int64(exactly: double(column).rounded()) ?? 0
      default:
        // Two's complement of any width, the most significant byte first.
        bytes.first.map { first in
          bytes.reduce(first >= 0x80 && bytes.count > 1 ? -1 : 0) { $0 << 8 | Int64($1) }
        } ?? 0
      }
    }
  }

  func double(_ column: Int32) -> Double {
    withBytes(column) { bytes in
      let bits = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      switch PQftype(result, column) {
      case TypeNumber.float8: return Double(bitPattern: bits)
      case TypeNumber.float4: return Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits)))
      default: return Double(integer(column))
      }
    }
  }

  func withBytes<Value>(
    _ column: Int32, _ body: (UnsafeRawBufferPointer) throws -> Value
  ) rethrows -> Value {
    guard !isNull(column), let start = PQgetvalue(result, row, column) else {
      return try body(UnsafeRawBufferPointer(start: nil, count: 0))
    }
    return try body(
      UnsafeRawBufferPointer(start: start, count: Int(PQgetlength(result, row, column))))
  }
}

extension SQLError {
  /// The error of a failed result.
  /// - SeeAlso: <https://www.postgresql.org/docs/current/errcodes-appendix.html>
  init(postgres result: OpaquePointer?, connection: OpaquePointer?) {
    let state = result.flatMap { belfry_pq_sqlstate($0) }.map { String(cString: $0) } ?? ""
    // Only the first line: the detail below it contains values.
    let message =
      result.flatMap { belfry_pq_message($0) }.map { String(cString: $0) }
      ?? Self.text(PQerrorMessage(connection))
    self.init(
      kind: Self.kind(sqlState: state), code: Int32(state, radix: 36) ?? 0, message: message)
  }

  /// The error of a connection that could not be established, or was lost.
  init(postgresConnection connection: OpaquePointer?) {
    self.init(
      kind: .cannotOpen, code: 0, message: Self.text(PQerrorMessage(connection), ofHosts: true))
  }

  /// - Parameter ofHosts: With what libpq says of each host that it has tried, in lines that begin
  ///   so; otherwise the first line alone.
  private static func text(
    _ message: UnsafePointer<CChar>?, ofHosts: Bool = false
  ) -> String {
    guard let message else { return "out of memory" }
    let lines = String(cString: message).split(separator: "\n")
    guard let first = lines.first else { return "the connection is lost" }
    let others = lines.dropFirst().filter { line in
      ofHosts
        && ["connection to server", "could not translate host name"].contains(where: line.hasPrefix)
    }
    return ([first] + others).joined(separator: "; ")
  }

  private static func kind(sqlState state: String) -> Kind {
    switch state {
    case "53100": .full
    case "22021", "22P05", "54000": .unfitValue
    case "40001", "40P01": .conflict
    case "55P03", "55006": .locked
    case "XX001", "XX002": .corrupt
    case "25006": .readOnly
    case "42501": .notAllowed
    case "3D000", "28000", "28P01", "53300", "57P03": .cannotOpen
    case "58030": .inputOutput
    default:
      if state.hasPrefix("23") {
        .constraint
      } else if state.isEmpty || state.hasPrefix("08") || state.hasPrefix("57P") {
        // Without an SQLSTATE: the server has gone away in the middle.
        .cannotOpen
      } else {
        .other
      }
    }
  }
}
