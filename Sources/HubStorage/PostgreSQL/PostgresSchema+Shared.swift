import Authentication
import SQLDatabase

extension PostgresSchema {
  /// Wrong passwords of operators.
  static let attempts = "failed_sign_in"

  /// What nodes tell each other, so that they act as one.
  static let sharedTables =
    SharedAttempts.tables(named: attempts) + [
      // The steps that have been taken, and from which version on nodes may go on beside each.
      """
      CREATE TABLE schema_step (version INT PRIMARY KEY, compatible_from INT NOT NULL)
      """,
      // What a node has learnt of its lanes; see `LaneWord`. It goes with the node.
      """
      CREATE TABLE lane_word (
        node BIGINT NOT NULL REFERENCES node ON DELETE CASCADE, hub BIGINT NOT NULL,
        platform SMALLINT NOT NULL, kind SMALLINT NOT NULL, credential BIGINT NOT NULL,
        time BIGINT NOT NULL, count INT NOT NULL, judged INT NOT NULL, reason TEXT,
        PRIMARY KEY (node, hub, platform, kind)) WITH (fillfactor = 70)
      """,
    ]

  /// Leases and windows that hang on no time of day; see `NodeLease`.
  static let leaseColumns =
    [
      // A view has the columns that there were when it was made.
      "DROP VIEW notification_progress", "DROP VIEW notification_part",
      // When the notification was released, less the steps of the clock.
      "ALTER TABLE notification ADD COLUMN steady_release BIGINT",
    ] + workViews + [
      // By how many milliseconds the database's clock has been set, as nodes have noticed.
      "ALTER TABLE store_state ADD COLUMN clock_steps BIGINT NOT NULL DEFAULT 0",
      // `beats` rises with each heartbeat; `is_dead` is set by a node that has seen none for a lease.
      // Last, since heartbeats wait for it.
      "ALTER TABLE node ADD COLUMN beats BIGINT NOT NULL DEFAULT 0",
      "ALTER TABLE node ADD COLUMN is_dead SMALLINT NOT NULL DEFAULT 0",
    ]
}
