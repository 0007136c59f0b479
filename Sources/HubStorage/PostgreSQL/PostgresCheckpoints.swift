import Foundation
import HubCore
import NotificationHubs
import SQLDatabase

/// A part of a notification to which a checkpoint applies.
private struct MarkedWork {
  let number: Int64
  let part: Int64
  let isDirect: Bool
  let isAborted: Bool
  /// Whether the notification's row already says that delivery has begun.
  let hasStarted: Bool
  /// The day of the table that holds its failures; see ``DayTable``.
  let day: Int64
}

/// Writes the changes of a page of deliveries.
struct PostgresCheckpoints: PostgresSubject {
  let session: PostgresSession

  init(_ session: PostgresSession) { self.session = session }

  /// - Throws: As of ``WorkStore/checkpoint(_:)``.
  func apply(
    _ checkpoint: Checkpoint, marked mark: Int64, at node: Int64?
  ) throws -> CheckpointAnswer {
    let work: MarkedWork
    if let moved = try move(checkpoint, marked: mark, at: node) {
      work = moved
    } else if let answer = try answer(to: checkpoint, marked: mark) {
      // The transaction of a lost connection was committed after all.
      return answer
    } else if let begun = try begin(checkpoint, marked: mark, at: node) {
      work = begun
    } else {
      return CheckpointAnswer()
    }
    try add(checkpoint.counts, part: work.part, to: work.number)
    for (key, count) in checkpoint.counts {
      session.tally.add(
        count, hub: checkpoint.hub, at: checkpoint.at.milliseconds, platform: key.platform.code,
        code: Int64(key.outcome.rawValue))
    }
    try PostgresOutcomes(session).keepOutcomes(
      of: checkpoint, in: work.number, part: work.part, day: work.day)
    try change(checkpoint, retriesOf: work)
    // From here on handles are copied, so devices are locked against a concurrent erasure of their
    // user.
    try PostgresRemovals(session).lockDevices(of: checkpoint, isDirect: work.isDirect)
    try addFeedback(checkpoint, of: work.number, isDirect: work.isDirect)
    try remember(checkpoint.environments, hub: checkpoint.hub)
    try PostgresOutcomes(session).keepDevices(
      of: checkpoint.deadHandles.map(\.registration), hub: checkpoint.hub,
      inFailuresOf: work.number, day: work.day)
    let at = checkpoint.at.milliseconds
    try PostgresRemovals(session).removeDead(checkpoint.deadHandles, hub: checkpoint.hub, at: at)
    try PostgresRemovals(session).replaceHandles(
      checkpoint.replacedHandles, hub: checkpoint.hub, at: at)
    var answer = CheckpointAnswer(isAborted: work.isAborted)
    if checkpoint.state?.isFinal == true {
      answer.isFinished = try finish(checkpoint, work)
    } else if !work.hasStarted {
      try execute(
        """
        UPDATE notification SET state = COALESCE(?2, state), started_at = COALESCE(started_at, ?3)
        WHERE id = ?1 AND ended_at IS NULL
        """, work.number, checkpoint.state?.rawValue, checkpoint.startMilliseconds)
    }
    return answer
  }

  /// Advances a notification that was never claimed.
  /// - Returns: `nil` when it is gone.
  /// - Throws: ``StoreError/leaseLost`` when it was claimed.
  private func begin(
    _ checkpoint: Checkpoint, marked mark: Int64, at node: Int64?
  ) throws -> MarkedWork? {
    // Locked, because an erasure that did not see the new work would leave it behind.
    guard
      let number = try first(
        "SELECT id FROM notification WHERE hub = ?1 AND public_id = ?2 FOR UPDATE", checkpoint.hub,
        checkpoint.notification.rawValue)
    else { return nil }
    guard checkpoint.lease == WorkLease(),
      // A notification that was not divided into parts, because it is not due yet.
      try execute(
        """
        INSERT INTO work (notification, part, hub, owner) SELECT ?1, 0, ?2, ?3
        WHERE NOT EXISTS (SELECT 1 FROM work WHERE notification = ?1) ON CONFLICT DO NOTHING
        """, number, checkpoint.hub, node) > 0,
      let work = try move(checkpoint, marked: mark, at: node)
    else { throw StoreError.leaseLost }
    return work
  }

