package import Foundation
package import HubCore
import NotificationHubs
import SQLDatabase

/// Notifications as their senders see them.
extension SQLiteHubStore {
  package func accept(_ submission: Submission) async throws -> Acceptance {
    try await write(as: submission.label) { session in
      try session.requireHub(submission.record.hub)
      return try NotificationWriter(session).accept(submission)
    }
  }
}

extension SubjectStore {
  package func notification(
    _ id: NotificationID, hub: Hub.ID
  ) async throws -> NotificationRecord? {
    try await reading(#function) { session in
      guard try session.hasHub(hub) else { return nil }
      return try NotificationTable(session.sql).notifications(
        where: "hub = ?1 AND public_id = ?2", hub, id.rawValue
      ).first
    }
  }

  package func cancelSchedule(
    _ id: NotificationID, hub: Hub.ID, at: Date
  ) async throws -> Bool {
    try await writing(#function) { session in
      try session.sql.change(
        """
        UPDATE notification SET state = ?3, ended_at = ?4
        WHERE hub = ?1 AND public_id = ?2 AND state = 'Scheduled'
        """, hub, id.rawValue, NotificationState.canceled.rawValue, at.milliseconds) > 0
    }
  }

  package func abort(
    _ id: NotificationID, hub: Hub.ID, at: Date
  ) async throws -> AbortVerdict? {
    try await writing(#function) { session in
      try session.requireHub(hub)
      return try NotificationTable(session.sql).abort(id, hub: hub, at: at.milliseconds)
    }
  }

  package func clearNotifications(endedBefore limit: Date) async throws -> Bool {
    let hasWork = try await reading(#function) { session in
      let row = try session.sql.statement(
        "SELECT 1 FROM notification WHERE ended_at < ?1 LIMIT 1", limit.milliseconds)
      return try row.step()
    }
    guard hasWork else { return false }
    return try await writing(#function) {
      try NotificationTable($0.sql).clearNotifications(endedBefore: limit)
    }
  }
}

extension SubjectStore {
  package func clearTexts(endedBefore limit: Date) async throws -> Bool {
    let ended = "notification WHERE ended_at < ?1 AND body IS NOT NULL"
    let hasWork = try await reading(#function) { session in
      try session.sql.statement("SELECT 1 FROM \(ended) LIMIT 1", limit.milliseconds).step()
    }
    guard hasWork else { return false }
    return try await writing(#function) { session in
      // Nodes clear in the same order, each what no other is clearing.
      let count = try session.sql.change(
        """
        UPDATE notification SET body = NULL WHERE id IN (SELECT id FROM \(ended)
          ORDER BY ended_at LIMIT \(clearingLimit) \(session.sql.dialect.freeRows))
        """, limit.milliseconds)
      return count == clearingLimit
    }
  }
}

/// Notifications that are accepted.
struct NotificationWriter: WritingSubject {
  let session: WriteSession

  init(_ session: WriteSession) { self.session = session }

  /// Stores a notification, or recognises it as a repeat.
  func accept(_ submission: Submission) throws -> Acceptance {
    let record = submission.record
    if let claim = submission.idempotency {
      if let earlier = try earlier(claim, hub: record.hub, asOf: record.enqueuedAt) {
        return earlier
      }
      try keep(claim, for: record)
    }
    try insert(record)
    if let activity = submission.activity { try ActivityTable(connection).insert(activity) }
    session.tally.add(
      1, hub: record.hub, at: record.enqueuedAt.milliseconds, code: StatisticTally.accepted)
    guard !submission.targets.isEmpty else { return .accepted }
    let row = try connection.statement(
      """
      INSERT INTO notification_target (notification, number, handle, is_duplicate)
      VALUES (?1, ?2, ?3, ?4)
      """)
    for (index, target) in submission.targets.enumerated() {
      try row.run(
        session.state.lastNotification, Int64(index + 1), target.handle, target.isDuplicate)
    }
    return .accepted
  }

  // MARK: Keys

  private func earlier(
    _ claim: IdempotencyClaim, hub: Hub.ID, asOf now: Date
  ) throws -> Acceptance? {
    let row = try connection.statement(
      """
      SELECT fingerprint, notification FROM idempotency_key
      WHERE hub = ?1 AND name = ?2 AND expires_at > ?3
      """, hub, claim.key, now.milliseconds)
    guard try row.step() else { return nil }
    guard row.bytes(0) == claim.fingerprint else { return .keyInUse }
    return .repeated(NotificationID(rawValue: row.text(1)))
  }

  private func keep(_ claim: IdempotencyClaim, for record: NotificationRecord) throws {
    try execute(
      "DELETE FROM idempotency_key WHERE expires_at <= ?1", record.enqueuedAt.milliseconds)
    try execute(
      """
      INSERT INTO idempotency_key (hub, name, fingerprint, notification, expires_at)
      VALUES (?1, ?2, ?3, ?4, ?5)
      """, record.hub, claim.key, claim.fingerprint, record.id.rawValue,
      claim.expiresAt.milliseconds)
  }

