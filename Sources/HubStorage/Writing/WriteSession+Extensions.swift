import HubCore
import NotificationHubs
import SQLDatabase

extension WriteSession {
  /// - Parameter notifications: The numbers of those that were for this user alone.
  func erase(
    user: String, notifications: [Int64], hub: Hub.ID
  ) throws -> UserErasure {
    var erasure = UserErasure(installations: 0, schedules: 0, notifications: 0, deviceRecords: 0)
    // What others of this transaction have left is not this user's.
    try clearUnused()
    for installation in try installations(ofUser: user, hub: hub) {
      erasure.installations += 1
      for registration in try connection.registrationRows(of: installation.number) {
        // In the failures of a direct send the number is that of a target.
        erasure.deviceRecords += try delete(
          """
          notification_failure WHERE registration = ?1
            AND (SELECT is_direct FROM notification WHERE notification.id = notification) = 0
          """, registration.number)
        // A retry without a registration counts as a channel that has gone, and is not sent.
        try remove(registration, hub: hub)
      }
      erasure.deviceRecords += try deleteFailures(ofInstallation: installation.id, hub: hub)
      try deleteInstallation(installation.number)
    }
    (erasure.tags, erasure.templates) = try clearUnused(isExact: true)
    for number in notifications {
      let isScheduled = try isScheduled(number)
      erasure.deviceRecords += try delete("notification_failure WHERE notification = ?1", number)
      for table in ["notification_count", "notification_target", "retry"] {
        _ = try delete("\(table) WHERE notification = ?1", number)
      }
      guard try delete("notification WHERE id = ?1", number) > 0 else { continue }
      if isScheduled { erasure.schedules += 1 } else { erasure.notifications += 1 }
    }
    return erasure
  }

  private func installations(
    ofUser user: String, hub: Hub.ID
  ) throws -> [(number: Int64, id: String)] {
    let folded = user.lowercased()
    let row = try connection.statement(
      "SELECT id, public_id, document FROM installation WHERE hub = ?1 AND user_hash = ?2")
    try row.bind(hub, at: 1)
    try row.bind(PreparedInstallation.hash(folded), at: 2)
    var found: [(number: Int64, id: String)] = []
    while try row.step() {
      guard try InstallationDocument.userID(in: row.bytes(2))?.lowercased() == folded else {
        continue
      }
      found.append((row.integer(0), row.text(1)))
    }
    return found
  }

  private func isScheduled(_ notification: Int64) throws -> Bool {
    let row = try connection.statement("SELECT 1 FROM notification WHERE id = ?1 AND state = ?2")
    try row.bind(notification, at: 1)
    try row.bind(NotificationState.scheduled.rawValue, at: 2)
    return try row.step()
  }

  /// What is kept about a device whose registration has gone before.
  private func deleteFailures(ofInstallation id: String, hub: Hub.ID) throws -> Int {
    let before = connection.totalChanges
    let row = try connection.statement(
      """
      DELETE FROM notification_failure WHERE installation = ?1
        AND (SELECT hub FROM notification WHERE notification.id = notification) = ?2
      """)
    try row.bind(id, at: 1)
    try row.bind(hub, at: 2)
    try row.run()
    return connection.totalChanges - before
  }

  /// - Parameter rows: Table and condition, a text of this file.
  /// - Returns: How many rows there were.
  private func delete(_ rows: String, _ number: Int64) throws -> Int {
    let before = connection.totalChanges
    let row = try connection.statement("DELETE FROM " + rows)
    try row.bind(number, at: 1)
    try row.run()
    return connection.totalChanges - before
  }
}
