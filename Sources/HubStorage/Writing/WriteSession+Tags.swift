import SQLDatabase

extension WriteSession {
  /// How many rows one statement inserts.
  private static let rowsPerInsert = 16

  private static let insertSome =
    "INSERT INTO registration_tag VALUES "
    + (0..<rowsPerInsert).map { "(?\($0 * 2 + 1), ?\($0 * 2 + 2))" }.joined(separator: ", ")
    + " ON CONFLICT DO NOTHING"

  /// Writes the rows of `registration_tag` that the transaction has changed and not written yet.
  ///
  /// In the order of the table and many at a time: a transaction of many devices finds each tag's
  /// place once, and not once for each device.
  func writeTags() throws {
    guard writtenChanges < changes.count else { return }
    var pending = changes[writtenChanges...].enumerated().map { (order: $0, change: $1) }
    pending.sort {
      ($0.change.tag, $0.change.registration, $0.order)
        < ($1.change.tag, $1.change.registration, $1.order)
    }
    var inserts: [TagChange] = []
    inserts.reserveCapacity(pending.count)
    for (index, (_, change)) in pending.enumerated() {
      // Of several changes of one row the last counts.
      let next = index + 1 < pending.count ? pending[index + 1].change : nil
      if next?.tag == change.tag && next?.registration == change.registration { continue }
      if change.isMember { inserts.append(change) } else { try delete(change) }
    }
    try insert(inserts)
    writtenChanges = changes.count
  }

  private func insert(_ rows: [TagChange]) throws {
    let some = Self.rowsPerInsert
    let bulk = rows.count / some * some
    if bulk > 0 {
      let statement = try connection.statement(Self.insertSome)
      for start in stride(from: 0, to: bulk, by: some) {
        for offset in 0..<some {
          let row = rows[start + offset]
          try statement.bind(row.tag, at: Int32(offset * 2 + 1))
          try statement.bind(Int64(row.registration), at: Int32(offset * 2 + 2))
        }
        try statement.run()
        statement.reset()
      }
    }
    let statement = try connection.statement(
      "INSERT INTO registration_tag VALUES (?1, ?2) ON CONFLICT DO NOTHING")
    for row in rows[bulk...] {
      try statement.bind(row.tag, at: 1)
      try statement.bind(Int64(row.registration), at: 2)
      try statement.run()
      statement.reset()
    }
  }

  private func delete(_ row: TagChange) throws {
    leftTags.insert(row.tag)
    let statement = try connection.statement(
      "DELETE FROM registration_tag WHERE tag = ?1 AND registration = ?2")
    try statement.bind(row.tag, at: 1)
    try statement.bind(Int64(row.registration), at: 2)
    try statement.run()
  }
}
