import SQLDatabase

extension Schema {
  /// Version 12: a hub's notifications in the orders in which they are listed.
  @Sendable static func addNotificationLists(_ connection: any SQLConnection) throws {
    for sql in [
      "CREATE INDEX notification_list ON notification (hub, enqueued_at, id)",
      """
      CREATE INDEX notification_list_unfinished ON notification (hub, enqueued_at, id)
      WHERE ended_at IS NULL
      """,
      """
      CREATE INDEX notification_list_scheduled ON notification (hub, due_at, id)
      WHERE state = 'Scheduled'
      """,
    ] { try connection.execute(sql) }
  }
}