  func insert(_ record: NotificationRecord) throws {
    session.state.lastNotification += 1
    let row = try connection.statement(
      """
      INSERT INTO notification (\(NotificationRecord.columns), position, is_audience_read,
        last_registration, audience_commit)
      VALUES (\(NotificationRecord.values), ?16, ?17, ?18, ?19)
      """)
    try record.bind(to: row, number: session.state.lastNotification)
    try row.bind(record.cursor, at: 16)
    try row.bind(record.isAudienceRead, at: 17)
    try row.bind(session.state.lastRegistration, at: 18)
    try row.bind(session.state.commitNumber + 1, at: 19)
    try row.run()
    try CheckpointWriter(session).add(record.counts, to: session.state.lastNotification)
  }
}

extension NotificationRecord {
  /// The columns that ``NotificationTable/record(_:part:)`` reads.
  static let readColumns = """
    id, hub, public_id, format, body, tags, expression, headers, expiry, state, enqueued_at,
    started_at, ended_at, position, is_audience_read, is_direct, due_at, kept, kept_cleared,
    last_registration, aborted_at
    """

  /// ``releasedAt``, in milliseconds.
  static let release =
    "(CASE WHEN due_at IS NULL THEN enqueued_at ELSE COALESCE(started_at, enqueued_at) END)"

  /// The columns of the values from ``bind(to:number:)``, and their placeholders.
  static let columns = """
    id, hub, public_id, format, body, tags, expression, headers, expiry, state, enqueued_at,
    started_at, ended_at, is_direct, due_at
    """
  static let values = "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15"

  func bind(to row: borrowing Statement, number: Int64) throws {
    let format: Int64 =
      switch request.format {
      case .template: 0
      case .native(let platform): platform.code
      }
    let expression = request.expression.map { expression in
      var writer = ByteWriter()
      writer.write(expression)
      return writer.bytes
    }
    var headers = ByteWriter()
    headers.write(request.headers)
    try row.bind(
      number, hub, id.rawValue, format, request.body, request.tags, expression, headers.bytes,
      request.expiry, state.rawValue, enqueuedAt.milliseconds, startedAt?.milliseconds,
      endedAt?.milliseconds, request.isDirect, scheduledFor?.milliseconds)
  }
}

/// Notifications with their counts.
struct NotificationTable {
  let connection: any SQLConnection

  init(_ connection: any SQLConnection) { self.connection = connection }

  /// See ``NotificationStore/abort(_:hub:at:)``.
  fileprivate func abort(_ id: NotificationID, hub: Hub.ID, at: Int64) throws -> AbortVerdict? {
    let state: NotificationState
    let hasEnded: Bool
    let wasAborted: Bool
    do {
      let row = try connection.statement(
        """
        SELECT state, ended_at, aborted_at FROM notification WHERE hub = ?1 AND public_id = ?2
        \(connection.dialect.lockingRows)
        """,
        hub, id.rawValue)
      guard try row.step() else { return nil }
      guard let found = NotificationState(rawValue: row.text(0)) else {
        throw StoreError.corrupt("a notification has an unknown state")
      }
      (state, hasEnded, wasAborted) = (found, !row.isNull(1), !row.isNull(2))
    }
    if hasEnded { return wasAborted && state == .canceled ? .aborted : .finished(state) }
    let isScheduled = state == .scheduled
    try connection.change(
      """
      UPDATE notification SET aborted_at = COALESCE(aborted_at, ?3), state = ?4, ended_at = ?5
      WHERE hub = ?1 AND public_id = ?2
      """, hub, id.rawValue, at, (isScheduled ? .canceled : state).rawValue,
      isScheduled ? at : nil)
    return isScheduled ? .cancelled : .aborting
  }

  func notificationNumber(_ id: NotificationID, hub: Hub.ID) throws -> Int64? {
    let row = try connection.statement(
      "SELECT id FROM notification WHERE hub = ?1 AND public_id = ?2")
    try row.bind(hub, at: 1)
    try row.bind(id.rawValue, at: 2)
    return try row.step() ? row.integer(0) : nil
  }

  /// Notifications with their counts, oldest first.
  /// - Throws: ``StoreError/corrupt(_:)`` when one cannot be read.
  func notifications(
    where condition: String, _ first: Int64?, _ second: String?
  ) throws -> [NotificationRecord] {
    let found = try findNotifications(where: condition, first, second)
    if let lost = found.unreadable.first { throw StoreError.corrupt(lost.reason) }
    return found.records
  }

  /// As ``notifications(where:_:_:)``, with unreadable ones listed separately.
  func findNotifications(
    where condition: String, _ first: Int64?, _ second: String?
  ) throws -> FoundNotifications {
    let row = try connection.statement(
      """
      SELECT \(NotificationRecord.readColumns)
      FROM \(connection.dialect.notifications) WHERE \(condition) ORDER BY id
      """)
    if let first { try row.bind(first, at: 1) }
    if let second { try row.bind(second, at: 2) }
    var found = FoundNotifications()
    while try row.step() {
      do {
        found.records.append(try record(row))
      } catch StoreError.corrupt(let reason) {
        found.unreadable.append(
          UnreadableNotification(
            id: NotificationID(rawValue: row.text(2)), hub: row.integer(1), reason: reason))
      }
    }
    return found
  }

