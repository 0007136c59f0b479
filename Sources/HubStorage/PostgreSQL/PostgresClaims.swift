package import Foundation
package import HubCore
import NotificationHubs
import SQLDatabase

/// Undelivered work, and the nodes that own it.
extension PostgresHubStore {
  package var isShared: Bool { true }

  package var nodeID: Int64 { heart?.id ?? 0 }

  package var holdsLeases: Bool { heart.map { $0.livingID != nil } ?? true }

  package func unfinishedNotifications() async throws -> FoundNotifications {
    try await read(as: .delivery()) { session in
      try NotificationTable(session.connection).findNotifications(
        where: "ended_at IS NULL AND state <> 'Scheduled'", nil, nil)
    }
  }

  package func claimWork(limit: Int) async throws -> FoundNotifications {
    // A node whose lease may have ended has no lease to claim under.
    guard let heart, let node = heart.livingID, limit > 0 else { return FoundNotifications() }
    let claim = Int64.random(in: 1 ... .max)
    let (lost, steady) = (heart.lostClaims, clock.steady())
    do {
      // A lost claim is found by its number: a commit mark would cost a row for each poll for work.
      return try await write(as: .delivery(), ifUnclear: .refuse) { session in
        try PostgresClaims(session).claim(claim, limit: limit, afterLosing: lost, at: node)
        var found = try PostgresClaims(session).parts(of: claim, at: node)
        try PostgresClaims(session).date(&found, steady)
        return found
      }
    } catch {
      // It may have been committed, or be later: subsequent claims take over what this one has.
      heart.lose(claim: claim)
      throw error
    }
  }

  package func unclaimedWork(
    dueBy moment: Date, beside known: Set<WorkID>
  ) async throws -> UnclaimedWork {
    let node = heart?.id ?? 0
    let steady = moment.addingTimeInterval(clock.steady().timeIntervalSince(clock.now()))
    let (ids, parts) = PostgresClaims.arrays(of: known)
    let isDue = """
      n.ended_at IS NULL AND n.state <> 'Scheduled'
        AND COALESCE(n.steady_release <= ?2, \(NotificationRecord.release) <= ?1)
      """
    // Parts that this node owns without knowing are not waiting for another node.
    let isClaimed = """
      EXISTS (SELECT 1 FROM work w JOIN node ON node.id = w.owner
        WHERE w.notification = n.id AND w.is_done = 0 AND w.epoch > 0
          AND (w.owner <> ?3 OR \(PostgresClaims.isKnown("w", ids: "?4", parts: "?5")))
          AND \(NodeTable.isAlive("node")))
      """
    return try await readFreely { session in
      let row = try session.connection.statement(
        """
        SELECT (SELECT COUNT(*) FROM notification n
          WHERE \(isDue)
            AND EXISTS (SELECT 1 FROM work w WHERE w.notification = n.id AND w.is_done = 0)
            AND NOT \(isClaimed))
          + (SELECT COUNT(*) FROM notification WHERE state = 'Scheduled' AND due_at <= ?1),
        (SELECT COUNT(*) FROM notification n JOIN work w ON w.notification = n.id
          WHERE \(isDue) AND \(PostgresClaims.isForgotten("w", by: "?3", ids: "?4", parts: "?5")))
        """, moment.milliseconds, steady.milliseconds, node, ids, parts)
      guard try row.step() else { return UnclaimedWork(count: 0) }
      return UnclaimedWork(count: Int(row.integer(0)), isForgotten: row.integer(1) > 0)
    }
  }

  package func releaseWork() async throws {
    guard let node = heart?.id else { return }
    try await write(as: .delivery(), ifUnclear: .again) {
      try NodeTable($0.connection).release(node)
    }
  }

  package func releaseWork(
    _ lease: WorkLease, of id: NotificationID, hub: Hub.ID
  ) async throws {
    guard let node = heart?.id else { return }
    try await write(ifUnclear: .again) { session in
      _ = try session.execute(
        """
        UPDATE work SET owner = NULL FROM notification n
        WHERE n.hub = ?1 AND n.public_id = ?2 AND work.notification = n.id AND work.part = ?3
          AND work.owner = ?4 AND work.epoch = ?5 AND work.is_done = 0
        """, hub, id.rawValue, Int64(lease.part), node, lease.epoch)
    }
  }

  package func releaseWork(beside known: Set<WorkID>) async throws {
    guard let node = heart?.id else { return }
    let (ids, parts) = PostgresClaims.arrays(of: known)
    try await write(as: .delivery(), ifUnclear: .again) { session in
      _ = try session.execute(
        """
        UPDATE work SET owner = NULL FROM notification n
        WHERE n.ended_at IS NULL AND work.notification = n.id
          AND \(PostgresClaims.isForgotten("work", by: "?1", ids: "?2", parts: "?3"))
        """, node, ids, parts)
    }
  }

