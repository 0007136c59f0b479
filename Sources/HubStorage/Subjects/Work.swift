package import Foundation
package import HubCore
import NotificationHubs
import SQLDatabase

/// Undelivered work.
extension SQLiteHubStore {
  package var isShared: Bool { false }

  package func claimWork(limit: Int) async throws -> FoundNotifications {
    try await unfinishedNotifications()
  }

  package func releaseWork() async throws {}

  package func unclaimedWork(
    dueBy moment: Date, beside known: Set<WorkID>
  ) async throws -> UnclaimedWork {
    let known = Set(known.map(\.notification))
    return try await read { session in
      let row = try session.connection.statement(
        """
        SELECT public_id FROM notification WHERE ended_at IS NULL AND state <> 'Scheduled'
          AND \(NotificationRecord.release) <= ?1
        UNION ALL SELECT public_id FROM notification WHERE state = 'Scheduled' AND due_at <= ?1
        """, moment.milliseconds)
      var count = 0
      while try row.step() {
        if !known.contains(NotificationID(rawValue: row.text(0))) { count += 1 }
      }
      return UnclaimedWork(count: count)
    }
  }

  @discardableResult
  package func checkpoint(_ checkpoint: Checkpoint) async throws -> CheckpointAnswer {
    try await engine.confirmations.whileRemoving(if: checkpoint.changesHandles) {
      try await write(as: checkpoint.label) { try CheckpointWriter($0).apply(checkpoint) }
    }
  }

  package func releaseSchedules(asOf now: Date, limit: Int) async throws -> FoundNotifications {
    try await write(as: .delivery(rows: limit)) { session in
      let due = try session.connection.numbers(
        """
        SELECT id FROM notification WHERE state = 'Scheduled' AND due_at <= ?1
        ORDER BY due_at LIMIT ?2
        """, now.milliseconds, Int64(max(0, limit)))
      for number in due {
        try session.execute(
          "UPDATE notification SET state = ?2, started_at = ?3, audience_commit = ?4 WHERE id = ?1",
          number, NotificationState.enqueued.rawValue, now.milliseconds, session.revision)
      }
      var found = FoundNotifications()
      for number in due {
        // An unreadable one is also released: it must not stay due forever.
        let one = try NotificationTable(session.connection).findNotifications(
          where: "id = ?1", number, nil)
        found.records += one.records
        found.unreadable += one.unreadable
      }
      return found
    }
  }

  package func waitingRetries(
    _ id: NotificationID, part: Int?, hub: Hub.ID
  ) async throws -> Int {
    try await read(as: .delivery()) { session in
      guard let number = try NotificationTable(session.connection).notificationNumber(id, hub: hub)
      else { return 0 }
      let row = try session.connection.statement(
        "SELECT COUNT(*) FROM retry WHERE notification = ?1", number)
      return try row.step() ? Int(row.integer(0)) : 0
    }
  }
}

extension SubjectStore {
  package func unfinishedNotifications() async throws -> FoundNotifications {
    try await polling(#function) { session in
      try NotificationTable(session.sql).findNotifications(
        where: "ended_at IS NULL AND state <> 'Scheduled'", nil, nil)
    }
  }

  package func nextSchedule() async throws -> Date? {
    try await polling(#function) { session in
      let row = try session.sql.statement(
        "SELECT MIN(due_at) FROM notification WHERE state = 'Scheduled'")
      return try row.step() ? row.optionalInteger(0).map(Date.init(milliseconds:)) : nil
    }
  }
}

/// The changes of a page of deliveries.
struct CheckpointWriter: WritingSubject {
  let session: WriteSession

  init(_ session: WriteSession) { self.session = session }

