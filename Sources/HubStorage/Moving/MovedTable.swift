import HubCore
import SQLDatabase

/// A value that is moved from one engine to the other.
enum MovedValue: Hashable, Sendable, SQLValue {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
  case bytes([UInt8])

  func bind(to statement: borrowing Statement, at index: Int32) throws(SQLError) {
    switch self {
    case .null: try statement.bind(Int64?.none, at: index)
    case .integer(let value): try statement.bind(value, at: index)
    case .real(let value): try statement.bind(value, at: index)
    case .text(let value): try statement.bind(value, at: index)
    case .bytes(let value): try statement.bind(value, at: index)
    }
  }

  init(_ value: Int64?) { self = value.map(MovedValue.integer) ?? .null }
  init(_ value: String?) { self = value.map(MovedValue.text) ?? .null }
  init(_ value: [UInt8]?) { self = value.map(MovedValue.bytes) ?? .null }

  var isNull: Bool { self == .null }
  var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
  var text: String? { if case .text(let value) = self { value } else { nil } }
  var bytes: [UInt8]? { if case .bytes(let value) = self { value } else { nil } }
}

/// A row in the form common to both engines. Its values have the numbers that a file assigns,
/// without the slot that a database adds to a number (``DeviceSlots/number(_:slot:)``).
struct MovedRow: Sendable {
  var values: [String: MovedValue]

  subscript(_ column: String) -> MovedValue {
    get { values[column] ?? .null }
    set { values[column] = newValue }
  }
}

struct MovedColumn: Sendable {
  enum Kind: Character, Sendable {
    case integer = "i"
    case real = "r"
    case text = "t"
    case bytes = "b"
    /// An array of texts, which only PostgreSQL has; it is moved as bytes.
    case texts = "a"
  }

  let name: String
  var kind: Kind

  /// - Parameter text: Names, each with its kind: `id:i name:t`.
  static func list(_ text: String) -> [MovedColumn] {
    text.split(whereSeparator: \.isWhitespace).map { word in
      let parts = word.split(separator: ":")
      guard parts.count == 2, let kind = parts[1].first.flatMap(Kind.init(rawValue:)) else {
        preconditionFailure("\(word) is not a column and its kind")
      }
      return MovedColumn(name: String(parts[0]), kind: kind)
    }
  }

  func value(_ row: borrowing Statement, at index: Int32) throws -> MovedValue {
    guard !row.isNull(index) else { return .null }
    switch kind {
    case .integer: return .integer(row.integer(index))
    case .real: return .real(row.double(index))
    // PostgreSQL's texts cannot contain the character U+0000.
    case .text: return .text(row.text(index).storable)
    case .bytes: return .bytes(row.bytes(index))
    case .texts:
      guard let texts = row.withBytes(index, { PostgresArray.texts(in: $0) }) else {
        throw StoreError.corrupt("an array cannot be read")
      }
      return .bytes(texts.movedBytes)
    }
  }
}

extension [String] {
  /// The texts as bytes, and back.
  var movedBytes: [UInt8] {
    var writer = ByteWriter()
    writer.write(UInt64(count))
    for text in self { writer.write(text) }
    return writer.bytes
  }

  init(moved bytes: [UInt8]) throws {
    var reader = ByteReader(bytes)
    self = try (0..<(try reader.count())).map { _ in try reader.text() }
  }
}

/// Rows that are moved together: the columns that both engines have of a subject, and the way each
/// engine reads and writes them.
struct MovedTable: Sendable {
  /// The name shown to users.
  let name: String
  /// The columns that are written, and compared in the end.
  let columns: [MovedColumn]
  let file: Form<ReadSession, WriteSession>
  let database: Form<PostgresSession, PostgresSession>

