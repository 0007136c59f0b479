import SQLDatabase

extension Schema {
  /// Version 11: finished notifications by their end, so that old ones are found.
  @Sendable static func addNotificationAge(_ connection: any SQLConnection) throws {
    try connection.execute(
      "CREATE INDEX notification_ended ON notification (ended_at) WHERE ended_at IS NOT NULL")
  }
}
