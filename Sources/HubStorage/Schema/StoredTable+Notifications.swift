extension StoredTable {
  /// Notifications, their remaining work and their outcomes.
  static let notifications = [
    notification, notificationTarget, idempotencyKey, retry, notificationCount,
    notificationFailure, feedback,
  ]

  static let statistics = [statisticCount, statisticGauge]

  /// `format` is a platform's number, 0 for template sends. `ended_at` is null while work remains;
  /// `body` is null once it has been cleared.
  /// `last_registration` is the last number given out when it was accepted; `aborted_at` is when its
  /// sender aborted it.
  ///
  /// In a file the progress of delivery is in the same row: `kept` is an `OutcomeKeeping`,
  /// `kept_rows` counts the rows in `notification_failure`, `kept_at` is the time of the last, null
  /// when there is none. `audience_commit` is the `commit_number` of the commit that accepted or
  /// released it.
  ///
  /// In a database nodes share the delivery of a notification, and the columns that change with each
  /// page are in `work` and `kept_outcome`, so that they do not wait for each other.
  /// `audience_snapshot` is the text of `pg_current_snapshot()` of the transaction that accepted or
  /// released it; `steady_release` is the time of its release, less the steps of the clock; `day` is
  /// the partition of its failures.
  static let notification = StoredTable(
    "notification", key: .number,
    """
    hub BIGINT NOT NULL, public_id TEXT NOT NULL, format SMALLINT NOT NULL, body BYTEA,
    tags TEXT, expression BYTEA, headers BYTEA NOT NULL, expiry BIGINT, state TEXT NOT NULL,
    enqueued_at BIGINT NOT NULL, started_at BIGINT, ended_at BIGINT,
    is_direct SMALLINT NOT NULL DEFAULT 0, due_at BIGINT, last_registration BIGINT,
    aborted_at BIGINT, kept_cleared SMALLINT NOT NULL DEFAULT 0
    """,
    sqlite: [
      "position INTEGER NOT NULL", "is_audience_read INTEGER NOT NULL", "kept INTEGER",
      "kept_rows INTEGER NOT NULL DEFAULT 0", "kept_at INTEGER",
      "audience_commit INTEGER NOT NULL DEFAULT 0",
    ],
    postgres: [
      "audience_snapshot TEXT", "steady_release BIGINT",
      """
      day BIGINT NOT NULL GENERATED ALWAYS AS
        (COALESCE(due_at, enqueued_at) / \(DayTable.milliseconds)) STORED
      """,
    ], unique: ["hub, public_id"],
    indexes: [
      // Nodes scan it for parts to claim, so notifications that are not due yet are not in it.
      "notification_unfinished (id) WHERE ended_at IS NULL AND state <> 'Scheduled'",
      "notification_schedule (due_at) WHERE state = 'Scheduled'",
      "notification_ended (ended_at) WHERE ended_at IS NOT NULL",
      "notification_text (ended_at) WHERE ended_at IS NOT NULL AND body IS NOT NULL",
      "notification_list (hub, enqueued_at, id)",
      "notification_list_unfinished (hub, enqueued_at, id) WHERE ended_at IS NULL",
      "notification_list_scheduled (hub, due_at, id) WHERE state = 'Scheduled'",
    ],
    sqliteIndexes: [
      "notification_kept (kept_at, kept_rows) WHERE kept_at IS NOT NULL",
      "notification_kept_hub (hub, kept_at, kept_rows) WHERE kept_at IS NOT NULL",
    ],
    // Each node polls it every two seconds, however many notifications are unfinished.
    postgresIndexes: ["notification_aborted (id) WHERE aborted_at IS NOT NULL AND ended_at IS NULL"]
  )

  /// The devices that a direct send names, numbered from 1.
  static let notificationTarget = StoredTable(
    "notification_target", key: .columns("notification, number"),
    """
    notification BIGINT NOT NULL, number BIGINT NOT NULL, handle TEXT NOT NULL,
    is_duplicate SMALLINT NOT NULL
    """)

  static let idempotencyKey = StoredTable(
    "idempotency_key", key: .columns("hub, name"),
    """
    hub BIGINT NOT NULL, name TEXT NOT NULL, fingerprint BYTEA NOT NULL, notification TEXT NOT NULL,
    expires_at BIGINT NOT NULL
    """, indexes: ["idempotency_key_expiry (expires_at)"])

  /// A move writes it with `notification` and `registration` first. `hub` and `platform` identify
  /// the lane that it waits for; the last three columns are the outcome of the previous attempt.
  /// `part` is that of `work`.
  static let retry = StoredTable(
    "retry",
    key: .columns(
      "notification, registration",
      postgres: "notification, part, registration"),
    """
    notification BIGINT NOT NULL, registration BIGINT NOT NULL, hub BIGINT NOT NULL,
    platform SMALLINT NOT NULL, attempts INT NOT NULL, due BIGINT NOT NULL, outcome SMALLINT,
    status INT, reason TEXT
    """, postgres: ["part SMALLINT NOT NULL"],
    fillFactor: 70, indexes: ["retry_lane (hub, platform, due)"])

  // MARK: Outcomes

  static let notificationCount = StoredTable(
    "notification_count",
    key: .columns(
      "notification, platform, is_template, outcome",
      postgres: "notification, part, platform, is_template, outcome"),
    """
    notification BIGINT NOT NULL, platform SMALLINT NOT NULL, is_template SMALLINT NOT NULL,
    outcome SMALLINT NOT NULL, total BIGINT NOT NULL
    """, postgres: ["part SMALLINT NOT NULL"], fillFactor: 50)

  /// A move writes it with `notification` first. The columns about the device are filled when its
  /// registration is deleted.
  static let notificationFailure = StoredTable(
    "notification_failure",
    key: .columns(
      "notification, registration",
      postgres: "day, notification, registration"),
    """
    notification BIGINT NOT NULL, registration BIGINT NOT NULL, outcome SMALLINT NOT NULL,
    status INT NOT NULL, reason TEXT, at BIGINT NOT NULL, attempts INT NOT NULL, platform SMALLINT,
    handle TEXT, public_id TEXT, installation TEXT
    """, postgres: ["day BIGINT NOT NULL"],
    partition: .failures,
    indexes: [
      "notification_failure_registration (registration)",
      "notification_failure_installation (installation) WHERE installation IS NOT NULL",
    ])

  /// `hour` counts from 1970; `public_id` is null when it follows from `registration`; `new_handle`
  /// is the push service's replacement for `handle`. In a file `number` rises by one with each row
  /// of a hub, so that its oldest are found without counting.
  static let feedback = StoredTable(
    "feedback",
    key: .numberInPartition(
      postgresID: "BIGINT NOT NULL DEFAULT nextval('feedback_id_seq')", postgres: "hour, id"),
    """
    hub BIGINT NOT NULL, hour BIGINT NOT NULL, at BIGINT NOT NULL, outcome SMALLINT NOT NULL,
    platform SMALLINT NOT NULL, handle TEXT NOT NULL, registration BIGINT NOT NULL, public_id TEXT,
    installation TEXT, notification TEXT NOT NULL, new_handle TEXT
    """, sqlite: ["number INTEGER NOT NULL DEFAULT 0"], partition: .feedback,
    indexes: ["feedback_hour (hub, hour)"], sqliteIndexes: ["feedback_number (hub, number)"],
    postgresIndexes: ["feedback_number (hub, id)"])

  // MARK: Statistics

  /// Activity of hubs by the minute and the hour (``StatisticPeriod``). `at` counts periods since
  /// 1970; `code` is that of an outcome, or -1 for notifications accepted, whose `platform` is 0. In
  /// a database each writer adds to a row of its own, its `lane`; readers add them up.
  static let statisticCount = StoredTable(
    "statistic_count",
    key: .columns(
      "hub, period, at, platform, code",
      postgres: "hub, period, at, platform, code, lane"),
    """
    hub BIGINT NOT NULL, period SMALLINT NOT NULL, at BIGINT NOT NULL, platform SMALLINT NOT NULL,
    code SMALLINT NOT NULL, total BIGINT NOT NULL
    """, postgres: ["lane SMALLINT NOT NULL"], fillFactor: 70)

  /// The number of registrations, a row for each change.
  static let statisticGauge = StoredTable(
    "statistic_gauge", key: .columns("hub, period, platform, at"),
    """
    hub BIGINT NOT NULL, period SMALLINT NOT NULL, platform SMALLINT NOT NULL, at BIGINT NOT NULL,
    total BIGINT NOT NULL
    """)
}
