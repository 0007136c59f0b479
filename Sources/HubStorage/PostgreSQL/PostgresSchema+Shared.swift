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
}
