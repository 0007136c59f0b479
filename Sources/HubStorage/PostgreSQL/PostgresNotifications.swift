import Foundation
import HubCore
import NotificationHubs
import SQLDatabase

/// Accepted notifications, and the release of scheduled ones.
struct PostgresNotifications: PostgresSubject {
  let session: PostgresSession

  init(_ session: PostgresSession) { self.session = session }

  /// Stores a notification, or recognises it as a repeat.
  /// - Parameter node: The node that begins with a narrow one.
  func accept(_ submission: Submission, at node: Int64?) throws -> Acceptance {
    let record = submission.record
    if let claim = submission.idempotency, let earlier = try keep(claim, for: record) {
      return earlier
    }
    guard let number = try insert(record) else {
      // The transaction of a lost connection was committed after all.
      return .accepted
    }
    if record.state != .scheduled, !record.state.isFinal {
      try makeWork(number, for: record, at: node)
    }
    if let activity = submission.activity { try ActivityTable(connection).insert(activity) }
    session.tally.add(
      1, hub: record.hub, at: record.enqueuedAt.milliseconds, code: StatisticTally.accepted)
    guard !submission.targets.isEmpty else { return .accepted }
    try execute(
      """
      INSERT INTO notification_target (notification, number, handle, is_duplicate)
      SELECT ?1, number, handle, is_duplicate FROM unnest(?2::text[], ?3::int2[]) WITH ORDINALITY
        AS new (handle, is_duplicate, number)
      """, number, PostgresArray.text(submission.targets.map { $0.handle.storable }),
      PostgresArray.int2(submission.targets.map { $0.isDuplicate ? 1 : 0 }))
    return .accepted
  }

  /// Stores an idempotency key. Waits for another node that writes the same key at this moment.
  /// - Returns: The existing result of the key; `nil` when it is new.
  private func keep(_ claim: IdempotencyClaim, for record: NotificationRecord) throws -> Acceptance?
  {
    let isNew = try execute(
      """
      INSERT INTO idempotency_key AS k (hub, name, fingerprint, notification, expires_at)
      VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (hub, name)
      DO UPDATE SET fingerprint = excluded.fingerprint, notification = excluded.notification,
        expires_at = excluded.expires_at
      WHERE k.expires_at <= ?6
      """, record.hub, claim.key, claim.fingerprint, record.id.rawValue,
      claim.expiresAt.milliseconds, record.enqueuedAt.milliseconds)
    if isNew > 0 {
      // At random, in proportion to the new keys: expired ones are not looked up any more.
      if Int.random(in: 0..<100) == 0 {
        try execute(
          """
          DELETE FROM idempotency_key WHERE (hub, name) IN (SELECT hub, name FROM idempotency_key
            WHERE expires_at <= ?1 LIMIT 1000 FOR UPDATE SKIP LOCKED)
          """, record.enqueuedAt.milliseconds)
      }
      return nil
    }
    let row = try connection.statement(
      "SELECT fingerprint, notification FROM idempotency_key WHERE hub = ?1 AND name = ?2",
      record.hub, claim.key)
    guard try row.step() else {
      throw SQLError(kind: .conflict, code: 0, message: "a key has gone")
    }
    guard row.bytes(0) == claim.fingerprint else { return .keyInUse }
    // This notification's own, when the reply to the commit was lost.
    let earlier = NotificationID(rawValue: row.text(1))
    return earlier == record.id ? .accepted : .repeated(earlier)
  }

  /// - Returns: The row's number; `nil` when the notification already exists.
  private func insert(_ record: NotificationRecord) throws -> Int64? {
    guard let number = try first("SELECT nextval('notification_id_seq')") else {
      throw StoreError.corrupt("a sequence gives no number")
    }
    let row = try connection.statement(
      """
      INSERT INTO notification
        (\(NotificationRecord.columns), last_registration, steady_release, audience_snapshot)
      VALUES (\(NotificationRecord.values), ?16, ?17, pg_current_snapshot()::text)
      ON CONFLICT (hub, public_id) DO NOTHING
      """)
    try record.bind(to: row, number: number)
    try row.bind(record.steadyRelease?.milliseconds, at: 17)
    if !record.request.isNarrow { try row.bind(try lastRegistration(of: record.hub), at: 16) }
    guard try connection.changes(running: row) > 0 else { return nil }
    try PostgresCheckpoints(session).add(record.counts, part: 0, to: number)
    return number
  }

