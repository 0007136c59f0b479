import Authentication
import SQLDatabase

extension PostgresSchema {
  /// Failed sign-ins of operators.
  static let attempts = "failed_sign_in"

  /// Tables by which nodes coordinate.
  static let sharedTables =
    SharedAttempts.tables(named: attempts) + [
      // The steps that have been applied, each with the oldest version whose nodes may keep
      // running.
      """
      CREATE TABLE schema_step (version INT PRIMARY KEY, compatible_from INT NOT NULL)
      """,
      // A node's findings about its lanes; see `LaneFinding`. Deleted with the node.
      """
      CREATE TABLE lane_word (
        node BIGINT NOT NULL REFERENCES node ON DELETE CASCADE, hub BIGINT NOT NULL,
        platform SMALLINT NOT NULL, kind SMALLINT NOT NULL, credential BIGINT NOT NULL,
        time BIGINT NOT NULL, count INT NOT NULL, judged INT NOT NULL, reason TEXT,
        PRIMARY KEY (node, hub, platform, kind)) WITH (fillfactor = 70)
      """,
    ]
}