  /// - Parameter order: The columns, or expressions, by which both engines read it in steps.
  init(
    _ name: String, _ columns: [MovedColumn], order: [MovedColumn],
    where condition: String = "TRUE",
    file: (inout Form<ReadSession, WriteSession>) -> Void = { _ in },
    database: (inout Form<PostgresSession, PostgresSession>) -> Void = { _ in }
  ) {
    self.name = name
    self.columns = columns
    var fileForm = Form<ReadSession, WriteSession>(name, order: order, condition)
    var databaseForm = Form<PostgresSession, PostgresSession>(name, order: order, condition)
    file(&fileForm)
    database(&databaseForm)
    self.file = fileForm
    self.database = databaseForm
  }

  /// As above, with the columns that both engines have, read in the order of the key.
  init(
    _ table: StoredTable, where condition: String = "TRUE",
    file: (inout Form<ReadSession, WriteSession>) -> Void = { _ in },
    database: (inout Form<PostgresSession, PostgresSession>) -> Void = { _ in }
  ) {
    self.init(
      table.name, table.moved, order: table.keyColumns, where: condition, file: file,
      database: database)
  }

  struct Form<Reader, Writer>: Sendable {
    /// The tables of the engine that are read and written; what follows from them included.
    var tables: [String]
    /// The rows, called `t`; `%slot(…)` is the slot of a number.
    var from: String
    /// The condition that moved rows meet.
    var condition: String
    /// A unique key by which the rows are read in steps.
    var order: [MovedColumn]
    /// Expressions that are read in place of a column; other columns are read as they are.
    var expressions: [String: String] = [:]
    /// Kinds of columns that are read in a different form than they are moved in.
    var kinds: [String: MovedColumn.Kind] = [:]
    /// Columns that are read in addition, for ``finish`` and for writing by the other engine.
    var extra: [MovedColumn] = []
    /// Converts a row that was read to its moved form.
    var finish: (@Sendable (inout MovedRow, Reader, MoveReading) throws -> Void)?
    /// SQL values of further columns, for writing.
    var constants: [String: String] = [:]
    /// SQL written in place of a value, which is `?` in it.
    var written: [String: String] = [:]
    /// A statement that replaces the INSERT, with `?1`, `?2` and so on for ``columns``.
    var statement: String?
    /// Writes rows, where statements are not sufficient.
    var write: (@Sendable (Writer, [MovedRow]) throws -> Void)?

    init(_ name: String, order: [MovedColumn] = [], _ condition: String = "TRUE") {
      tables = [name]
      from = "\(name) AS t"
      self.order = order
      self.condition = condition
    }

    // MARK: Reading

    private func expression(_ column: String) -> String { expressions[column] ?? "t.\(column)" }

    func count(_ connection: any SQLConnection, slots: DeviceSlots? = nil) throws -> Int64 {
      let row = try connection.statement(
        Self.filled("SELECT COUNT(*) FROM \(from) WHERE \(condition)", slots))
      return try row.step() ? row.integer(0) : 0
    }

    /// - Parameter cursor: The position of the last row before, as in ``MovePage/cursor``.
    func page(
      _ columns: [MovedColumn], after cursor: [MovedValue]?, limit: Int, reader: Reader,
      on connection: any SQLConnection, slots: DeviceSlots? = nil, _ reading: MoveReading
    ) throws -> MovePage {
      let all = (columns + extra).map {
        MovedColumn(name: $0.name, kind: kinds[$0.name] ?? $0.kind)
      }
      let keys = order.map { expression($0.name) }
      var sql = "SELECT " + (all.map { expression($0.name) } + keys).joined(separator: ", ")
      sql += " FROM \(from) WHERE (\(condition))"
      if cursor != nil {
        let places = keys.indices.map { "?\($0 + 2)" }
        sql += " AND (\(keys.joined(separator: ", "))) > (\(places.joined(separator: ", ")))"
      }
      sql += " ORDER BY \(keys.joined(separator: ", ")) LIMIT ?1"
      let row = try connection.statement(
        Self.filled(sql, slots).replacing("%rank", with: reading.rank),
        values: [MovedValue.integer(Int64(limit))] + (cursor ?? []))
      var page = MovePage()
      var count = 0
      while try row.step() {
        var moved = MovedRow(values: Dictionary(minimumCapacity: all.count))
        for (index, column) in all.enumerated() {
          moved.values[column.name] = try column.value(row, at: Int32(index))
        }
        try finish?(&moved, reader, reading)
        page.rows.append(moved)
        count += 1
        guard count == limit else { continue }
        page.cursor = try order.enumerated().map {
          try $0.element.value(row, at: Int32(all.count + $0.offset))
        }
      }
      return page
    }