  /// Writes the changes of a page of deliveries.
  /// - Throws: ``StoreError/noHub`` when the hub, and the notification with it, is gone.
  func apply(_ checkpoint: Checkpoint) throws -> CheckpointAnswer {
    try session.requireHub(checkpoint.hub)
    let number: Int64
    let isAborted: Bool
    do {
      let row = try connection.statement(
        "SELECT id, aborted_at FROM notification WHERE hub = ?1 AND public_id = ?2")
      try row.bind(checkpoint.hub, at: 1)
      try row.bind(checkpoint.notification.rawValue, at: 2)
      guard try row.step() else { return CheckpointAnswer() }
      number = row.integer(0)
      isAborted = !row.isNull(1)
    }
    try update(number, by: checkpoint)
    try add(checkpoint.counts, to: number)
    for (key, count) in checkpoint.counts {
      session.tally.add(
        count, hub: checkpoint.hub, at: checkpoint.at.milliseconds, platform: key.platform.code,
        code: Int64(key.outcome.rawValue))
    }
    try OutcomeWriter(session).keepOutcomes(of: checkpoint, in: number)
    try change(checkpoint, retriesOf: number)
    try FeedbackWriter(session).addFeedback(checkpoint, of: number)
    try remember(checkpoint.environments)
    for dead in checkpoint.deadHandles {
      try OutcomeWriter(session).keepDevice(of: dead.registration, inFailuresOf: number)
    }
    let at = checkpoint.at.milliseconds
    for dead in checkpoint.deadHandles {
      try DeadHandleWriter(session).removeDead(dead, hub: checkpoint.hub, at: at)
    }
    for replacement in checkpoint.replacedHandles {
      try DeadHandleWriter(session).replace(replacement, hub: checkpoint.hub, at: at)
    }
    return CheckpointAnswer(
      isAborted: isAborted, isFinished: checkpoint.state?.isFinal == true)
  }

  private func update(_ number: Int64, by checkpoint: Checkpoint) throws {
    // A final state is kept: a page in flight must not bring a cancelled notification back.
    let row = try connection.statement(
      """
      UPDATE notification SET position = COALESCE(?2, position),
        is_audience_read = CASE WHEN ?3 = 1 THEN 1 ELSE is_audience_read END,
        started_at = COALESCE(started_at, ?9),
        state = CASE WHEN ended_at IS NULL THEN COALESCE(?5, state) ELSE state END,
        ended_at = COALESCE(ended_at, ?6), kept = ?7, kept_rows = kept_rows + ?8,
        kept_at = CASE WHEN ?8 > 0 THEN ?4 ELSE kept_at END
      WHERE id = ?1
      """)
    let end = checkpoint.state?.isFinal == true ? checkpoint.at.milliseconds : nil
    try row.run(
      number, checkpoint.cursor, checkpoint.isAudienceRead, checkpoint.at.milliseconds,
      checkpoint.state?.rawValue, end, checkpoint.keeping.code, Int64(checkpoint.keptCount),
      (checkpoint.startedAt ?? checkpoint.at).milliseconds)
  }

  func add(_ counts: [OutcomeKey: Int], to number: Int64) throws {
    let row = try connection.statement(
      """
      INSERT INTO notification_count (notification, platform, is_template, outcome, total)
      VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (notification, platform, is_template, outcome)
      DO UPDATE SET total = notification_count.total + excluded.total
      """)
    for (key, count) in counts {
      try row.run(
        number, key.platform.code, key.isTemplate, Int64(key.outcome.rawValue), Int64(count))
    }
  }

  private func remember(
    _ environments: [(registration: RegistrationID, environment: PushEnvironment)]
  ) throws {
    guard !environments.isEmpty else { return }
    let row = try connection.statement("UPDATE registration SET environment = ?2 WHERE id = ?1")
    for found in environments {
      try row.bind(found.registration, at: 1)
      try row.bind(Int64(found.environment.rawValue), at: 2)
      try row.run()
      row.reset()
    }
  }

  private func change(_ checkpoint: Checkpoint, retriesOf number: Int64) throws {
    let isFinal = checkpoint.state?.isFinal == true
    if isFinal {
      let row = try connection.statement("DELETE FROM retry WHERE notification = ?1")
      try row.bind(number, at: 1)
      try row.run()
      return
    }
    if !checkpoint.settledRetries.isEmpty {
      let row = try connection.statement(
        "DELETE FROM retry WHERE notification = ?1 AND registration = ?2")
      for registration in checkpoint.settledRetries {
        try row.bind(number, at: 1)
        try row.bind(registration, at: 2)
        try row.run()
        row.reset()
      }
    }
    if !checkpoint.retries.isEmpty {
      let row = try connection.statement(
        """
        INSERT INTO retry (notification, registration, attempts, due, outcome, status, reason,
          hub, platform)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (notification, registration)
        DO UPDATE SET attempts = excluded.attempts, due = excluded.due,
          platform = excluded.platform,
          reason = CASE WHEN excluded.outcome IS NULL THEN retry.reason ELSE excluded.reason END,
          outcome = COALESCE(excluded.outcome, retry.outcome),
          status = COALESCE(excluded.status, retry.status)
        """)
      for retry in checkpoint.retries {
        try row.run(
          number, retry.registration, Int64(retry.attempts), retry.due.milliseconds,
          retry.answer.map { Int64($0.outcome.rawValue) },
          retry.answer.map { Int64($0.status) }, retry.answer?.reason, checkpoint.hub,
          retry.platform.code)
      }
    }
  }
}