  package func nextSchedule() async throws -> Date? {
    try await read(as: .delivery()) { session in
      try session.first("SELECT MIN(due_at) FROM notification WHERE state = 'Scheduled'")
        .map(Date.init(milliseconds:))
    }
  }

  package func directTargets(
    of id: NotificationID, hub: Hub.ID, after: RegistrationID, limit: Int
  ) async throws -> TargetPage {
    try await read(as: .delivery()) { session in
      guard limit > 0 else { return TargetPage() }
      var page = try PostgresClaims(session).directTargets(
        of: id, hub: hub, "t.number > ?3 ORDER BY t.number LIMIT ?4", after, Int64(limit) + 1)
      if page.targets.count > limit {
        page.targets.removeLast()
        page.next = page.targets.last?.registration
      }
      return page
    }
  }

  // MARK: Retries

  package func dueRetries(
    of lane: LaneKey, asOf now: Date, limit: Int
  ) async throws -> [DueRetries] {
    let node = heart?.id
    return try await readFreely(as: .delivery()) { session in
      try PostgresClaims(session).retries(
        """
        r.hub = ?1 AND r.platform = ?2 AND r.due <= ?4 ORDER BY r.due LIMIT ?5
        """, lane, node, now.milliseconds, Int64(max(0, limit)))
    }
  }

  package func retries(
    of lane: LaneKey, notification: NotificationID, part: Int, limit: Int
  ) async throws -> [DueRetries] {
    let node = heart?.id
    return try await readFreely(as: .delivery()) { session in
      try session.requireHub(lane.hub)
      return try PostgresClaims(session).retries(
        """
        r.hub = ?1 AND r.platform = ?2 AND n.hub = ?1 AND n.public_id = ?4 AND r.part = ?5
        ORDER BY r.registration LIMIT ?6
        """, lane, node, notification.rawValue, Int64(part), Int64(max(0, limit)))
    }
  }

  package func nextRetry(of lane: LaneKey) async throws -> Date? {
    let node = heart?.id
    return try await readFreely(as: .delivery()) { session in
      try session.first(
        """
        SELECT r.due FROM \(PostgresClaims.ownRetries)
        WHERE r.hub = ?1 AND r.platform = ?2 AND \(PostgresClaims.isOwn("?3"))
        ORDER BY r.due LIMIT 1
        """, lane.hub, lane.platform.code, node
      ).map(Date.init(milliseconds:))
    }
  }

  package func retryLanes() async throws -> [LaneKey: Date] {
    let node = heart?.id
    return try await readFreely(as: .delivery()) { session in
      let row = try session.connection.statement(
        """
        SELECT r.hub, r.platform, MIN(r.due) FROM \(PostgresClaims.ownRetries)
        WHERE \(PostgresClaims.isOwn("?1")) GROUP BY r.hub, r.platform
        """, node)
      var lanes: [LaneKey: Date] = [:]
      while try row.step() {
        // A row with a platform unknown to this build must not keep the others from being
        // delivered; it ends with its notification's delivery window.
        guard let platform = try? PushPlatform(code: row.integer(1)) else { continue }
        lanes[LaneKey(hub: row.integer(0), platform: platform)] = Date(milliseconds: row.integer(2))
      }
      return lanes
    }
  }

