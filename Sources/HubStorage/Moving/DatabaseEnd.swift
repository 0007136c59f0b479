import HubCore
import NotificationHubs
import SQLDatabase

struct DatabaseEnd: MoveEnd {
  let store: PostgresHubStore
  private static let tables = MovedTable.all.flatMap(\.database.tables)

  func identity() async throws -> String {
    try await store.read { session in
      let row = try session.connection.statement("SELECT first, second FROM store_state")
      guard try row.step() else { throw StoreError.corrupt("store_state is empty") }
      return Self.identity([row.integer(0), row.integer(1)])
    }
  }

  func livingNodes() async throws -> [String] {
    // They change nothing of a snapshot.
    guard store.engine.shared.options.snapshot == nil else { return [] }
    return try await store.livingNodes().map {
      $0.address.isEmpty ? $0.name : "\($0.name) at \($0.address)"
    }
  }

  func reading() async throws -> MoveReading {
    var reading = MoveReading(coding: store.coding)
    let snapshots = try await store.read { session in
      try session.connection.rows(
        """
        SELECT DISTINCT audience_snapshot FROM notification WHERE ended_at IS NULL
          AND state <> 'Scheduled' AND audience_snapshot IS NOT NULL AND hub IN (SELECT id FROM hub)
        """
      ) { $0.text(0) }
    }
    // Format is xmin:xmax:running. Of two snapshots the later one sees all that the earlier one
    // saw.
    reading.marks = try snapshots.map { text in
      let parts = text.split(separator: ":", omittingEmptySubsequences: false)
      guard parts.count == 3, let end = UInt64(parts[1]),
        text.utf8.allSatisfy({ $0 >= 48 && $0 <= 58 || $0 == 44 })
      else { throw StoreError.corrupt("a snapshot cannot be read") }
      return (end: end, open: parts[2].split(separator: ",").count, text: text)
    }.sorted { ($0.end, $1.open, $0.text) < ($1.end, $0.open, $1.text) }.map { .text($0.text) }
    return reading
  }

  func numbers() async throws -> MoveNumbers {
    try await store.read { session in
      func last(_ sequence: String) throws -> Int64 {
        try session.first("SELECT last_value FROM \(sequence)") ?? 0
      }
      // Numbers of devices are allocated in blocks.
      let block = NumberBlocks.blockSize - 1
      return MoveNumbers(
        hub: try last("hub_id_seq"), installation: try last("installation_number") + block,
        registration: try last("registration_number") + block,
        notification: try last("notification_id_seq"))
    }
  }

  func count(_ table: MovedTable) async throws -> Int64 {
    try await store.read { session in
      try table.database.count(session.connection, slots: session.slots)
    }
  }

  func page(
    _ table: MovedTable, after cursor: [MovedValue]?, limit: Int, _ reading: MoveReading
  ) async throws -> MovePage {
    try await store.read { session in
      try table.database.page(
        table.columns, after: cursor, limit: limit, reader: session, on: session.connection,
        slots: session.slots, reading)
    }
  }

  func visitTargetsLeft(
    limit: Int, _ body: @Sendable ([MovedRow]) async throws -> Void
  ) async throws {
    let parts = try await store.read { try TargetsLeft($0).partsLeft() }
    for part in parts {
      var cursor: RegistrationID? = part.position
      while let after = cursor {
        let (rows, next) = try await store.read {
          try TargetsLeft($0).targetsLeft(of: part, after: after, limit: limit)
        }
        if !rows.isEmpty { try await body(rows) }
        cursor = next
      }
    }
  }

  func check(_ numbers: MoveNumbers) throws {}

  func look(_ source: String) async throws {
    try await store.read { session in
      _ = try MoveTable(session.connection).unfinishedMove(from: source, Self.tables)
    }
  }

  func begin(_ source: String, marks: Int) async throws -> MoveState {
    // Ranks are expressed as very old transaction numbers; see ``MovedTable/firstTransaction``.
    let limit = MovedTable.firstTransaction + Int64(marks) + 1
    var last: Int64 = 0
    while last <= limit {
      last = try await store.write { session in
        try session.first("SELECT pg_current_xact_id()::text::int8") ?? .max
      }
    }
    return try await store.write {
      try MoveTable($0.connection).beginMove(from: source, Self.tables)
    }
  }

  func write(_ rows: [MovedRow], of table: MovedTable, _ state: MoveState) async throws {
    try await store.write { session in
      try MoveTable(session.connection).note(state)
      try session.connection.pipelined {
        if let write = table.database.write { return try write(session, rows) }
        try table.database.insert(rows, table.columns, on: session.connection)
      }
    }
  }