  /// Advances a part if this node owns it, and locks it until the transaction ends.
  /// - Returns: `nil` when it does not, when this checkpoint was already applied, or when the one
  ///   before it is missing.
  private func move(
    _ checkpoint: Checkpoint, marked mark: Int64, at node: Int64?
  ) throws -> MarkedWork? {
    let row = try connection.statement(
      """
      UPDATE work SET position = COALESCE(?6, position),
        is_read = CASE WHEN ?7::int8 = 1 THEN 1 ELSE is_read END,
        is_done = CASE WHEN ?8::int8 = 1 THEN 1 ELSE is_done END, kept = ?9, mark = ?10
      FROM notification AS n
      WHERE n.hub = ?1 AND n.public_id = ?2 AND work.notification = n.id AND work.part = ?3
        AND work.epoch = ?4 AND (work.owner IS NULL OR work.owner = ?5)
        AND work.mark IS DISTINCT FROM ?10 AND (?11::int8 IS NULL OR work.mark = ?11)
      RETURNING n.id, n.is_direct, n.aborted_at, n.state, n.started_at, n.day
      """, checkpoint.hub, checkpoint.notification.rawValue, Int64(checkpoint.lease.part),
      checkpoint.lease.epoch, node, checkpoint.cursor, checkpoint.isAudienceRead,
      checkpoint.state?.isFinal == true, checkpoint.keeping.code, mark,
      (checkpoint.number ?? 1) > 1 ? mark - 1 : nil)
    guard try row.step() else { return nil }
    return MarkedWork(
      number: row.integer(0), part: Int64(checkpoint.lease.part), isDirect: row.integer(1) != 0,
      isAborted: !row.isNull(2),
      hasStarted: !row.isNull(4)
        && (checkpoint.state == nil || row.text(3) == checkpoint.state?.rawValue),
      day: row.integer(5))
  }

  /// The result of a checkpoint whose reply was lost; `nil` if it never committed.
  func answer(
    to checkpoint: Checkpoint, marked mark: Int64
  ) throws -> CheckpointAnswer? {
    let row = try connection.statement(
      """
      SELECT n.aborted_at, n.ended_at FROM notification n JOIN work w ON w.notification = n.id
      WHERE n.hub = ?1 AND n.public_id = ?2 AND w.part = ?3 AND w.mark = ?4
      """, checkpoint.hub, checkpoint.notification.rawValue, Int64(checkpoint.lease.part), mark)
    guard try row.step() else { return nil }
    return CheckpointAnswer(
      isAborted: !row.isNull(0),
      isFinished: checkpoint.state?.isFinal == true && !row.isNull(1))
  }

  /// Ends the notification if this part was its last.
  private func finish(_ checkpoint: Checkpoint, _ work: MarkedWork) throws -> Bool {
    // Two parts that end at once wait for each other here: the second sees that the first has
    // ended.
    try connection.statement("SELECT 1 FROM notification WHERE id = ?1 FOR UPDATE", work.number)
      .run()
    let open = try first(
      "SELECT COUNT(*) FROM work WHERE notification = ?1 AND is_done = 0", work.number)
    guard open == 0, let end = checkpoint.state else { return false }
    let state = work.part == 0 ? end : .ending(try outcomes(of: work.number))
    try execute(
      """
      UPDATE notification SET state = ?2, ended_at = ?3, started_at = COALESCE(started_at, ?4)
      WHERE id = ?1 AND ended_at IS NULL
      """, work.number, state.rawValue, checkpoint.at.milliseconds, checkpoint.startMilliseconds)
    return true
  }

  private func outcomes(of number: Int64) throws -> Set<NotificationOutcome> {
    Set(
      try connection.numbers(
        "SELECT DISTINCT outcome FROM notification_count WHERE notification = ?1 AND total > 0",
        number
      ).map { NotificationOutcome(code: $0) })
  }

  // MARK: Data written with a page

  func add(_ counts: [OutcomeKey: Int], part: Int64, to number: Int64) throws {
    guard !counts.isEmpty else { return }
    let all = Array(counts)
    try execute(
      """
      INSERT INTO notification_count (notification, part, platform, is_template, outcome, total)
      SELECT ?1, ?2, platform, is_template, outcome, total
      FROM unnest(?3::int2[], ?4::int2[], ?5::int2[], ?6::int8[])
        AS new (platform, is_template, outcome, total)
      ON CONFLICT (notification, part, platform, is_template, outcome)
      DO UPDATE SET total = notification_count.total + excluded.total
      """, number, part, PostgresArray.int2(all.map(\.key.platform.code)),
      PostgresArray.int2(all.map { $0.key.isTemplate ? 1 : 0 }),
      PostgresArray.int2(all.map { Int64($0.key.outcome.rawValue) }),
      PostgresArray.int8(all.map { Int64($0.value) }))
  }

  private func remember(
    _ environments: [(registration: RegistrationID, environment: PushEnvironment)], hub: Hub.ID
  ) throws {
    guard !environments.isEmpty else { return }
    try execute(
      """
      UPDATE registration SET environment = new.environment
      FROM unnest(?2::int2[], ?3::int8[], ?4::int2[]) AS new (slot, id, environment)
      WHERE registration.hub = ?1 AND registration.slot = new.slot AND registration.id = new.id
      """, hub, PostgresArray.int2(environments.map { slots.slot(ofNumber: $0.registration) }),
      PostgresArray.int8(environments.map(\.registration)),
      PostgresArray.int2(environments.map { Int64($0.environment.rawValue) }))
  }

