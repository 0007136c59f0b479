import HubCore
import SQLDatabase

/// The progress of a move: the table `move_state`, which only a target has.
struct MoveTable {
  let connection: any SQLConnection

  init(_ connection: any SQLConnection) { self.connection = connection }

  /// Whether a move into this database was begun and not finished.
  func hasUnfinishedMove() throws -> Bool {
    let row = try connection.statement(
      connection.dialect == .postgres
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
        let row = try connection.statement("SELECT 1 FROM \(table) LIMIT 1")
        guard try !row.step() else {
          throw MoveRefusal(
            "the target is not empty (it has rows of \(table)): name a new directory, or a new "
              + "database made with `createdb`", isOfUsedTarget: true)
        }
      }
      return nil
    }
    let row = try connection.statement("SELECT source, step, cursor, rows FROM move_state")
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
      try connection.change("UPDATE move_state SET run = ?1", state.run)
      return state
    }
    let state = MoveState(run: .random(in: 0 ... .max))
    try connection.execute(
      """
      CREATE TABLE move_state (source TEXT NOT NULL, run \(connection.dialect.integer) NOT NULL,
        step \(connection.dialect.integer) NOT NULL, cursor \(connection.dialect.bytes), rows \(connection.dialect.integer) NOT NULL)
      """)
    try connection.change("INSERT INTO move_state VALUES (?1, ?2, 0, NULL, 0)", source, state.run)
    return state
  }

  /// Records the progress of the move, in the transaction that has made it.
  func note(_ state: MoveState) throws {
    let count =
      state.isKept
      ? try connection.change("UPDATE move_state SET run = run WHERE run = ?1", state.run)
      : try connection.change(
        "UPDATE move_state SET step = ?2, cursor = ?3, rows = ?4 WHERE run = ?1", state.run,
        Int64(state.step), MovedValue(state.cursor.map(\.stored)), state.rows)
    guard count == 1 else {
      throw MoveRefusal("another `belfry move` works on this target now; this one has stopped")
    }
  }

  func endMove(_ state: MoveState) throws {
    try note(state)
    try connection.change("DELETE FROM move_state")
    try connection.execute("DROP TABLE move_state")
  }
}