    private static func filled(_ sql: String, _ slots: DeviceSlots?) -> String {
      guard let slots else { return sql }
      return sql.replacing(/%slot\((?<number>[^)]*)\)/) {
        slots.sqlSlot(ofNumber: String($0.number))
      }
    }

    // MARK: Writing

    /// - Parameter sparingKnown: Keeps existing rows as they are.
    func insert(
      _ rows: [MovedRow], _ columns: [MovedColumn], on connection: any SQLConnection,
      sparingKnown: Bool = false
    ) throws {
      let row = try connection.statement(
        (statement ?? insertion(columns)) + (sparingKnown ? " ON CONFLICT DO NOTHING" : ""))
      for moved in rows {
        for (index, column) in columns.enumerated() {
          try moved[column.name].bind(to: row, at: Int32(index + 1))
        }
        try row.run()
        row.reset()
      }
    }

    private func insertion(_ columns: [MovedColumn]) -> String {
      let constants = constants.sorted { $0.key < $1.key }
      let names = columns.map(\.name) + constants.map(\.key)
      let values = columns.enumerated().map { index, column in
        (written[column.name] ?? "?").replacing("?", with: "?\(index + 1)")
      }
      return """
        INSERT INTO \(tables[0]) (\(names.joined(separator: ", ")))
        VALUES (\((values + constants.map(\.value)).joined(separator: ", ")))
        """
    }
  }
}

/// Rows in the order in which they are read.
struct MovePage: Sendable {
  var rows: [MovedRow] = []
  /// The position at which the next page begins; `nil` after the last.
  var cursor: [MovedValue]?
}

/// The context that is needed to read a row.
struct MoveReading: Sendable {
  /// The coding of the engine that is read.
  let coding: RegistrationIDCoding
  /// The transactions that accepted the notifications that are still being delivered, in their
  /// order: commit numbers in a file, else their snapshots. The last write of a registration has a
  /// rank among them: the number of those that did not see it.
  var marks: [MovedValue] = []

  /// The rank of a row of `registration`, in SQL for PostgreSQL.
  var rank: String {
    guard !marks.isEmpty else { return "0::int8" }
    let list = marks.compactMap(\.text).map { "'\($0)'" }.joined(separator: ", ")
    return """
      (SELECT COUNT(*) FROM unnest(ARRAY[\(list)]::text[]) AS m (snapshot)
        WHERE NOT pg_visible_in_snapshot(t.written, m.snapshot::pg_snapshot))
      """
  }

  /// The rank of a commit of a file.
  func rank(ofCommit number: Int64) -> Int64 {
    Int64(marks.prefix { ($0.integer ?? .max) < number }.count)
  }
}

/// The number of rows of a table, and a hash of their contents that does not depend on their order.
package struct MoveDigest: Hashable, Sendable {
  package let table: String
  package var rows: Int64 = 0
  package var hash: UInt64 = 0

  mutating func add(_ row: MovedRow, _ columns: [MovedColumn]) {
    var hash = StableHash()
    for column in columns {
      switch row[column.name] {
      case .null: hash.combine(0 as UInt8)
      case .integer(let value):
        hash.combine(1 as UInt8)
        hash.combine(value)
      case .real(let value):
        hash.combine(2 as UInt8)
        hash.combine(Int64(bitPattern: value.bitPattern))
      case .text(let value):
        hash.combine(3 as UInt8)
        hash.combine(Int64(value.utf8.count))
        hash.combine(value.utf8)
      case .bytes(let value):
        hash.combine(4 as UInt8)
        hash.combine(Int64(value.count))
        hash.combine(value)
      }
    }
    rows += 1
    self.hash &+= UInt64(bitPattern: hash.value)
  }
}
