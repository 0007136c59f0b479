import SQLDatabase

extension Schema {
  /// True for notifications whose expression names a user.
  static let userNotification = "lower(tags) LIKE '%$userid:{%'"

  /// Notifications and their remaining work.
  static func notificationTables(_ type: Dialect) -> [String] {
    [
      // `format` is a platform's number, 0 for template sends. `ended_at` is null while work
      // remains. `kept` is an `OutcomeKeeping`; `kept_rows` counts the notification's rows in
      // notification_failure, `kept_at` is the time of the last, null when there is none.
      // `last_registration` is that of store_state when the notification was accepted,
      // `audience_commit` the `commit_number` when it was accepted or released; `aborted_at` is
      // when its sender aborted it.
      """
      CREATE TABLE notification (
        id \(type.rowNumber), hub \(type.integer) NOT NULL, public_id TEXT NOT NULL,
        format \(type.integer) NOT NULL, body \(type.bytes) NOT NULL, tags TEXT,
        expression \(type.bytes), headers \(type.bytes) NOT NULL, expiry \(type.integer),
        state TEXT NOT NULL, enqueued_at \(type.integer) NOT NULL, started_at \(type.integer),
        ended_at \(type.integer), position \(type.integer) NOT NULL,
        is_audience_read \(type.integer) NOT NULL, is_direct \(type.integer) NOT NULL DEFAULT 0,
        due_at \(type.integer), kept \(type.integer), kept_rows \(type.integer) NOT NULL DEFAULT 0,
        kept_at \(type.integer), kept_cleared \(type.integer) NOT NULL DEFAULT 0,
        last_registration \(type.integer), audience_commit \(type.integer) NOT NULL DEFAULT 0,
        aborted_at \(type.integer), UNIQUE (hub, public_id))
      """,
      "CREATE INDEX notification_unfinished ON notification (id) WHERE ended_at IS NULL",
      "CREATE INDEX notification_schedule ON notification (due_at) WHERE state = 'Scheduled'",
      "CREATE INDEX notification_ended ON notification (ended_at) WHERE ended_at IS NOT NULL",
      "CREATE INDEX notification_list ON notification (hub, enqueued_at, id)",
      """
      CREATE INDEX notification_list_unfinished ON notification (hub, enqueued_at, id)
      WHERE ended_at IS NULL
      """,
      """
      CREATE INDEX notification_list_scheduled ON notification (hub, due_at, id)
      WHERE state = 'Scheduled'
      """,
      "CREATE INDEX notification_user ON notification (hub) WHERE \(userNotification)",
      """
      CREATE INDEX notification_kept ON notification (kept_at, kept_rows)
      WHERE kept_at IS NOT NULL
      """,
      """
      CREATE INDEX notification_kept_hub ON notification (hub, kept_at, kept_rows)
      WHERE kept_at IS NOT NULL
      """,
      // The devices that a direct send names, numbered from 1.
      """
      CREATE TABLE notification_target (
        notification \(type.integer) NOT NULL, number \(type.integer) NOT NULL,
        handle TEXT NOT NULL, is_duplicate \(type.integer) NOT NULL,
        PRIMARY KEY (notification, number)) \(type.clustered)
      """,
      """
      CREATE TABLE idempotency_key (
        hub \(type.integer) NOT NULL, name TEXT NOT NULL, fingerprint \(type.bytes) NOT NULL,
        notification TEXT NOT NULL, expires_at \(type.integer) NOT NULL,
        PRIMARY KEY (hub, name)) \(type.clustered)
      """,
      "CREATE INDEX idempotency_key_expiry ON idempotency_key (expires_at)",
      // `hub` and `platform` identify the lane that it waits for; the last three columns are the
      // outcome of the previous attempt.
      """
      CREATE TABLE retry (
        notification \(type.integer) NOT NULL, registration \(type.integer) NOT NULL,
        attempts \(type.integer) NOT NULL, due \(type.integer) NOT NULL, outcome \(type.integer),
        status \(type.integer), reason TEXT, hub \(type.integer) NOT NULL DEFAULT 0,
        platform \(type.integer) NOT NULL DEFAULT 0,
        PRIMARY KEY (notification, registration)) \(type.clustered)
      """,
      "CREATE INDEX retry_lane ON retry (hub, platform, due)",
    ]
  }

  static func outcomeTables(_ type: Dialect) -> [String] {
    [
      """
      CREATE TABLE notification_count (
        notification \(type.integer) NOT NULL, platform \(type.integer) NOT NULL,
        is_template \(type.integer) NOT NULL, outcome \(type.integer) NOT NULL,
        total \(type.integer) NOT NULL,
        PRIMARY KEY (notification, platform, is_template, outcome)) \(type.clustered)
      """,
      // The columns about the device are filled when its registration is deleted.
      """
      CREATE TABLE notification_failure (
        notification \(type.integer) NOT NULL, registration \(type.integer) NOT NULL,
        outcome \(type.integer) NOT NULL, status \(type.integer) NOT NULL, reason TEXT,
        platform \(type.integer), handle TEXT, installation TEXT, public_id TEXT,
        at \(type.integer), attempts \(type.integer) NOT NULL DEFAULT 0,
        PRIMARY KEY (notification, registration)) \(type.clustered)
      """,
      "CREATE INDEX notification_failure_registration ON notification_failure (registration)",
      """
      CREATE INDEX notification_failure_installation ON notification_failure (installation)
      WHERE installation IS NOT NULL
      """,
      // `hour` counts from 1970; `public_id` is null when it follows from `registration`;
      // `new_handle` is the push service's replacement for `handle`. `number` rises by one with
      // each row of a hub, so that its oldest are found without counting.
      """
      CREATE TABLE feedback (
        id \(type.rowNumber), hub \(type.integer) NOT NULL, hour \(type.integer) NOT NULL,
        at \(type.integer) NOT NULL, outcome \(type.integer) NOT NULL,
        platform \(type.integer) NOT NULL, handle TEXT NOT NULL,
        registration \(type.integer) NOT NULL, public_id TEXT, installation TEXT,
        notification TEXT NOT NULL, new_handle TEXT, number \(type.integer) NOT NULL DEFAULT 0)
      """,
      "CREATE INDEX feedback_hour ON feedback (hub, hour)",
      "CREATE INDEX feedback_number ON feedback (hub, number)",
    ]
  }

  /// Activity of hubs by the minute and the hour (``StatisticPeriod``), and their number of
  /// registrations. `at` counts periods since 1970; `code` is that of an outcome, or -1 for
  /// notifications accepted, whose `platform` is 0.
  static func statisticTables(_ type: Dialect) -> [String] {
    [
      """
      CREATE TABLE statistic_count (
        hub \(type.integer) NOT NULL, period \(type.integer) NOT NULL, at \(type.integer) NOT NULL,
        platform \(type.integer) NOT NULL, code \(type.integer) NOT NULL,
        total \(type.integer) NOT NULL,
        PRIMARY KEY (hub, period, at, platform, code)) \(type.clustered)
      """,
      // A row for each change.
      """
      CREATE TABLE statistic_gauge (
        hub \(type.integer) NOT NULL, period \(type.integer) NOT NULL,
        platform \(type.integer) NOT NULL, at \(type.integer) NOT NULL,
        total \(type.integer) NOT NULL,
        PRIMARY KEY (hub, period, platform, at)) \(type.clustered)
      """,
      """
      CREATE TABLE registration_total (
        hub \(type.integer) NOT NULL, platform \(type.integer) NOT NULL,
        total \(type.integer) NOT NULL, PRIMARY KEY (hub, platform)) \(type.clustered)
      """,
    ]
  }
}
