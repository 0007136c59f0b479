import SQLDatabase

extension PostgresSchema {
  /// The parts of notifications, and what follows from the tables that both engines have.
  static let workTables: [String] = [
    // A part of a notification's work; see `AudiencePart`. `epoch` rises with each owner, `claim`
    // is the claim that gave it to the owner, `mark` the last checkpoint: they tell whether a commit
    // without a reply took place.
    """
    CREATE TABLE work (
      notification BIGINT NOT NULL, part SMALLINT NOT NULL, hub BIGINT NOT NULL,
      position BIGINT NOT NULL DEFAULT 0, is_read SMALLINT NOT NULL DEFAULT 0,
      is_done SMALLINT NOT NULL DEFAULT 0, kept SMALLINT, owner BIGINT,
      epoch BIGINT NOT NULL DEFAULT 0, claim BIGINT, mark BIGINT,
      PRIMARY KEY (notification, part)) WITH (fillfactor = 50)
    """,
    "CREATE INDEX work_open ON work (notification) WHERE is_done = 0",
    // Number of a notification's failure rows, and the time of the last.
    """
    CREATE TABLE kept_outcome (
      notification BIGINT NOT NULL, part SMALLINT NOT NULL, hub BIGINT NOT NULL,
      total BIGINT NOT NULL, at BIGINT NOT NULL, PRIMARY KEY (notification, part))
      WITH (fillfactor = 50)
    """,
    // The tables `notification` and `work` with the columns of the SQLite engine's `notification`.
    """
    CREATE VIEW notification_progress AS
    SELECT n.*, COALESCE(w.position, 0) AS position,
      COALESCE(w.is_read, 0) AS is_audience_read, w.kept AS kept
    FROM notification n LEFT JOIN LATERAL (
      SELECT MAX(position) AS position, MIN(is_read) AS is_read, MAX(kept) AS kept
      FROM work WHERE work.notification = n.id) AS w ON TRUE
    """,
    """
    CREATE VIEW notification_part AS
    SELECT n.*, w.position, w.is_read AS is_audience_read, w.kept, w.part, w.epoch, w.owner,
      w.claim
    FROM work w JOIN notification n ON n.id = w.notification
    """,
    """
    CREATE VIEW registration_total AS
    SELECT hub, platform, CAST(SUM(total) AS BIGINT) AS total FROM registration_count
    GROUP BY hub, platform
    """,
    DayTable.failures.makingRest,
    DayTable.feedback.makingRest,
  ]

  /// The tables among those of work and nodes that have a column `hub` and whose rows are deleted
  /// with it; notifications are deleted first.
  static let workHubTables = [
    "work", "retry", "kept_outcome", "idempotency_key", "feedback", "statistic_count",
    "statistic_gauge", "lane_finding",
  ]
}
