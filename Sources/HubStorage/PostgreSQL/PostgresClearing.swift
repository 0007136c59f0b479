import Foundation
import HubCore
import SQLDatabase
import Wire

/// Deletes expired rows, and the remains of deleted hubs.
struct PostgresClearing: PostgresSubject {
  let session: PostgresSession

  init(_ session: PostgresSession) { self.session = session }

  /// Maximum number of devices or registrations that a call deletes: about ten milliseconds of
  /// work.
  private static let clearingLimit: Int64 = 250
  /// Maximum number of rows that a call deletes from a table of a deleted hub.
  private static let sliceLimit: Int64 = 2_000
  /// The key of the advisory lock that a node holds while it clears.
  private static let clearingLock: Int64 = 0x4265_6c6b_6565_70

  /// Keeps other nodes from clearing until the transaction ends.
  /// - Returns: Whether none is clearing at this moment.
  func takeClearingLock() throws -> Bool {
    try first("SELECT pg_try_advisory_xact_lock(?1)::int4", Self.clearingLock) == 1
  }

  /// - Parameter limit: Milliseconds since 1970.
  /// - Returns: `true` when there may be more.
  func clearExpired(by limit: Int64) throws -> Bool {
    if try clearInstallations(endedBy: limit) { return true }
    if try clearRegistrations(endedBy: limit) { return true }
    let removed = limit - Int64(RemovalWave.lifetime * 1000)
    return try execute(
      """
      DELETE FROM removed_registration r USING (
        SELECT removed.hub, removed.slot, removed.id FROM hub
        JOIN removed_registration AS removed ON removed.hub = hub.id
        WHERE removed.removed_at <= ?1 LIMIT 2000) AS old
      WHERE r.hub = old.hub AND r.slot = old.slot AND r.id = old.id
      """, removed) > 0
  }

  private func clearInstallations(endedBy limit: Int64) throws -> Bool {
    let select = "SELECT hub, id, public_id FROM installation WHERE expires_at <= ?1 LIMIT ?2"
    let candidates = try connection.rows(select, limit, Self.clearingLimit) {
      (hub: $0.integer(0), number: $0.integer(1), id: $0.text(2))
    }
    guard !candidates.isEmpty else { return false }
    try PostgresDevices(session).lock(
      candidates.map {
        PostgresDevices.DeviceLock.device(
          hub: $0.hub, hash: PreparedInstallation.hash($0.id.foldingCapitals))
      })
    // Apps may have registered again while this waited for the locks.
    let row = try connection.statement(
      """
      SELECT i.hub, i.id FROM unnest(?1::int8[], ?2::int2[], ?3::int8[]) AS w (hub, slot, id)
      JOIN installation i ON i.hub = w.hub AND i.slot = w.slot AND i.id = w.id
      WHERE i.expires_at <= ?4
      """, PostgresArray.int8(candidates.map(\.hub)),
      PostgresArray.int2(candidates.map { slots.slot(ofNumber: $0.number) }),
      PostgresArray.int8(candidates.map(\.number)), limit)
    var over: [(hub: Hub.ID, number: Int64)] = []
    while try row.step() { over.append((row.integer(0), row.integer(1))) }
    try PostgresInstallations(session).deleteInstallations(over)
    return true
  }

  private func clearRegistrations(endedBy limit: Int64) throws -> Bool {
    let candidates = try PostgresDevices(session).rows(
      try connection.statement(
        """
        SELECT \(PostgresRegistrationRow.columns) FROM registration r
        WHERE r.expires_at <= ?1 AND EXISTS (SELECT 1 FROM hub WHERE hub.id = r.hub) LIMIT ?2
        """, limit, Self.clearingLimit))
    guard !candidates.isEmpty else { return false }
    for (hub, group) in Dictionary(grouping: candidates, by: \.hub).sorted(by: { $0.key < $1.key })
    {
      let numbers = group.map(\.number)
      try PostgresDevices(session).lock(
        try PostgresRemovals(session).deviceLocks(of: numbers, hub: hub))
      var changes = RegistrationChanges()
      changes.removed = try registrationRows(numbers, hub: hub, endedBy: limit)
      try PostgresDevices(session).apply(changes)
      // The installation that derived it derives it again with its next write.
      for installation in Set(changes.removed.map(\.installation)).sorted() {
        try PostgresRegistrations(session).forgetFingerprint(of: installation, hub: hub)
      }
    }
    return true
  }

  private func registrationRows(
    _ numbers: [Int64], hub: Hub.ID, endedBy limit: Int64
  ) throws -> [PostgresRegistrationRow] {
    let row = try connection.statement(
      """
      SELECT \(PostgresRegistrationRow.columns)
      FROM unnest(?2::int2[], ?3::int8[]) AS w (slot, id)
      JOIN registration r ON r.hub = ?1 AND r.slot = w.slot AND r.id = w.id
      WHERE r.expires_at <= ?4 ORDER BY r.id
      """, hub, PostgresArray.int2(numbers.map { slots.slot(ofNumber: $0) }),
      PostgresArray.int8(numbers), limit)
    return try PostgresDevices(session).rows(row)
  }

  /// Deletes the next slice of the rows that deleted hubs have left.
  /// - Returns: `true` when there may be more.
  func clearDeletedHubs() throws -> Bool {
    guard let hub = try first("SELECT id FROM deleted_hub ORDER BY id LIMIT 1") else {
      return false
    }
    if try clearWork(ofDeletedHub: hub) { return true }
    for table in PostgresSchema.hubTables(slots) {
      // `ctid` is stable as long as nobody else deletes here; in a partitioned table it is not
      // unique.
      let key = table == DayTable.feedback.name ? "id" : "ctid"
      let count = try execute(
        """
        DELETE FROM \(table) WHERE hub = ?1 AND \(key) = ANY(ARRAY(
          SELECT \(key) FROM \(table) WHERE hub = ?1 LIMIT \(Self.sliceLimit)))
        """, hub)
      if count > 0 { return true }
    }
    try execute("DELETE FROM deleted_hub WHERE id = ?1", hub)
    return true
  }

  /// Deletes the next slice of a deleted hub's notifications.
  /// - Returns: `true` when there may be more.
  private func clearWork(ofDeletedHub hub: Hub.ID) throws -> Bool {
    guard let number = try first("SELECT id FROM notification WHERE hub = ?1 LIMIT 1", hub) else {
      return false
    }
    var budget = deletionBudget
    _ = try NotificationTable(connection).deleteNotification(number, budget: &budget)
    return true
  }
}
