import HubCore

/// An error for which a hub is not moved; the text gives advice.
package struct MoveRefusal: Error, Equatable, CustomStringConvertible {
  package let description: String
  /// Whether the target already has a hub; it may be the one that this move has brought there.
  package let isOfUsedTarget: Bool
  init(_ description: String, isOfUsedTarget: Bool = false) {
    self.description = description
    self.isOfUsedTarget = isOfUsedTarget
  }

  package static let numbersUsed = MoveRefusal(
    "the database has given out more numbers of registrations than a file can hold (4.3 thousand "
      + "million); `belfry export` and `import` move the devices")
}

/// The progress of a move.
package struct MoveProgress: Sendable {
  package enum Step: Sendable { case copying, comparing }
  package let step: Step
  package let table: String
  /// Rows of all tables, in this step.
  package var rows: Int64
  package let total: Int64
  /// Rows copied by an earlier run, which say nothing about the speed of this one.
  package let earlier: Int64
}

/// Moves everything that a hub keeps from a file to a PostgreSQL database, or back.
///
/// Rows are copied in batches. Each batch is one transaction of the target, which also records the
/// position of its end, so that an interrupted move can be resumed. Until it is finished and both
/// sides have been compared, the target has a table `move_state`, and nobody else can open it. The
/// source is only read; in the end it is closed to servers.
package struct HubMove: Sendable {
  private let source: any MoveEnd
  private let target: any MoveEnd
  /// Number of rows in a transaction.
  package var batch = 1_000
  /// Called after each transaction of the target, with the table's name; for tests, which interrupt
  /// it.
  package var committed: @Sendable (String) throws -> Void = { _ in }
  /// Closes the source, once both sides are the same and before the target can be served. An error
  /// ends the move; when it is run again, it resumes at this point.
  package var closeSource: @Sendable () async throws -> Void = {}

  package init(from source: SQLiteHubStore, to target: PostgresHubStore) {
    self.source = FileEnd(store: source)
    self.target = DatabaseEnd(store: target)
  }

  package init(from source: PostgresHubStore, to target: SQLiteHubStore) {
    self.source = DatabaseEnd(store: source)
    self.target = FileEnd(store: target)
  }

  /// The number of rows to move, by table.
  package static func counts(of store: SQLiteHubStore) async throws -> [(String, Int64)] {
    try await counts(of: FileEnd(store: store))
  }

  package static func counts(of store: PostgresHubStore) async throws -> [(String, Int64)] {
    try await counts(of: DatabaseEnd(store: store))
  }

  private static func counts(of end: any MoveEnd) async throws -> [(String, Int64)] {
    var counts: [(String, Int64)] = []
    for table in MovedTable.all { counts.append((table.name, try await end.count(table))) }
    return counts
  }

  /// The number of rows to move, by table. Checks that the move is possible, and changes nothing.
  /// - Throws: As ``run(_:)``.
  package func preview() async throws -> [(String, Int64)] {
    try await refuseLiving()
    try target.check(try await source.numbers())
    try await target.look(try await source.identity())
    return try await Self.counts(of: source)
  }

  /// Moves everything, or the remainder of an earlier run.
  /// - Returns: The contents of both sides.
  /// - Throws: ``MoveRefusal``, ``StoreError``.
  package func run(_ progress: @Sendable (MoveProgress) -> Void = { _ in }) async throws
    -> [MoveDigest]
  {
    try await refuseLiving()
    let reading = try await source.reading()
    let numbers = try await source.numbers()
    try target.check(numbers)
    var state = try await target.begin(try await source.identity(), marks: reading.marks.count)
    let total = try await Self.counts(of: source).reduce(0) { $0 + $1.1 }
    let earlier = state.rows
    for (index, table) in MovedTable.all.enumerated().dropFirst(state.step) {
      repeat {
        let page = try await source.page(table, after: state.cursor, limit: batch, reading)
        state.cursor = page.cursor
        state.rows += Int64(page.rows.count)
        if page.cursor == nil {
          if table.name == "retry" { try await copyTargetsLeft(state, table) }
          state.step = index + 1
        }
        try await target.write(page.rows, of: table, state)
        try committed(table.name)
        progress(
          MoveProgress(
            step: .copying, table: table.name, rows: state.rows, total: total, earlier: earlier))
      } while state.cursor != nil
    }
    try await target.derive(numbers, state, marks: reading.marks.count)
    try committed("")
    let found = try await compare(total, progress)
    try await refuseLiving()
    try await closeSource()
    try await target.end(state)
    return found
  }

  /// - Throws: ``MoveRefusal`` when servers work on a database that is to be moved.
  package static func refuseLiving(on source: PostgresHubStore) async throws {
    try await refuseLiving(on: DatabaseEnd(store: source), "from")
  }

  private func refuseLiving() async throws {
    try await Self.refuseLiving(on: source, "from")
    try await Self.refuseLiving(on: target, "to")
  }

  private static func refuseLiving(on end: any MoveEnd, _ word: String) async throws {
    let nodes = try await end.livingNodes()
    guard nodes.isEmpty else {
      throw MoveRefusal(
        "servers work on the database that is moved \(word) (\(nodes.joined(separator: ", "))): stop "
          + "them, and wait ten seconds if one was killed")
    }
  }

  /// Can be repeated after an interruption: existing rows are kept.
  private func copyTargetsLeft(_ state: MoveState, _ table: MovedTable) async throws {
    try await source.visitTargetsLeft(limit: batch) { rows in
      try await target.write(rows, of: table, state.unmoved)
      try committed("targets")
    }
  }

  // MARK: Comparing

  private func compare(
    _ total: Int64, _ progress: @Sendable (MoveProgress) -> Void
  ) async throws -> [MoveDigest] {
    // Read again, with the target's own transaction numbers.
    let (from, to) = (try await source.reading(), try await target.reading())
    var found: [MoveDigest] = []
    var differing: [String] = []
    var rows: Int64 = 0
    for table in MovedTable.all {
      async let first = source.digest(table, batch, from)
      async let second = target.digest(table, batch, to)
      let (wanted, copied) = (try await first, try await second)
      if wanted != copied {
        differing.append("\(table.name) (\(wanted.rows) rows there, \(copied.rows) here)")
      }
      found.append(copied)
      rows += copied.rows
      progress(
        MoveProgress(step: .comparing, table: table.name, rows: rows, total: total, earlier: 0))
    }
    guard differing.isEmpty else {
      throw MoveRefusal(
        "what was copied is not what is there: \(differing.joined(separator: ", ")). If the source was "
          + "served since the move began, remove the target and start over; else this is a defect of "
          + "Belfry. The target cannot be served")
    }
    return found
  }
}
