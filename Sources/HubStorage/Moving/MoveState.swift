import HubCore
import SQLDatabase

/// The progress of a move into a database: the one row of its table `move_state`.
struct MoveState: Sendable {
  /// The run that may write.
  var run: Int64
  /// Number of tables that are completely copied.
  var step = 0
  /// Position in the table that is being copied.
  var cursor: [MovedValue]?
  /// Copied so far.
  var rows: Int64 = 0
  /// Keeps this row unchanged, and existing rows as they are.
  var isKept = false

  var unmoved: MoveState {
    var state = self
    state.isKept = true
    return state
  }
}

/// The last numbers that a database has allocated, as a file counts them.
struct MoveNumbers: Sendable {
  var hub: Int64
  var installation: Int64
  var registration: Int64
  var notification: Int64
}

extension SQLConnection {
  /// Whether a move into this database was begun and not finished.
  func hasUnfinishedMove() throws -> Bool {
    let row = try statement(
      dialect == .postgres
        ? """
        SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'move_state'
          AND pg_catalog.pg_table_is_visible(oid))
        """ : "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'move_state')")
    return try row.step() && row.integer(0) != 0
  }

  /// - Throws: ``StoreError/unfinishedMove`` for one that only a move may open.
  func refuseUnfinishedMove() throws {
    if try hasUnfinishedMove() { throw StoreError.unfinishedMove }
  }

  /// The move from a source into this database that is not finished; `nil` when there is none.
  /// - Parameter tables: The tables of this engine, which are empty in a new target.
  /// - Throws: ``MoveRefusal`` when this is no target for it.
  func unfinishedMove(from source: String, _ tables: [String]) throws -> MoveState? {
    guard try hasUnfinishedMove() else {
      for table in Set(tables).sorted() {
        let row = try statement("SELECT 1 FROM \(table) LIMIT 1")
        guard try !row.step() else {
          throw MoveRefusal(
            "the target is not empty (it has rows of \(table)): name a new directory, or a new "
              + "database made with `createdb`", isOfUsedTarget: true)
        }
      }
      return nil
    }
    let row = try statement("SELECT source, step, cursor, rows FROM move_state")
    guard try row.step(), row.text(0) == source else {
      throw MoveRefusal(
        "a move from another source into this target is not finished, or the source was served since "
          + "it began: remove the target and start over")
    }
    return MoveState(
      run: .random(in: 0 ... .max), step: Int(row.integer(1)),
      cursor: try row.optionalBytes(2).map { try [MovedValue](stored: $0) }, rows: row.integer(3))
  }

  /// Resumes a move in the current transaction, or begins it.
  func beginMove(from source: String, _ tables: [String]) throws -> MoveState {
    if let state = try unfinishedMove(from: source, tables) {
      try change("UPDATE move_state SET run = ?1", state.run)
      return state
    }
    let state = MoveState(run: .random(in: 0 ... .max))
    try execute(
      """
      CREATE TABLE move_state (source TEXT NOT NULL, run \(dialect.integer) NOT NULL,
        step \(dialect.integer) NOT NULL, cursor \(dialect.bytes), rows \(dialect.integer) NOT NULL)
      """)
    try change("INSERT INTO move_state VALUES (?1, ?2, 0, NULL, 0)", source, state.run)
    return state
  }

  /// Records the progress of the move, in the transaction that has made it.
  func note(_ state: MoveState) throws {
    let count =
      state.isKept
      ? try change("UPDATE move_state SET run = run WHERE run = ?1", state.run)
      : try change(
        "UPDATE move_state SET step = ?2, cursor = ?3, rows = ?4 WHERE run = ?1", state.run,
        Int64(state.step), MovedValue(state.cursor.map(\.stored)), state.rows)
    guard count == 1 else {
      throw MoveRefusal("another `belfry move` works on this target now; this one has stopped")
    }
  }

  func endMove(_ state: MoveState) throws {
    try note(state)
    try change("DELETE FROM move_state")
    try execute("DROP TABLE move_state")
  }
}

extension [MovedValue] {
  fileprivate var stored: [UInt8] {
    var writer = ByteWriter()
    for value in self {
      switch value {
      case .integer(let number):
        writer.write(UInt8(1))
        writer.write(number)
      case .text(let text):
        writer.write(UInt8(2))
        writer.write(text)
      case .bytes(let bytes):
        writer.write(UInt8(3))
        writer.write(UInt64(bytes.count))
        for byte in bytes { writer.write(byte) }
      // These never occur in an order.
      case .null, .real: writer.write(UInt8(0))
      }
    }
    return writer.bytes
  }

  fileprivate init(stored bytes: [UInt8]) throws {
    self = []
    var reader = ByteReader(bytes)
    while !reader.isAtEnd {
      switch try reader.byte() {
      case 1: append(.integer(try reader.signedNumber()))
      case 2: append(.text(try reader.text()))
      case 3:
        let count = try reader.count()
        append(.bytes(try (0..<count).map { _ in try reader.byte() }))
      default: append(.null)
      }
    }
  }
}
