import HubCore
import SQLDatabase

/// Deleting a hub: it is gone at once, its rows go a slice at a time, however many there are.
extension WriteSession {
  /// How many rows of a table a slice deletes at most; some ten milliseconds' work.
  private static let sliceLimit: Int64 = 2_000

  /// Makes the hub unknown, and sees to it that nothing of it is delivered any more.
  func delete(_ hub: Hub) throws {
    // What the transaction still has in hand must not come after the deletion.
    try writeTags()
    for sql in [
      "DELETE FROM hub WHERE id = ?1",
      "DELETE FROM access_policy WHERE hub = ?1",
      "DELETE FROM push_credential WHERE hub = ?1",
      "DELETE FROM job WHERE hub = ?1",
      """
      UPDATE notification SET state = 'Cancelled', ended_at = 0
      WHERE ended_at IS NULL AND hub = ?1
      """,
      "INSERT INTO deleted_hub VALUES (?1)",
    ] { try execute(sql, hub.id) }
    hasDroppedTags = true
    forget()
  }

  /// Deletes the next slice of what deleted hubs have left.
  /// - Returns: `true` when there may be more.
  func clearDeletedHubs() throws -> Bool {
    guard let hub = try first("SELECT id FROM deleted_hub LIMIT 1") else { return false }
    for slice in [clearNotifications, clearInstallations, clearTags, clearRest]
    where try slice(hub) { return true }
    try execute("DELETE FROM deleted_hub WHERE id = ?1", hub)
    return true
  }

  /// One notification, or a part of one.
  private func clearNotifications(of hub: Hub.ID) throws -> Bool {
    guard let number = try first("SELECT id FROM notification WHERE hub = ?1 LIMIT 1", hub) else {
      return false
    }
    var budget = Self.rowBudget
    _ = try deleteNotification(number, budget: &budget)
    return true
  }

  /// Some installations with their registrations.
  private func clearInstallations(of hub: Hub.ID) throws -> Bool {
    let numbers = try all(
      "SELECT id FROM installation WHERE hub = ?1 LIMIT \(Self.sliceLimit / 8)", hub)
    for number in numbers {
      try execute("DELETE FROM registration WHERE installation = ?1", number)
      try deleteInstallation(number)
    }
    return !numbers.isEmpty
  }

  /// Some rows of one tag. The pseudo-tags of all registrations come first: they lead to those
  /// that clients have written.
  private func clearTags(of hub: Hub.ID) throws -> Bool {
    guard
      let tag = try first(
        """
        SELECT id FROM tag WHERE hub = ?1 ORDER BY kind IN (\(TagKey.Kind.native.rawValue),
          \(TagKey.Kind.template.rawValue)) DESC LIMIT 1
        """, hub)
    else { return false }
    let members = try all(
      """
      SELECT registration FROM registration_tag WHERE tag = ?1
      ORDER BY registration LIMIT \(Self.sliceLimit)
      """, tag)
    for number in members {
      let row = try connection.statement("DELETE FROM registration WHERE id = ?1 AND hub = ?2")
      try row.bind(number, at: 1)
      try row.bind(hub, at: 2)
      try row.run()
    }
    if let last = members.last {
      let row = try connection.statement(
        "DELETE FROM registration_tag WHERE tag = ?1 AND registration <= ?2")
      try row.bind(tag, at: 1)
      try row.bind(last, at: 2)
      try row.run()
    } else {
      try execute("DELETE FROM tag WHERE id = ?1", tag)
    }
    return true
  }

  private func clearRest(of hub: Hub.ID) throws -> Bool {
    for (table, key) in [
      ("feedback", "id"), ("removed_registration", "id"), ("template", "id"),
      ("idempotency_key", "name"),
    ] {
      let count = try execute(
        """
        DELETE FROM \(table) WHERE hub = ?1 AND \(key) IN
          (SELECT \(key) FROM \(table) WHERE hub = ?1 LIMIT \(Self.sliceLimit))
        """, hub)
      if count > 0 { return true }
    }
    return false
  }

  // MARK: Statements

  /// Runs a statement with a number or without.
  /// - Returns: How many rows it has changed.
  @discardableResult
  func execute(_ sql: String, _ number: Int64) throws -> Int {
    let before = connection.totalChanges
    let row = try connection.statement(sql)
    try row.bind(number, at: 1)
    try row.run()
    return connection.totalChanges - before
  }

  private func first(_ sql: String, _ number: Int64? = nil) throws -> Int64? {
    let row = try connection.statement(sql)
    if let number { try row.bind(number, at: 1) }
    return try row.step() ? row.integer(0) : nil
  }

  func all(_ sql: String, _ number: Int64) throws -> [Int64] {
    let row = try connection.statement(sql)
    try row.bind(number, at: 1)
    var numbers: [Int64] = []
    while try row.step() { numbers.append(row.integer(0)) }
    return numbers
  }
}