  private func change(_ checkpoint: Checkpoint, retriesOf work: MarkedWork) throws {
    if checkpoint.state?.isFinal == true {
      try execute(
        "DELETE FROM retry WHERE notification = ?1 AND part = ?2", work.number, work.part)
      return
    }
    if !checkpoint.settledRetries.isEmpty {
      try execute(
        """
        DELETE FROM retry WHERE notification = ?1 AND part = ?2 AND registration = ANY(?3::int8[])
        """, work.number, work.part, PostgresArray.int8(checkpoint.settledRetries))
    }
    // The last retry of a target counts.
    let retries = Dictionary(checkpoint.retries.map { ($0.registration, $0) }) { $1 }.values
    guard !retries.isEmpty else { return }
    try execute(
      """
      INSERT INTO retry
        (notification, part, hub, registration, platform, attempts, due, outcome, status, reason)
      SELECT ?1, ?2, ?3, registration, platform, attempts, due, outcome, status, reason
      FROM unnest(?4::int8[], ?5::int2[], ?6::int8[], ?7::int8[], ?8::int2[], ?9::int8[], ?10::text[])
        AS new (registration, platform, attempts, due, outcome, status, reason)
      ON CONFLICT (notification, part, registration)
      DO UPDATE SET attempts = excluded.attempts, due = excluded.due, platform = excluded.platform,
        reason = CASE WHEN excluded.outcome IS NULL THEN retry.reason ELSE excluded.reason END,
        outcome = COALESCE(excluded.outcome, retry.outcome),
        status = COALESCE(excluded.status, retry.status)
      """, work.number, work.part, checkpoint.hub, PostgresArray.int8(retries.map(\.registration)),
      PostgresArray.int2(retries.map(\.platform.code)),
      PostgresArray.int8(retries.map { Int64($0.attempts) }),
      PostgresArray.int8(retries.map(\.due.milliseconds)),
      PostgresArray.int2(retries.map { $0.answer.map { Int64($0.outcome.rawValue) } }),
      PostgresArray.int8(retries.map { $0.answer.map { Int64($0.status) } }),
      PostgresArray.text(retries.map { $0.answer?.reason?.storable }))
  }

  /// Stores feedback on handles from a page of deliveries, before the dead ones are deleted.
  private func addFeedback(
    _ checkpoint: Checkpoint, of notification: Int64, isDirect: Bool
  ) throws {
    let news = checkpoint.handleNews
    guard !news.isEmpty else { return }
    let source =
      isDirect
      ? """
      SELECT ?1, ?2, ?3, new.outcome, n.format, t.handle, 0, NULL, NULL, ?4, new.handle
      FROM \(Self.news) JOIN notification_target t ON t.notification = ?5 AND t.number = new.registration
        JOIN notification n ON n.id = t.notification
      """
      : """
      SELECT ?1, ?2, ?3, new.outcome, r.platform, r.handle, r.id, r.public_id,
        (SELECT i.public_id FROM installation i
          WHERE i.hub = r.hub AND i.slot = r.slot AND i.id = r.installation), ?4, new.handle
      FROM \(Self.news) JOIN registration r
        ON r.hub = ?1 AND r.slot = new.slot AND r.id = new.registration AND ?5::int8 IS NOT NULL
      """
    try execute(
      """
      INSERT INTO feedback
        (hub, hour, at, outcome, platform, handle, registration, public_id, installation,
        notification, new_handle)
      \(source) ORDER BY new.position
      """, checkpoint.hub, checkpoint.at.milliseconds / 3_600_000, checkpoint.at.milliseconds,
      checkpoint.notification.rawValue, notification, PostgresArray.int8(news.map(\.registration)),
      PostgresArray.int2(news.map { slots.slot(ofNumber: $0.registration) }),
      PostgresArray.int2(news.map { Int64($0.outcome.rawValue) }),
      PostgresArray.text(news.map { $0.newHandle?.storable }))
    // At random, in proportion to the new rows: the check costs as much as storing a row.
    guard Int.random(in: 0..<10_000) < news.count else { return }
    try execute(
      """
      DELETE FROM feedback WHERE hub = ?1 AND id <= (SELECT id FROM feedback WHERE hub = ?1
        ORDER BY id DESC OFFSET ?2 LIMIT 1)
      """, checkpoint.hub, Int64(HandleFeedback.limit))
  }

  private static let news = """
    unnest(?6::int8[], ?7::int2[], ?8::int2[], ?9::text[]) WITH ORDINALITY
      AS new (registration, slot, outcome, handle, position)
    """
}

extension Checkpoint {
  var startMilliseconds: Int64 { (startedAt ?? at).milliseconds }
}
