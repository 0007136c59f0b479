import HubCore
import NotificationHubs
import SQLDatabase

extension WriteSession {
  func insert(_ record: NotificationRecord) throws {
    state.lastNotification += 1
    let row = try connection.statement(
      """
      INSERT INTO notification (id, hub, public_id, format, body, tags, expression, headers,
        expiry, state, enqueued_at, started_at, ended_at, position, is_audience_read, is_direct,
        due_at, last_registration, audience_commit)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
        ?19)
      """)
    let request = record.request
    try row.bind(state.lastNotification, at: 1)
    try row.bind(record.hub, at: 2)
    try row.bind(record.id.rawValue, at: 3)
    switch request.format {
    case .template: try row.bind(Int64(0), at: 4)
    case .native(let platform): try row.bind(platform.code, at: 4)
    }
    try row.bind(request.body, at: 5)
    try row.bind(request.tags, at: 6)
    if let expression = request.expression {
      var writer = ByteWriter()
      writer.write(expression)
      try row.bind(writer.bytes, at: 7)
    }
    var headers = ByteWriter()
    headers.write(request.headers)
    try row.bind(headers.bytes, at: 8)
    try row.bind(request.expiry, at: 9)
    try row.bind(record.state.rawValue, at: 10)
    try row.bind(record.enqueuedAt.milliseconds, at: 11)
    try row.bind(record.startedAt?.milliseconds, at: 12)
    try row.bind(record.endedAt?.milliseconds, at: 13)
    try row.bind(record.cursor, at: 14)
    try row.bind(record.isAudienceRead, at: 15)
    try row.bind(request.isDirect, at: 16)
    try row.bind(record.scheduledFor?.milliseconds, at: 17)
    try row.bind(state.lastRegistration, at: 18)
    try row.bind(state.commitNumber + 1, at: 19)
    try row.run()
    try add(record.counts, to: state.lastNotification)
  }

  /// Writes what a page of deliveries has changed.
  /// - Throws: ``StoreError/noHub`` when the hub, and the notification with it, is gone.
  func apply(_ checkpoint: Checkpoint) throws {
    try requireHub(checkpoint.hub)
    guard
      let number = try connection.notificationNumber(checkpoint.notification, hub: checkpoint.hub)
    else { return }
    try update(number, by: checkpoint)
    try add(checkpoint.counts, to: number)
    try keepOutcomes(of: checkpoint, in: number)
    try change(checkpoint, retriesOf: number)
    try addFeedback(checkpoint, of: number)
    try remember(checkpoint.environments)
    for dead in checkpoint.deadHandles {
      try keepDevice(of: dead.registration, inFailuresOf: number)
    }
    let at = checkpoint.at.milliseconds
    for dead in checkpoint.deadHandles { try removeDead(dead, hub: checkpoint.hub, at: at) }
    for replacement in checkpoint.replacedHandles {
      try replace(replacement, hub: checkpoint.hub, at: at)
    }
  }

  private func update(_ number: Int64, by checkpoint: Checkpoint) throws {
    // A final state stays: a page in flight must not bring a cancelled notification back.
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
    try row.bind(number, at: 1)
    try row.bind(checkpoint.cursor, at: 2)
    try row.bind(checkpoint.isAudienceRead, at: 3)
    try row.bind(checkpoint.at.milliseconds, at: 4)
    try row.bind(checkpoint.state?.rawValue, at: 5)
    let isFinal = checkpoint.state?.isFinal == true
    try row.bind(isFinal ? checkpoint.at.milliseconds : nil, at: 6)
    try row.bind(checkpoint.keeping.code, at: 7)
    try row.bind(Int64(checkpoint.keptCount), at: 8)
    try row.bind((checkpoint.startedAt ?? checkpoint.at).milliseconds, at: 9)
    try row.run()
  }

  private func add(_ counts: [OutcomeKey: Int], to number: Int64) throws {
    let row = try connection.statement(
      """
      INSERT INTO notification_count (notification, platform, is_template, outcome, total)
      VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (notification, platform, is_template, outcome)
      DO UPDATE SET total = notification_count.total + excluded.total
      """)
    for (key, count) in counts {
      try row.bind(number, at: 1)
      try row.bind(key.platform.code, at: 2)
      try row.bind(key.isTemplate, at: 3)
      try row.bind(Int64(key.outcome.rawValue), at: 4)
      try row.bind(Int64(count), at: 5)
      try row.run()
      row.reset()
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
        try row.bind(number, at: 1)
        try row.bind(retry.registration, at: 2)
        try row.bind(Int64(retry.attempts), at: 3)
        try row.bind(retry.due.milliseconds, at: 4)
        try row.bind(retry.answer.map { Int64($0.outcome.rawValue) }, at: 5)
        try row.bind(retry.answer.map { Int64($0.status) }, at: 6)
        try row.bind(retry.answer?.reason, at: 7)
        try row.bind(checkpoint.hub, at: 8)
        try row.bind(retry.platform.code, at: 9)
        try row.run()
        row.reset()
      }
    }
  }
}
