import HubCore
import NotificationHubs
import SQLDatabase

extension Schema {
  /// Version 10: each retry says which lane it waits for, so that one lane's are found however many
  /// others wait.
  @Sendable static func addRetryLanes(_ connection: any SQLConnection) throws {
    let type = connection.dialect
    for sql in [
      "ALTER TABLE retry ADD COLUMN hub \(type.integer) NOT NULL DEFAULT 0",
      "ALTER TABLE retry ADD COLUMN platform \(type.integer) NOT NULL DEFAULT 0",
      // A device of a template send that has gone meanwhile: any lane will find that out.
      """
      UPDATE retry SET
        hub = (SELECT hub FROM notification WHERE id = retry.notification),
        platform = COALESCE(
          (SELECT NULLIF(format, 0) FROM notification WHERE id = retry.notification),
          (SELECT platform FROM registration WHERE id = retry.registration),
          \(PushPlatform.apns.code))
      WHERE notification IN (SELECT id FROM notification)
      """,
      "DROP INDEX retry_due",
      "CREATE INDEX retry_lane ON retry (hub, platform, due)",
    ] { try connection.execute(sql) }
  }
}
