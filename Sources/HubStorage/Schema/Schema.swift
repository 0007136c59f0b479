import SQLDatabase

/// The tables. All times are milliseconds since 1970.
enum Schema {
  static let migrations = [
    Migration(version: 1, apply: createVersion1),
    Migration(version: 2, apply: addClientRegistrations),
    Migration(version: 3, apply: addSends),
    Migration(version: 4, apply: addManagement),
    Migration(version: 5, apply: addErasure),
    Migration(version: 6, apply: addClearing),
    Migration(version: 7, apply: addOutcomes),
    Migration(version: 8, apply: addReplacement),
    Migration(version: 9, apply: addEnvironment),
    Migration(version: 10, apply: addRetryLanes),
    Migration(version: 11, apply: addNotificationAge),
    Migration(version: 12, apply: addNotificationLists),
    Migration(version: 13, apply: endDotSegments),
    Migration(version: 14, apply: addAudienceVersion),
    Migration(version: 15, apply: addRemovals),
    Migration(version: 16, apply: addHubRetention),
    Migration(version: 17, apply: addUses),
    Migration(version: 18, apply: addTagParts),
    Migration(version: 19, apply: addAborts),
    Migration(version: 20, apply: addActivity),
    Migration(version: 21, apply: addDeviceKeys),
    Migration(version: 22, apply: addOperatorSessions),
    Migration(version: 23, apply: addStatistics),
    Migration(version: 24, apply: addNamedTemplates),
    Migration(version: 25, apply: hashInstallationIDs),
  ]

  /// The bits that mark an SQLite file as Belfry's (`Belf`).
  static let applicationID = 0x4265_6c66

  @Sendable private static func createVersion1(_ connection: any SQLConnection) throws {
    for sql in directory(connection.dialect) + devices(connection.dialect)
      + notifications(connection.dialect)
    {
      try connection.execute(sql)
    }
  }

  private static func directory(_ type: Dialect) -> [String] {
    [
      // One row. Every commit raises `commit_number` and names its writer, so that each process
      // that has the database open can tell others' commits from its own. Numbers of rows come
      // from here and are never used twice: caches and retries refer to them.
      """
      CREATE TABLE store_state (
        id \(type.rowNumber), commit_number \(type.integer) NOT NULL,
        writer \(type.integer) NOT NULL, directory_version \(type.integer) NOT NULL,
        last_hub \(type.integer) NOT NULL, last_installation \(type.integer) NOT NULL,
        last_registration \(type.integer) NOT NULL, last_tag \(type.integer) NOT NULL,
        last_template \(type.integer) NOT NULL, last_notification \(type.integer) NOT NULL,
        canary \(type.bytes))
      """,
      "INSERT INTO store_state VALUES (1, 0, 0, 1, 0, 0, 0, 0, 0, 0, NULL)",
      """
      CREATE TABLE hub (
        id \(type.rowNumber), name TEXT NOT NULL, folded_name TEXT NOT NULL UNIQUE,
        registration_ttl DOUBLE PRECISION, is_disabled \(type.integer) NOT NULL,
        created_at \(type.integer) NOT NULL)
      """,
      // Hub 0 is the namespace. `position` keeps the order of creation.
      """
      CREATE TABLE access_policy (
        hub \(type.integer) NOT NULL, name TEXT NOT NULL, position \(type.integer) NOT NULL,
        rights \(type.integer) NOT NULL, primary_key \(type.bytes) NOT NULL,
        secondary_key \(type.bytes) NOT NULL, created_at \(type.integer) NOT NULL,
        modified_at \(type.integer) NOT NULL, PRIMARY KEY (hub, name)) \(type.clustered)
      """,
      """
      CREATE TABLE push_credential (
        hub \(type.integer) NOT NULL, platform \(type.integer) NOT NULL,
        properties \(type.bytes) NOT NULL, modified_at \(type.integer) NOT NULL,
        PRIMARY KEY (hub, platform)) \(type.clustered)
      """,
    ]
  }