  /// - Parameters:
  ///   - row: Selected with ``NotificationRecord/readColumns``.
  ///   - part: The part whose counts the record has; `nil` for those of all.
  func record(_ row: borrowing Statement, part: Int? = nil) throws -> NotificationRecord {
    guard let state = NotificationState(rawValue: row.text(9)) else {
      throw StoreError.corrupt("a notification has an unknown state")
    }
    var record = NotificationRecord(
      id: NotificationID(rawValue: row.text(2)), hub: row.integer(1), request: try request(row),
      state: state, enqueuedAt: Date(milliseconds: row.integer(10)),
      scheduledFor: row.optionalInteger(16).map(Date.init(milliseconds:)),
      startedAt: row.optionalInteger(11).map(Date.init(milliseconds:)),
      endedAt: row.optionalInteger(12).map(Date.init(milliseconds:)), cursor: row.integer(13),
      isAudienceRead: row.integer(14) != 0, counts: try counts(of: row.integer(0), part: part))
    record.keeping = row.optionalInteger(17).flatMap(OutcomeKeeping.init(code:))
    record.hasClearedOutcomes = row.integer(18) != 0
    record.hasClearedText = row.isNull(4)
    record.lastRegistration = row.optionalInteger(19)
    record.abortedAt = row.optionalInteger(20).map(Date.init(milliseconds:))
    return record
  }

  private func request(_ row: borrowing Statement) throws -> NotificationRequest {
    let format = row.integer(3)
    var headers = ByteReader(row.bytes(7))
    var request = NotificationRequest(
      format: format == 0 ? .template : .native(try PushPlatform(code: format)),
      body: row.bytes(4), tags: row.optionalText(5), headers: try headers.words(),
      expiry: row.optionalInteger(8), isDirect: row.integer(15) != 0)
    if let bytes = row.optionalBytes(6) {
      var reader = ByteReader(bytes)
      request.expression = try reader.expression()
    }
    return request
  }

  private func counts(of notification: Int64, part: Int?) throws -> [OutcomeKey: Int] {
    let row = try connection.statement(
      """
      SELECT platform, is_template, outcome, total FROM notification_count
      WHERE notification = ?1\(part == nil ? "" : " AND part = ?2")
      """)
    try row.bind(notification, at: 1)
    if let part { try row.bind(Int64(part), at: 2) }
    var counts: [OutcomeKey: Int] = [:]
    while try row.step() {
      let key = OutcomeKey(
        platform: try PushPlatform(code: row.integer(0)), isTemplate: row.integer(1) != 0,
        outcome: NotificationOutcome(code: row.integer(2)))
      counts[key, default: 0] += Int(row.integer(3))
    }
    return counts
  }
}

/// Maximum number of rows about devices that a slice deletes: about ten milliseconds of work.
let deletionBudget = 2_000
/// Maximum number of notifications that a call deletes, or clears.
private let clearingLimit = 100

/// Deletes notifications with all their rows, a slice at a time.
extension NotificationTable {
  /// See ``NotificationStore/clearNotifications(endedBefore:)``.
  func clearNotifications(endedBefore limit: Date) throws -> Bool {
    let due = try connection.numbers(
      """
      SELECT id FROM notification WHERE ended_at < ?1 ORDER BY ended_at
      LIMIT \(clearingLimit)
      """, limit.milliseconds)
    var budget = deletionBudget
    for number in due where try !deleteNotification(number, budget: &budget) { return true }
    return due.count == clearingLimit
  }

  /// - Parameter budget: The number of rows about devices that may be deleted.
  /// - Returns: `false` when some are left, and the notification with them.
  func deleteNotification(_ number: Int64, budget: inout Int) throws -> Bool {
    for (table, key) in [
      ("retry", "registration"), ("notification_failure", "registration"),
      ("notification_target", "number"),
    ] {
      let rows =
        "\(table) WHERE notification = ?1"
        + (connection.dialect == .postgres && table == DayTable.failures.name
          ? " AND day = (SELECT day FROM notification WHERE id = ?1)" : "")
      let count = try connection.change(
        """
        DELETE FROM \(rows) AND \(key) IN (SELECT \(key) FROM \(rows) LIMIT \(max(0, budget)))
        """, number)
      budget -= count
      if budget <= 0 { return false }
    }
    for table in connection.dialect.notificationParts {
      try connection.change("DELETE FROM \(table) WHERE notification = ?1", number)
    }
    try connection.change("DELETE FROM notification WHERE id = ?1", number)
    return true
  }
}

extension Dialect {
  /// The table with the columns of a notification and of its progress.
  fileprivate var notifications: String {
    self == .postgres ? "notification_progress" : "notification"
  }

  /// The tables that have few rows for each notification.
  var notificationParts: [String] {
    ["notification_count"] + (self == .postgres ? ["work", "kept_outcome"] : [])
  }
}
