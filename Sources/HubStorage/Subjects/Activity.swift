package import Foundation
package import HubCore
package import NotificationHubs
import SQLDatabase

/// The log of changes and sends, with their authors.
extension SubjectStore {
  package func record(_ entries: [ActivityEntry]) async throws {
    try await writing(#function) { session in
      for entry in entries { try ActivityTable(session.sql).insert(entry) }
    }
  }

  package func activity(
    _ query: ActivityQuery, hub: Hub.ID?, after: ListPosition?, limit: Int
  ) async throws -> ActivityPage {
    try await reading(#function) {
      try ActivityTable($0.sql).activity(query, hub: hub, after: after, limit: limit)
    }
  }

  package func clearActivity(before limit: Date?, keeping maximum: Int) async throws -> Bool {
    let hasWork = try await reading(#function) { session in
      try ActivityTable(session.sql).hasActivityToClear(before: limit, keeping: maximum)
    }
    guard hasWork else { return false }
    return try await writing(#function) {
      try ActivityTable($0.sql).clearActivity(before: limit, keeping: maximum)
    }
  }
}

/// Maximum number of entries that a call deletes: about ten milliseconds of work.
private let activitySlice: Int64 = 2_000
/// Maximum number of entries read for one page.
private let activityStretch = 20_000

/// The log of changes and sends.
struct ActivityTable {
  let connection: any SQLConnection

  init(_ connection: any SQLConnection) { self.connection = connection }

  func insert(_ entry: ActivityEntry) throws {
    let line = entry.line
    try connection.change(
      """
      INSERT INTO activity (hub, hub_name, at, actor, via, action, object, address, status)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
      """, entry.hub, line.hub, line.time.milliseconds, line.actor, line.via.rawValue, line.action,
      line.object, line.address, Int64(line.status))
  }

  /// See ``ActivityStore/clearActivity(before:keeping:)``.
  func clearActivity(before limit: Date?, keeping maximum: Int) throws -> Bool {
    if let limit {
      let deleted = try connection.change(
        """
        DELETE FROM activity WHERE id IN
          (SELECT id FROM activity WHERE at < ?1 ORDER BY at LIMIT ?2)
        """, limit.milliseconds, activitySlice)
      if deleted > 0 { return true }
    }
    var total: Int64 = 0
    var largest: (hub: Hub.ID, rows: Int64)?
    do {
      let row = try connection.statement("SELECT hub, COUNT(*) FROM activity GROUP BY hub")
      while try row.step() {
        total += row.integer(1)
        if row.integer(1) > largest?.rows ?? 0 { largest = (row.integer(0), row.integer(1)) }
      }
    }
    let excess = total - Int64(maximum)
    guard excess > 0, let largest else { return false }
    let deleted = try connection.change(
      """
      DELETE FROM activity WHERE id IN
        (SELECT id FROM activity WHERE hub = ?1 ORDER BY at, id LIMIT ?2)
      """, largest.hub, min(excess, activitySlice))
    // The largest hub may have fewer than are to be deleted.
    return excess > Int64(deleted)
  }

  fileprivate func hasActivityToClear(before limit: Date?, keeping maximum: Int) throws -> Bool {
    if let limit {
      let row = try connection.statement(
        "SELECT 1 FROM activity WHERE at < ?1 LIMIT 1", limit.milliseconds)
      if try row.step() { return true }
    }
    let row = try connection.statement("SELECT COUNT(*) FROM activity")
    return try row.step() && row.integer(0) > Int64(maximum)
  }

  func activity(
    _ query: ActivityQuery, hub: Hub.ID?, after: ListPosition?, limit: Int
  ) throws -> ActivityPage {
    let row = try connection.statement(
      """
      SELECT id, hub_name, at, actor, via, action, object, address, status FROM activity
      WHERE \(hub == nil ? "" : "hub = ?5 AND ")at >= ?1 AND at <= ?2 AND (at < ?2 OR id < ?3)
      ORDER BY at DESC, id DESC LIMIT ?4
      """)
    var until = query.until.map { $0.milliseconds - 1 } ?? .max
    var number = Int64.max
    if let after, after.time <= until { (until, number) = (after.time, after.number) }
    // One more than needed tells whether there are more.
    try row.bind(query.from?.milliseconds ?? .min, until, number, Int64(activityStretch + 1))
    if let hub { try row.bind(hub, at: 5) }
    var page = ActivityPage()
    var last: ListPosition?
    var seen = 0
    while try row.step() {
      if page.lines.count >= limit || seen == activityStretch {
        page.next = last
        break
      }
      seen += 1
      last = ListPosition(time: row.integer(2), number: row.integer(0))
      if let actor = query.actor, row.text(3) != actor { continue }
      if let action = query.action, row.text(5) != action { continue }
      page.lines.append(
        HubActivity(
          time: Date(milliseconds: row.integer(2)), hub: row.optionalText(1), actor: row.text(3),
          via: .init(rawValue: row.text(4)), action: row.text(5), object: row.optionalText(6),
          address: row.text(7), status: Int(clamping: row.integer(8))))
    }
    return page
  }
}