  private static func devices(_ type: Dialect) -> [String] {
    [
      // Bodies, headers and expiries that many devices share, found by a hash of all three.
      """
      CREATE TABLE template (
        id \(type.rowNumber), hub \(type.integer) NOT NULL, hash \(type.integer) NOT NULL,
        body TEXT NOT NULL, headers \(type.bytes) NOT NULL, expiry TEXT)
      """,
      "CREATE INDEX template_hash ON template (hub, hash)",
      // `id_hash` and `user_hash` are of the id in lower case; what is found by them is compared.
      // `fingerprint` is of all that was written; a repeat of the same writes nothing else.
      """
      CREATE TABLE installation (
        id \(type.rowNumber), hub \(type.integer) NOT NULL, id_hash \(type.integer) NOT NULL,
        public_id TEXT NOT NULL, user_hash \(type.integer), fingerprint \(type.integer) NOT NULL,
        document \(type.bytes) NOT NULL)
      """,
      "CREATE INDEX installation_id ON installation (hub, id_hash)",
      """
      CREATE INDEX installation_user ON installation (hub, user_hash)
      WHERE user_hash IS NOT NULL
      """,
      // Native when `template` is null. `tags` holds the numbers of all its rows in
      // registration_tag, so that no index has to find them.
      """
      CREATE TABLE registration (
        id \(type.rowNumber), hub \(type.integer) NOT NULL, installation \(type.integer) NOT NULL,
        platform \(type.integer) NOT NULL, template \(type.integer), name TEXT, tile TEXT,
        handle TEXT NOT NULL, handle_hash \(type.integer) NOT NULL, variables \(type.bytes),
        tags \(type.bytes) NOT NULL, etag \(type.integer) NOT NULL, expires_at \(type.integer),
        confirmed_at \(type.integer) NOT NULL)
      """,
      "CREATE INDEX registration_installation ON registration (installation)",
      "CREATE INDEX registration_handle ON registration (handle_hash) WHERE template IS NULL",
      """
      CREATE INDEX registration_expiry ON registration (hub, expires_at)
      WHERE expires_at IS NOT NULL
      """,
      """
      CREATE TABLE tag (
        id \(type.rowNumber), hub \(type.integer) NOT NULL, kind \(type.integer) NOT NULL,
        name TEXT NOT NULL, UNIQUE (hub, kind, name))
      """,
      """
      CREATE TABLE registration_tag (
        tag \(type.integer) NOT NULL, registration \(type.integer) NOT NULL,
        PRIMARY KEY (tag, registration)) \(type.clustered)
      """,
    ]
  }

  private static func notifications(_ type: Dialect) -> [String] {
    [
      // `format` is a platform's number, 0 for template sends. `ended_at` is null while there is
      // something left to do.
      """
      CREATE TABLE notification (
        id \(type.rowNumber), hub \(type.integer) NOT NULL, public_id TEXT NOT NULL,
        format \(type.integer) NOT NULL, body \(type.bytes) NOT NULL, tags TEXT,
        expression \(type.bytes), headers \(type.bytes) NOT NULL, expiry \(type.integer),
        state TEXT NOT NULL, enqueued_at \(type.integer) NOT NULL, started_at \(type.integer),
        ended_at \(type.integer), position \(type.integer) NOT NULL,
        is_audience_read \(type.integer) NOT NULL, UNIQUE (hub, public_id))
      """,
      "CREATE INDEX notification_unfinished ON notification (id) WHERE ended_at IS NULL",
      """
      CREATE TABLE notification_count (
        notification \(type.integer) NOT NULL, platform \(type.integer) NOT NULL,
        is_template \(type.integer) NOT NULL, outcome \(type.integer) NOT NULL,
        total \(type.integer) NOT NULL,
        PRIMARY KEY (notification, platform, is_template, outcome)) \(type.clustered)
      """,
      """
      CREATE TABLE notification_failure (
        notification \(type.integer) NOT NULL, registration \(type.integer) NOT NULL,
        outcome \(type.integer) NOT NULL, status \(type.integer) NOT NULL, reason TEXT,
        PRIMARY KEY (notification, registration)) \(type.clustered)
      """,
      """
      CREATE TABLE retry (
        notification \(type.integer) NOT NULL, registration \(type.integer) NOT NULL,
        attempts \(type.integer) NOT NULL, due \(type.integer) NOT NULL,
        PRIMARY KEY (notification, registration)) \(type.clustered)
      """,
      "CREATE INDEX retry_due ON retry (due)",
    ]
  }
}
