import HubCore
import SQLDatabase

/// A database as one end of a move.
protocol MoveEnd: Sendable {
  /// Identifies the source, and where possible its state, without revealing anything.
  func identity() async throws -> String
  func livingNodes() async throws -> [String]
  func reading() async throws -> MoveReading
  func numbers() async throws -> MoveNumbers
  func count(_ table: MovedTable) async throws -> Int64
  func page(
    _ table: MovedTable, after cursor: [MovedValue]?, limit: Int, _ reading: MoveReading
  ) async throws -> MovePage
  /// Calls `body` with the remaining targets of notifications whose progress only parts record, as
  /// retries.
  func visitTargetsLeft(
    limit: Int, _ body: @Sendable ([MovedRow]) async throws -> Void
  ) async throws
  func check(_ numbers: MoveNumbers) throws
  /// - Throws: ``MoveRefusal`` when it is not a suitable target for this source.
  func look(_ source: String) async throws
  /// - Parameter marks: See ``MoveReading/marks``.
  func begin(_ source: String, marks: Int) async throws -> MoveState
  func write(_ rows: [MovedRow], of table: MovedTable, _ state: MoveState) async throws
  /// Creates the rows that are derived from the written ones.
  func derive(_ numbers: MoveNumbers, _ state: MoveState, marks: Int) async throws
  /// Ends the move, after which the database can be opened as usual.
  func end(_ state: MoveState) async throws
}

extension MoveEnd {
  static func identity(_ words: [Int64]) -> String {
    var hash = StableHash()
    for word in words { hash.combine(word) }
    return String(UInt64(bitPattern: hash.value), radix: 16)
  }

  func digest(
    _ table: MovedTable, _ batch: Int, _ reading: MoveReading
  ) async throws -> MoveDigest {
    var digest = MoveDigest(table: table.name)
    var cursor: [MovedValue]?
    repeat {
      let page = try await page(table, after: cursor, limit: batch, reading)
      for row in page.rows { digest.add(row, table.columns) }
      cursor = page.cursor
    } while cursor != nil
    guard table.name == "retry" else { return digest }
    let left = Counted(digest)
    try await visitTargetsLeft(limit: batch) { rows in await left.add(rows, table.columns) }
    return await left.digest
  }
}

private actor Counted {
  var digest: MoveDigest
  init(_ digest: MoveDigest) { self.digest = digest }
  func add(_ rows: [MovedRow], _ columns: [MovedColumn]) {
    for row in rows { digest.add(row, columns) }
  }
}

struct FileEnd: MoveEnd {
  let store: SQLiteHubStore
  private static let tables = MovedTable.all.flatMap(\.file.tables)

  func identity() async throws -> String {
    try await store.read { session in
      let row = try session.connection.statement(
        "SELECT first, second, commit_number FROM registration_key, store_state")
      guard try row.step() else { throw StoreError.corrupt("store_state is empty") }
      return Self.identity([row.integer(0), row.integer(1), row.integer(2)])
    }
  }

  // The server of a file holds a lock on its directory, which this store cannot see.
  func livingNodes() async throws -> [String] { [] }

  func reading() async throws -> MoveReading {
    var reading = MoveReading(coding: store.coding)
    reading.marks = try await store.read { session in
      try session.connection.numbers(
        """
        SELECT DISTINCT audience_commit FROM notification WHERE ended_at IS NULL
          AND state <> 'Scheduled' AND hub IN (SELECT id FROM hub) ORDER BY 1
        """
      ).map(MovedValue.integer)
    }
    return reading
  }

  func numbers() async throws -> MoveNumbers {
    try await store.read { session in
      let state = try StoreState.read(from: session.connection)
      return MoveNumbers(
        hub: state.lastHub, installation: state.lastInstallation,
        registration: state.lastRegistration, notification: state.lastNotification)
    }
  }

  func count(_ table: MovedTable) async throws -> Int64 {
    try await store.read { try table.file.count($0.connection) }
  }

  func page(
    _ table: MovedTable, after cursor: [MovedValue]?, limit: Int, _ reading: MoveReading
  ) async throws -> MovePage {
    try await store.read { session in
      try table.file.page(
        table.columns, after: cursor, limit: limit, reader: session, on: session.connection, reading
      )
    }
  }

  func visitTargetsLeft(
    limit: Int, _ body: @Sendable ([MovedRow]) async throws -> Void
  ) async throws {}

  func check(_ numbers: MoveNumbers) throws {
    guard numbers.registration <= Int64(UInt32.max) else { throw MoveRefusal.numbersUsed }
  }

  func look(_ source: String) async throws {
    try await store.read { session in
      _ = try MoveTable(session.connection).unfinishedMove(from: source, Self.tables)
    }
  }

  func begin(_ source: String, marks: Int) async throws -> MoveState {
    try await store.write { try MoveTable($0.connection).beginMove(from: source, Self.tables) }
  }

  func write(_ rows: [MovedRow], of table: MovedTable, _ state: MoveState) async throws {
    try await store.write { session in
      try MoveTable(session.connection).note(state)
      // Existing devices may be restored, whatever the limits are.
      session.isRestoring = true
      defer { session.isRestoring = false }
      if let write = table.file.write { return try write(session, rows) }
      try table.file.insert(
        rows, table.columns, on: session.connection, sparingKnown: state.isKept)
    }
  }

  func derive(_ numbers: MoveNumbers, _ state: MoveState, marks: Int) async throws {
    try await store.write { session in
      try MoveTable(session.connection).note(state)
      session.state.lastHub = max(session.state.lastHub, numbers.hub)
      session.state.lastInstallation = max(session.state.lastInstallation, numbers.installation)
      session.state.lastRegistration = max(session.state.lastRegistration, numbers.registration)
      session.state.lastNotification = max(session.state.lastNotification, numbers.notification)
      // Later writes must come after all notifications that are being delivered.
      session.state.commitNumber = max(session.state.commitNumber, Int64(marks))
      session.changeDirectory()
      try session.execute(
        """
        UPDATE feedback SET number = numbered.number FROM (
          SELECT id, ROW_NUMBER() OVER (PARTITION BY hub ORDER BY id) AS number FROM feedback
        ) AS numbered WHERE numbered.id = feedback.id
        """)
    }
  }

  func end(_ state: MoveState) async throws {
    try await store.write { try MoveTable($0.connection).endMove(state) }
  }
}

extension SQLiteHubStore {
  /// Whether the last version to write a file is older.
  package static func isOlder(at path: String) throws -> Bool {
    var options = SQLiteConnection.Options()
    options.isReadOnly = true
    do {
      let connection = try SQLiteConnection(path: path, options: options)
      defer { connection.close() }
      return try connection.schemaVersion() < Schema.migrations.count
    } catch {
      throw StoreError.orRefusal(error)
    }
  }
}
