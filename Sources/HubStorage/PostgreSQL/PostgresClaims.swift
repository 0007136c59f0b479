import Foundation
import HubCore
import NotificationHubs
import SQLDatabase

/// Parts of notifications that a node claims, and their retries.
struct PostgresClaims: PostgresSubject {
  let session: PostgresSession

  init(_ session: PostgresSession) { self.session = session }

  /// Maximum number of parts of one notification that a node has at a time, so that others find
  /// some.
  private static let claimedParts = 4

  /// Takes parts that no living node owns. Rows that another node is claiming are skipped; each
  /// node begins with a different part of a notification.
  ///
  /// A node that counts as dead, or that a failover has forgotten, takes nothing before its next
  /// heartbeat: what it took would be free at once, and it would take the same again and again.
  func claim(
    _ claim: Int64, limit: Int, afterLosing lost: [Int64], at node: Int64
  ) throws {
    // `epoch` is 0 while nobody has claimed it: the accepting node begins with it.
    func isFree(_ work: String) -> String {
      """
      (\(work).owner IS NULL OR (\(work).owner = ?1 AND (\(work).epoch = 0
          OR \(work).claim = ANY(?4::int8[])))
        OR NOT EXISTS (SELECT 1 FROM node WHERE node.id = \(work).owner
          AND \(NodeTable.isAlive("node"))))
      """
    }
    try execute(
      """
      WITH chosen AS (
        SELECT n.id AS notification, free.part FROM notification n CROSS JOIN LATERAL (
          SELECT w.part FROM work w
          WHERE w.notification = n.id AND w.is_done = 0 AND \(isFree("w"))
          ORDER BY hashint8(w.part + ?1 * 1000), w.part
          LIMIT GREATEST(0, \(Self.claimedParts) - (SELECT COUNT(*) FROM work m
            WHERE m.notification = n.id AND m.owner = ?1 AND m.is_done = 0 AND m.epoch > 0
              AND NOT COALESCE(m.claim = ANY(?4::int8[]), FALSE)))
        ) AS free
        WHERE n.ended_at IS NULL AND n.state <> 'Scheduled'
          AND EXISTS (SELECT 1 FROM node WHERE node.id = ?1
            AND \(NodeTable.isAlive("node")))
        ORDER BY n.id LIMIT ?2
      ), taken AS (
        SELECT w.notification, w.part FROM work w
          JOIN chosen c ON c.notification = w.notification AND c.part = w.part
        WHERE w.is_done = 0 AND \(isFree("w")) FOR UPDATE OF w SKIP LOCKED
      )
      UPDATE work SET owner = ?1, epoch = epoch + 1, claim = ?3 FROM taken
      WHERE work.notification = taken.notification AND work.part = taken.part
      """, node, Int64(limit), claim, PostgresArray.int8(lost))
  }

  /// Ids of notifications, and a part of each.
  static func arrays(of known: Set<WorkID>) -> (ids: [UInt8], parts: [UInt8]) {
    let known = Array(known)
    return (
      PostgresArray.text(known.map(\.notification.rawValue)),
      PostgresArray.int8(known.map { Int64($0.part) })
    )
  }

  /// True for parts of a notification `n` that are among those of ``arrays(of:)``.
  static func isKnown(_ work: String, ids: String, parts: String) -> String {
    """
    EXISTS (SELECT 1 FROM unnest(\(ids)::text[], \(parts)::int8[]) AS known(id, part)
      WHERE known.id = n.public_id AND known.part = \(work).part)
    """
  }

  /// True for parts of a notification `n` that a node has claimed and that are not known.
  static func isForgotten(
    _ work: String, by node: String, ids: String, parts: String
  ) -> String {
    """
    \(work).owner = \(node) AND \(work).epoch > 0 AND \(work).is_done = 0
      AND NOT \(isKnown(work, ids: ids, parts: parts))
    """
  }

  /// Sets the release time of notifications accepted by a node that did not know the time: they
  /// count from their first claim.
  func date(_ found: inout FoundNotifications, _ steady: Date) throws {
    let unknown = NotificationRecord.unknownRelease
    for index in found.records.indices where found.records[index].steadyRelease == unknown {
      let record = found.records[index]
      try connection.change(
        """
        UPDATE notification SET steady_release = ?3
        WHERE hub = ?1 AND public_id = ?2 AND steady_release = ?4
        """, record.hub, record.id.rawValue, steady.milliseconds, unknown.milliseconds)
      found.records[index].steadyRelease = steady
    }
  }

  /// The parts taken by a claim: a record for each, the oldest notification first.
  func parts(of claim: Int64, at node: Int64) throws -> FoundNotifications {
    let row = try connection.statement(
      """
      SELECT \(NotificationRecord.readColumns), part, epoch, steady_release FROM notification_part
      WHERE owner = ?1 AND claim = ?2 ORDER BY id, part
      """, node, claim)
    var found = FoundNotifications()
    while try row.step() {
      do {
        let part = Int(row.integer(21))
        var record = try NotificationTable(connection).record(row, part: part)
        record.lease = WorkLease(part: part, epoch: row.integer(22))
        record.steadyRelease = row.optionalInteger(23).map(Date.init(milliseconds:))
        found.records.append(record)
      } catch StoreError.corrupt(let reason) {
        found.unreadable.append(
          UnreadableNotification(
            id: NotificationID(rawValue: row.text(2)), hub: row.integer(1),
            part: Int(row.integer(21)), reason: reason))
      }
    }
    return found
  }
}
