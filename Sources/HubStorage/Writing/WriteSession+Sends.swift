import Foundation
import HubCore
import NotificationHubs
import SQLDatabase

extension WriteSession {
  /// Keeps a notification, or recognises it as a repeat.
  func accept(_ submission: Submission) throws -> Acceptance {
    let record = submission.record
    if let claim = submission.idempotency {
      if let earlier = try earlier(claim, hub: record.hub, asOf: record.enqueuedAt) {
        return earlier
      }
      try keep(claim, for: record)
    }
    try insert(record)
    guard !submission.targets.isEmpty else { return .accepted }
    let row = try connection.statement(
      """
      INSERT INTO notification_target (notification, number, handle, is_duplicate)
      VALUES (?1, ?2, ?3, ?4)
      """)
    for (index, target) in submission.targets.enumerated() {
      try row.bind(state.lastNotification, at: 1)
      try row.bind(Int64(index + 1), at: 2)
      try row.bind(target.handle, at: 3)
      try row.bind(target.isDuplicate, at: 4)
      try row.run()
      row.reset()
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
      """)
    try row.bind(hub, at: 1)
    try row.bind(claim.key, at: 2)
    try row.bind(now.milliseconds, at: 3)
    guard try row.step() else { return nil }
    guard row.bytes(0) == claim.fingerprint else { return .keyInUse }
    return .repeated(NotificationID(rawValue: row.text(1)))
  }

  private func keep(_ claim: IdempotencyClaim, for record: NotificationRecord) throws {
    do {
      let row = try connection.statement("DELETE FROM idempotency_key WHERE expires_at <= ?1")
      try row.bind(record.enqueuedAt.milliseconds, at: 1)
      try row.run()
    }
    let row = try connection.statement("INSERT INTO idempotency_key VALUES (?1, ?2, ?3, ?4, ?5)")
    try row.bind(record.hub, at: 1)
    try row.bind(claim.key, at: 2)
    try row.bind(claim.fingerprint, at: 3)
    try row.bind(record.id.rawValue, at: 4)
    try row.bind(claim.expiresAt.milliseconds, at: 5)
    try row.run()
  }

  // MARK: Schedules

  func releaseSchedules(asOf now: Date, limit: Int) throws -> FoundNotifications {
    var due: [Int64] = []
    do {
      let row = try connection.statement(
        """
        SELECT id FROM notification WHERE state = 'Scheduled' AND due_at <= ?1
        ORDER BY due_at LIMIT ?2
        """)
      try row.bind(now.milliseconds, at: 1)
      try row.bind(Int64(max(0, limit)), at: 2)
      while try row.step() { due.append(row.integer(0)) }
    }
    let row = try connection.statement(
      "UPDATE notification SET state = ?2, started_at = ?3, audience_commit = ?4 WHERE id = ?1")
    for number in due {
      try row.bind(number, at: 1)
      try row.bind(NotificationState.enqueued.rawValue, at: 2)
      try row.bind(now.milliseconds, at: 3)
      try row.bind(state.commitNumber + 1, at: 4)
      try row.run()
      row.reset()
    }
    var found = FoundNotifications()
    for number in due {
      // One that cannot be read is released as well: it must not be due for ever.
      let one = try connection.findNotifications(where: "id = ?1", number, nil)
      found.records += one.records
      found.unreadable += one.unreadable
    }
    return found
  }

  func cancelSchedule(_ id: NotificationID, hub: Hub.ID, at now: Date) throws -> Bool {
    guard let number = try connection.notificationNumber(id, hub: hub) else { return false }
    do {
      let row = try connection.statement(
        "SELECT 1 FROM notification WHERE id = ?1 AND state = 'Scheduled'")
      try row.bind(number, at: 1)
      guard try row.step() else { return false }
    }
    let row = try connection.statement(
      "UPDATE notification SET state = ?2, ended_at = ?3 WHERE id = ?1")
    try row.bind(number, at: 1)
    try row.bind(NotificationState.canceled.rawValue, at: 2)
    try row.bind(now.milliseconds, at: 3)
    try row.run()
    return true
  }

  // MARK: Failures

  /// Writes into a failure which device it was, before its registration goes.
  func keepDevice(of registration: RegistrationID, inFailuresOf notification: Int64) throws {
    let row = try connection.statement(
      """
      UPDATE notification_failure SET (platform, handle, public_id, installation) = (
        SELECT platform, handle, public_id,
          (SELECT public_id FROM installation WHERE installation.id = registration.installation)
        FROM registration WHERE registration.id = ?2)
      WHERE notification = ?1 AND registration = ?2
      """)
    try row.bind(notification, at: 1)
    try row.bind(registration, at: 2)
    try row.run()
  }
}
