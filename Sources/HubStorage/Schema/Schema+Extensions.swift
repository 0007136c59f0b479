import SQLDatabase

extension Schema {
  /// True for notifications whose expression names a user.
  static let userNotification = "lower(tags) LIKE '%$userid:{%'"

  /// Version 5: finds what is kept about a user without looking at everything.
  @Sendable static func addErasure(_ connection: any SQLConnection) throws {
    for sql in [
      "CREATE INDEX notification_user ON notification (hub) WHERE \(userNotification)",
      "CREATE INDEX notification_failure_registration ON notification_failure (registration)",
      """
      CREATE INDEX notification_failure_installation ON notification_failure (installation)
      WHERE installation IS NOT NULL
      """,
    ] {
      try connection.execute(sql)
    }
  }
}
