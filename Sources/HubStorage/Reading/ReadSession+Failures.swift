import HubCore
import NotificationHubs
import SQLDatabase

extension ReadSession {
  /// See ``SendStore/failedTargets(of:hub:after:limit:)``.
  func failedTargets(
    of id: NotificationID, hub: Hub.ID, after: RegistrationID, limit: Int,
    coding: RegistrationIDCoding
  ) throws -> [FailedTarget] {
    guard let notification = try connection.notificationNumber(id, hub: hub) else { return [] }
    // Numbers of registrations are never used twice, so what is found by one is the same device.
    let row = try connection.statement(
      """
      SELECT f.registration, f.outcome, f.status, f.reason,
        CASE WHEN n.is_direct = 1 THEN n.format ELSE COALESCE(f.platform, r.platform) END,
        CASE WHEN n.is_direct = 1 THEN t.handle ELSE COALESCE(f.handle, r.handle) END,
        CASE WHEN n.is_direct = 1 THEN NULL ELSE COALESCE(f.installation, i.public_id) END,
        n.format, n.is_direct, COALESCE(f.public_id, r.public_id)
      FROM notification_failure AS f
        JOIN notification AS n ON n.id = f.notification
        LEFT JOIN notification_target AS t
          ON t.notification = f.notification AND t.number = f.registration
        LEFT JOIN registration AS r ON r.id = f.registration
        LEFT JOIN installation AS i ON i.id = r.installation
      WHERE f.notification = ?1 AND f.registration > ?2 AND f.outcome <> ?3
      ORDER BY f.registration LIMIT ?4
      """)
    try row.bind(notification, at: 1)
    try row.bind(after, at: 2)
    try row.bind(Int64(NotificationOutcome.skipped.rawValue), at: 3)
    try row.bind(Int64(max(0, limit)), at: 4)
    var failed: [FailedTarget] = []
    while try row.step() {
      let failure = Checkpoint.Failure(
        registration: row.integer(0), outcome: NotificationOutcome(code: row.integer(1)),
        status: UInt16(clamping: row.integer(2)), reason: row.optionalText(3))
      let format = row.optionalInteger(4) ?? row.integer(7)
      failed.append(
        FailedTarget(
          // A template send to a device that has gone since does not tell any more.
          failure: failure, platform: format == 0 ? nil : try PushPlatform(code: format),
          handle: row.optionalText(5),
          registrationID: row.integer(8) != 0
            ? nil : row.optionalText(9) ?? coding.id(of: failure.registration, hub: hub),
          installationID: row.optionalText(6)))
    }
    return failed
  }

  /// See ``SendStore/registrationNames(_:hub:)``.
  func registrationNames(
    _ numbers: [RegistrationID], hub: Hub.ID, coding: RegistrationIDCoding
  ) throws -> [RegistrationID: String] {
    let row = try connection.statement(
      "SELECT public_id FROM registration WHERE id = ?1 AND hub = ?2")
    var names: [RegistrationID: String] = [:]
    for number in numbers {
      try row.bind(number, at: 1)
      try row.bind(hub, at: 2)
      if try row.step() { names[number] = row.optionalText(0) ?? coding.id(of: number, hub: hub) }
      row.reset()
    }
    return names
  }
}
