extension StoredTable {
  /// Hubs, policies and credentials; operators, their log and jobs.
  static let directory = [
    hub, deletedHub, accessPolicy, pushCredential, operatorSession, activity, job,
  ]

  static let hub = StoredTable(
    "hub", key: .number,
    """
    name TEXT NOT NULL, folded_name TEXT NOT NULL, registration_ttl DOUBLE PRECISION,
    is_disabled SMALLINT NOT NULL, created_at BIGINT NOT NULL, user_metadata TEXT,
    updated_at BIGINT
    """, unique: ["folded_name"])

  /// Hubs that are already deleted for everyone, while their rows are deleted slice by slice.
  static let deletedHub = StoredTable("deleted_hub", key: .columns("id"), "id BIGINT NOT NULL")

  /// Hub 0 is the namespace. `position` keeps the order of creation.
  static let accessPolicy = StoredTable(
    "access_policy", key: .columns("hub, name"),
    """
    hub BIGINT NOT NULL, name TEXT NOT NULL, position BIGINT NOT NULL, rights SMALLINT NOT NULL,
    primary_key BYTEA NOT NULL, secondary_key BYTEA NOT NULL, created_at BIGINT NOT NULL,
    modified_at BIGINT NOT NULL
    """)

  static let pushCredential = StoredTable(
    "push_credential", key: .columns("hub, platform"),
    """
    hub BIGINT NOT NULL, platform SMALLINT NOT NULL, properties BYTEA NOT NULL,
    modified_at BIGINT NOT NULL
    """)

  /// `id` is a digest of the value that the browser presents.
  static let operatorSession = StoredTable(
    "operator_session", key: .columns("id"),
    """
    id BYTEA NOT NULL, user_key TEXT NOT NULL, fingerprint BYTEA NOT NULL,
    started_at BIGINT NOT NULL, seen_at BIGINT NOT NULL, confirmed_at BIGINT NOT NULL
    """,
    indexes: ["operator_session_user (user_key, seen_at)", "operator_session_seen (seen_at)"])

  /// Hub 0 is the namespace. The name is kept when the hub is deleted.
  static let activity = StoredTable(
    "activity", key: .number,
    """
    hub BIGINT NOT NULL, hub_name TEXT, at BIGINT NOT NULL, actor TEXT NOT NULL, via TEXT NOT NULL,
    action TEXT NOT NULL, object TEXT, address TEXT NOT NULL, status INT NOT NULL
    """, indexes: ["activity_time (at, id)", "activity_hub (hub, at, id)"])

  /// `uris` are sealed, because they may contain signatures. `ended_at` is null while work remains.
  /// `owner` is the node that runs the job.
  static let job = StoredTable(
    "job", key: .columns("hub, public_id"),
    """
    hub BIGINT NOT NULL, public_id TEXT NOT NULL, kind TEXT NOT NULL, uris BYTEA NOT NULL,
    status TEXT NOT NULL, progress DOUBLE PRECISION NOT NULL, results BYTEA NOT NULL,
    position BYTEA NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
    ended_at BIGINT
    """, postgres: ["owner BIGINT"], indexes: ["job_unfinished (created_at) WHERE ended_at IS NULL"]
  )
}