  func derive(_ numbers: MoveNumbers, _ state: MoveState, marks: Int) async throws {
    try await store.write { session in
      try MoveTable(session.connection).note(state)
      for (sequence, table, number) in [
        ("hub_id_seq", "hub", numbers.hub),
        ("notification_id_seq", "notification", numbers.notification),
        ("activity_id_seq", "activity", 1), ("feedback_id_seq", "feedback", 1),
      ] {
        _ = try session.first(
          """
          SELECT setval(?1::text::regclass,
            GREATEST(1, ?2::int8, (SELECT COALESCE(MAX(id), 1) FROM \(table))))
          """, sequence, number)
      }
      for (sequence, number) in [
        (NumberBlocks.Sequence.installation, numbers.installation),
        (.registration, numbers.registration),
      ] {
        _ = try session.first(
          "SELECT setval(?1::text::regclass, GREATEST(1, ?2::int8))", sequence.rawValue, number)
      }
      try session.execute("DELETE FROM registration_count")
      try session.execute(
        """
        INSERT INTO registration_count (hub, platform, lane, total)
        SELECT hub, platform, 0, COUNT(*) FROM registration GROUP BY hub, platform
        """)
      // Known to all notifications: they are read by one reader then.
      try session.execute(
        PostgresSchema.noteSharedHandles(
          session.slots, since: "'\(MovedTable.firstTransaction)'::xid8"))
      try session.execute("UPDATE directory SET version = version + 1")
    }
  }

  func end(_ state: MoveState) async throws {
    try await store.write { session in
      // Of handles all are asked for alike, whatever statistics say.
      for table in Set(Self.tables).sorted() {
        try session.connection.execute("ANALYZE \(table)")
      }
      try MoveTable(session.connection).endMove(state)
    }
  }
}

/// A part of a notification that some nodes have processed further than another part.
private struct PartLeft: Sendable {
  let notification: Int64
  let part: Int64
  let position: RegistrationID
  let query: AudienceQuery
  let enqueuedAt: Int64
}

/// The targets that parts of notifications have left.
private struct TargetsLeft: PostgresSubject {
  let session: PostgresSession

  init(_ session: PostgresSession) { self.session = session }

  /// The parts that are not fully read, of notifications of which other parts are further.
  func partsLeft() throws -> [PartLeft] {
    var found: [PartLeft] = []
    let parts = try connection.rows(
      """
      SELECT w.notification, w.part, w.position FROM work w WHERE w.is_read = 0 AND w.is_done = 0
        AND w.notification IN (SELECT n.id FROM notification n JOIN hub ON hub.id = n.hub
          JOIN work ON work.notification = n.id WHERE n.ended_at IS NULL GROUP BY n.id
          HAVING COUNT(*) > 1 AND \(MovedTable.uneven) = 1)
      ORDER BY 1, 2
      """
    ) { (number: $0.integer(0), part: $0.integer(1), position: $0.integer(2)) }
    for part in parts {
      let records = try NotificationTable(connection).notifications(
        where: "id = ?1", part.number, nil)
      guard let record = records.first else { continue }
      var query = record.audience
      query.part = Int(part.part)
      found.append(
        PartLeft(
          notification: part.number, part: part.part, position: part.position, query: query,
          enqueuedAt: record.enqueuedAt.milliseconds))
    }
    return found
  }

  /// The next targets of a part, as retries that were never tried.
  /// - Returns: The retries, and the position at which the next begin; `nil` after the last.
  func targetsLeft(
    of part: PartLeft, after: RegistrationID, limit: Int
  ) throws -> ([MovedRow], RegistrationID?) {
    let page = try PostgresTargets(session).targets(part.query, after: after, limit: limit)
    // One of a page that was recorded before those in front of it.
    let known = Set(
      try connection.numbers(
        "SELECT registration FROM retry WHERE notification = ?1 AND registration = ANY(?2::int8[])",
        part.notification, PostgresArray.int8(page.targets.map(\.registration))))
    let left = page.targets.filter { !$0.isDuplicate && !known.contains($0.registration) }
    let rows = left.map { target in
      MovedRow(values: [
        "notification": .integer(part.notification),
        "registration": .integer(slots.sequential(target.registration)),
        "hub": .integer(part.query.hub), "platform": .integer(target.platform.code),
        "attempts": .integer(0), "due": .integer(part.enqueuedAt),
      ])
    }
    return (rows, page.next)
  }
}