  package func waitingRetries(
    _ id: NotificationID, part: Int?, hub: Hub.ID
  ) async throws -> Int {
    let node = heart?.id
    return try await read(as: .delivery()) { session in
      if let part, let node {
        let row = try session.connection.statement(
          """
          SELECT w.owner FROM work w JOIN notification n ON n.id = w.notification
          WHERE n.hub = ?1 AND n.public_id = ?2 AND w.part = ?3
          """, hub, id.rawValue, Int64(part))
        if try row.step(), row.optionalInteger(0) != node { throw StoreError.leaseLost }
      }
      return Int(
        try session.first(
          """
          SELECT COUNT(*) FROM retry r JOIN notification n ON n.id = r.notification
          WHERE n.hub = ?1 AND n.public_id = ?2
            AND (CAST(?3 AS BIGINT) IS NULL OR r.part = CAST(?3 AS BIGINT))
          """, hub, id.rawValue, part.map(Int64.init)) ?? 0)
    }
  }
}

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
  fileprivate func claim(
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
  fileprivate static func arrays(of known: Set<WorkID>) -> (ids: [UInt8], parts: [UInt8]) {
    let known = Array(known)
    return (
      PostgresArray.text(known.map(\.notification.rawValue)),
      PostgresArray.int8(known.map { Int64($0.part) })
    )
  }

  /// True for parts of a notification `n` that are among those of ``arrays(of:)``.
  fileprivate static func isKnown(_ work: String, ids: String, parts: String) -> String {
    """
    EXISTS (SELECT 1 FROM unnest(\(ids)::text[], \(parts)::int8[]) AS known(id, part)
      WHERE known.id = n.public_id AND known.part = \(work).part)
    """
  }

  /// True for parts of a notification `n` that a node has claimed and that are not known.
  fileprivate static func isForgotten(
    _ work: String, by node: String, ids: String, parts: String
  ) -> String {
    """
    \(work).owner = \(node) AND \(work).epoch > 0 AND \(work).is_done = 0
      AND NOT \(isKnown(work, ids: ids, parts: parts))
    """
  }

  /// Retries with their work and notification, as `r`, `w` and `n`.
  fileprivate static let ownRetries = """
    retry r JOIN work w ON w.notification = r.notification AND w.part = r.part
      JOIN notification n ON n.id = r.notification
    """

  /// True for work that a node owns.
  fileprivate static func isOwn(_ node: String) -> String {
    "n.ended_at IS NULL AND w.is_done = 0 AND w.owner = \(node)"
  }

  private struct RetryGroup: Hashable {
    let notification: Int64
    let part: Int
    let id: NotificationID
    let hub: Hub.ID
    let isDirect: Bool
  }

  /// - Parameters:
  ///   - condition: The condition with order and limit; it begins with the lane's hub and platform,
  ///     `?1` and `?2`.
  ///   - values: The values from `?4` on.
  fileprivate func retries(
    _ condition: String, _ lane: LaneKey, _ node: Int64?, _ values: any SQLValue...
  ) throws -> [DueRetries] {
    var groups: [RetryGroup: [RegistrationID: Int]] = [:]
    do {
      let row = try connection.statement(
        """
        SELECT r.notification, r.part, r.registration, r.attempts, n.public_id, r.hub, n.is_direct
        FROM \(Self.ownRetries) WHERE \(Self.isOwn("?3")) AND \(condition)
        """, values: [lane.hub, lane.platform.code, node] + values)
      while try row.step() {
        let group = RetryGroup(
          notification: row.integer(0), part: Int(row.integer(1)),
          id: NotificationID(rawValue: row.text(4)), hub: row.integer(5),
          isDirect: row.integer(6) != 0)
        groups[group, default: [:]][row.integer(2)] = Int(row.integer(3))
      }
    }
    let sorted = groups.sorted {
      ($0.key.notification, $0.key.part) < ($1.key.notification, $1.key.part)
    }
    return try sorted.map { group, attempts in
      let numbers = attempts.keys.sorted()
      let page =
        group.isDirect
        ? try directTargets(
          of: group.id, hub: group.hub, "t.number = ANY(?3::int8[]) ORDER BY t.number",
          PostgresArray.int8(numbers))
        : try PostgresTargets(session).page(of: numbers, hub: group.hub)
      let live = Set(page.targets.map(\.registration) + page.unreadable.map(\.registration))
      return DueRetries(
        notification: group.id, part: group.part, hub: group.hub, page: page, attempts: attempts,
        gone: numbers.filter { !live.contains($0) })
    }
  }

  /// Targets of a direct send.
  /// - Parameters:
  ///   - condition: The condition on the rows of `notification_target`, called `t`, with their
  ///     order.
  ///   - values: The values from `?3` on.
  fileprivate func directTargets(
    of id: NotificationID, hub: Hub.ID, _ condition: String, _ values: any SQLValue...
  ) throws -> TargetPage {
    let row = try connection.statement(
      """
      SELECT t.number, t.handle, t.is_duplicate, n.format
      FROM notification_target t JOIN notification n ON n.id = t.notification
      WHERE n.hub = ?1 AND n.public_id = ?2 AND n.is_direct = 1 AND \(condition)
      """, values: [hub, id.rawValue] + values)
    var page = TargetPage()
    while try row.step() { page.append(row, platform: try PushPlatform(code: row.integer(3))) }
    return page
  }

  /// Sets the release time of notifications accepted by a node that did not know the time: they
  /// count from their first claim.
  fileprivate func date(_ found: inout FoundNotifications, _ steady: Date) throws {
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
  fileprivate func parts(of claim: Int64, at node: Int64) throws -> FoundNotifications {
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