  /// The highest number of a hub's registrations. A registration made at the same time may have a
  /// lower one; a greater number certainly did not exist.
  func lastRegistration(of hub: Hub.ID) throws -> RegistrationID? {
    try first(
      """
      SELECT MAX(last.id) FROM generate_series(0, \(slots.count - 1)) AS slot (number), LATERAL (
        SELECT id FROM registration WHERE hub = ?1 AND registration.slot = slot.number
        ORDER BY id DESC LIMIT 1) AS last
      """, hub)
  }

  /// Divides the work of a notification: a narrow one is a single part that the accepting node
  /// begins with, any other has parts for all nodes.
  private func makeWork(
    _ number: Int64, for record: NotificationRecord, at node: Int64?
  ) throws {
    let isNarrow = try record.request.isNarrow || hasFew(record.audience)
    let parts = isNarrow ? [.whole] : AudiencePart.all(slots)
    try execute(
      """
      INSERT INTO work (notification, part, hub, owner, position, is_read)
      SELECT ?1, part, ?3, ?4, ?5, ?6 FROM unnest(?2::int2[]) AS new (part)
      ON CONFLICT (notification, part) DO NOTHING
      """, number, PostgresArray.int2(parts.map { Int64($0.number(in: slots)) }), record.hub,
      isNarrow ? node : nil, record.cursor, record.isAudienceRead)
  }

  /// Whether an audience is one page at most, judged by its plain tags, or by the hub if there are
  /// none.
  ///
  /// Only counts that end after a page of rows are made: searching for the few registrations of a
  /// platform, or those without some tag, could read the whole hub while a sender waits.
  private func hasFew(_ query: AudienceQuery) throws -> Bool {
    guard let audience = try PostgresTargets(session).audience(query) else { return true }
    let bounds = query.expression?.bounds ?? []
    for bound in bounds.isEmpty ? [nil] : bounds.map(Optional.init) {
      var sql = SQLBuilder()
      sql += "SELECT COUNT(*) FROM (SELECT 1 FROM registration r"
      sql += " WHERE r.hub = \(sql.bind(query.hub))"
      if let bound {
        sql += " AND "
        audience.write(bound, to: &sql)
      }
      sql += " LIMIT \(Self.narrowLimit + 1)) AS few"
      let row = try sql.statement(on: connection)
      if try row.step(), row.integer(0) <= Int64(Self.narrowLimit) { return true }
    }
    return false
  }

  private static let narrowLimit = 1_000

  /// See ``WorkStore/releaseSchedules(asOf:limit:)``. Schedules that another node is releasing are
  /// skipped.
  func releaseSchedules(
    asOf now: Date, steadily steady: Date, limit: Int, at node: Int64?
  ) throws -> FoundNotifications {
    let due = try connection.numbers(
      """
      SELECT id FROM notification WHERE state = 'Scheduled' AND due_at <= ?1
      ORDER BY due_at LIMIT ?2 FOR UPDATE SKIP LOCKED
      """, now.milliseconds, Int64(max(0, limit)))
    var found = FoundNotifications()
    for number in due {
      try execute(
        """
        UPDATE notification SET state = ?2, started_at = ?3, steady_release = ?4,
          audience_snapshot = pg_current_snapshot()::text WHERE id = ?1
        """, number, NotificationState.enqueued.rawValue, now.milliseconds, steady.milliseconds)
      let one = try NotificationTable(connection).findNotifications(where: "id = ?1", number, nil)
      for record in one.records { try makeWork(number, for: record, at: node) }
      found.records += one.records
      // An unreadable one is also released: it must not stay due forever.
      found.unreadable += one.unreadable
    }
    return found
  }
}

extension String {
  /// The text without U+0000, which PostgreSQL cannot store; a push service may send any character.
  var storable: String {
    utf8.contains(0) ? replacing("\0", with: "\u{FFFD}") : self
  }
}
