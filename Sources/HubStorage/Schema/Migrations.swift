import HubCore
import NotificationHubs
import SQLDatabase

/// The steps from each version to the next, in their order. One that is released never changes.
extension Schema {
  /// Version 2: registrations that clients write themselves.
  @Sendable static func addClientRegistrations(_ connection: any SQLConnection) throws {
    let type = connection.dialect
    for sql in [
      // `public_id` is null when the hub has made it, for then it follows from `id`; `public_hash`
      // is its hash. `tag_text` holds the tags as they were written; it is null when they follow
      // from the installation. `template_handle` repeats `handle_hash` for a template registration
      // that cannot be found through a native one of its installation.
      "ALTER TABLE registration ADD COLUMN public_id TEXT",
      "ALTER TABLE registration ADD COLUMN public_hash \(type.integer)",
      "ALTER TABLE registration ADD COLUMN tag_text TEXT",
      "ALTER TABLE registration ADD COLUMN template_handle \(type.integer)",
      """
      CREATE INDEX registration_public ON registration (hub, public_hash)
      WHERE public_hash IS NOT NULL
      """,
      """
      CREATE INDEX registration_template_handle ON registration (template_handle)
      WHERE template_handle IS NOT NULL
      """,
      // One row: the secret that the ids of registrations are made with.
      """
      CREATE TABLE registration_key (
        id \(type.rowNumber), first \(type.integer) NOT NULL, second \(type.integer) NOT NULL)
      """,
    ] {
      try connection.execute(sql)
    }
    let row = try connection.statement("INSERT INTO registration_key VALUES (1, ?1, ?2)")
    try row.bind(Int64.random(in: .min ... .max), at: 1)
    try row.bind(Int64.random(in: .min ... .max), at: 2)
    try row.run()
  }

  /// Version 3: direct and scheduled sends, keys of repeated ones, and what a failure is told with
  /// when its registration has gone.
  @Sendable static func addSends(_ connection: any SQLConnection) throws {
    let type = connection.dialect
    for sql in [
      "ALTER TABLE notification ADD COLUMN is_direct \(type.integer) NOT NULL DEFAULT 0",
      "ALTER TABLE notification ADD COLUMN due_at \(type.integer)",
      "CREATE INDEX notification_schedule ON notification (due_at) WHERE state = 'Scheduled'",
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
      // Filled when the registration is removed with the failure; otherwise it still tells.
      "ALTER TABLE notification_failure ADD COLUMN platform \(type.integer)",
      "ALTER TABLE notification_failure ADD COLUMN handle TEXT",
      "ALTER TABLE notification_failure ADD COLUMN installation TEXT",
      "ALTER TABLE notification_failure ADD COLUMN public_id TEXT",
    ] {
      try connection.execute(sql)
    }
  }

  /// Version 4: what describes a hub beyond its name; jobs; feedback about handles.
  @Sendable static func addManagement(_ connection: any SQLConnection) throws {
    let type = connection.dialect
    for sql in [
      "ALTER TABLE hub ADD COLUMN user_metadata TEXT",
      "ALTER TABLE hub ADD COLUMN updated_at \(type.integer)",
      // `uris` are sealed: they may hold signatures. `ended_at` is null while there is something
      // left to do.
      """
      CREATE TABLE job (
        hub \(type.integer) NOT NULL, public_id TEXT NOT NULL, kind TEXT NOT NULL,
        uris \(type.bytes) NOT NULL, status TEXT NOT NULL, progress DOUBLE PRECISION NOT NULL,
        results \(type.bytes) NOT NULL, position \(type.bytes) NOT NULL,
        created_at \(type.integer) NOT NULL, updated_at \(type.integer) NOT NULL,
        ended_at \(type.integer), PRIMARY KEY (hub, public_id)) \(type.clustered)
      """,
      "CREATE INDEX job_unfinished ON job (created_at) WHERE ended_at IS NULL",
      // `hour` counts from 1970; `public_id` is null when it follows from `registration`.
      """
      CREATE TABLE feedback (
        id \(type.rowNumber), hub \(type.integer) NOT NULL, hour \(type.integer) NOT NULL,
        at \(type.integer) NOT NULL, outcome \(type.integer) NOT NULL,
        platform \(type.integer) NOT NULL, handle TEXT NOT NULL,
        registration \(type.integer) NOT NULL, public_id TEXT, installation TEXT,
        notification TEXT NOT NULL)
      """,
      "CREATE INDEX feedback_hour ON feedback (hub, hour)",
    ] { try connection.execute(sql) }
  }

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

  /// Version 6: when installations end, and which hubs have left something behind.
  @Sendable static func addClearing(_ connection: any SQLConnection) throws {
    let type = connection.dialect
    for sql in [
      "ALTER TABLE installation ADD COLUMN expires_at \(type.integer)",
      // As its registrations have it, unless clients have changed one.
      """
      UPDATE installation SET expires_at =
        (SELECT MAX(expires_at) FROM registration WHERE installation = installation.id)
      WHERE id IN (SELECT installation FROM registration WHERE expires_at IS NOT NULL)
      """,
      """
      CREATE INDEX installation_expiry ON installation (expires_at)
      WHERE expires_at IS NOT NULL
      """,
      // Hubs that are gone for everyone while their rows are deleted a slice at a time.
      "CREATE TABLE deleted_hub (id \(type.rowNumber))",
    ] { try connection.execute(sql) }
  }

  /// Version 7: how often and when a push was tried, what was said to a try that was not the last,
  /// and how long all that is kept.
  @Sendable static func addOutcomes(_ connection: any SQLConnection) throws {
    let type = connection.dialect
    for sql in [
      // `kept` is an `OutcomeKeeping`; `kept_rows` counts what of the notification is in
      // notification_failure, `kept_at` says when the last came; it is null when there is none.
      // `last_registration` is that of store_state when the notification was accepted.
      "ALTER TABLE notification ADD COLUMN kept \(type.integer)",
      "ALTER TABLE notification ADD COLUMN kept_rows \(type.integer) NOT NULL DEFAULT 0",
      "ALTER TABLE notification ADD COLUMN kept_at \(type.integer)",
      "ALTER TABLE notification ADD COLUMN kept_cleared \(type.integer) NOT NULL DEFAULT 0",
      "ALTER TABLE notification ADD COLUMN last_registration \(type.integer)",
      """
      UPDATE notification SET kept_at = COALESCE(ended_at, enqueued_at), kept_rows =
        (SELECT COUNT(*) FROM notification_failure WHERE notification = notification.id)
      WHERE id IN (SELECT notification FROM notification_failure)
      """,
      """
      CREATE INDEX notification_kept ON notification (kept_at, kept_rows)
      WHERE kept_at IS NOT NULL
      """,
      "ALTER TABLE notification_failure ADD COLUMN at \(type.integer)",
      "ALTER TABLE notification_failure ADD COLUMN attempts \(type.integer) NOT NULL DEFAULT 0",
      "ALTER TABLE retry ADD COLUMN outcome \(type.integer)",
      "ALTER TABLE retry ADD COLUMN status \(type.integer)",
      "ALTER TABLE retry ADD COLUMN reason TEXT",
    ] { try connection.execute(sql) }
  }

  /// Version 8: feedback about handles that a push service has replaced.
  @Sendable static func addReplacement(_ connection: any SQLConnection) throws {
    try connection.execute("ALTER TABLE feedback ADD COLUMN new_handle TEXT")
  }

  /// Version 9: where pushes to a registration have succeeded, as ``PushEnvironment``; null where
  /// it was always the credential's own environment.
  @Sendable static func addEnvironment(_ connection: any SQLConnection) throws {
    try connection.execute(
      "ALTER TABLE registration ADD COLUMN environment \(connection.dialect.integer)")
  }

  /// Version 10: each retry says which lane it waits for, so that one lane's are found however many
  /// others wait.
  @Sendable static func addRetryLanes(_ connection: any SQLConnection) throws {
    let type = connection.dialect
    for sql in [
      "ALTER TABLE retry ADD COLUMN hub \(type.integer) NOT NULL DEFAULT 0",
      "ALTER TABLE retry ADD COLUMN platform \(type.integer) NOT NULL DEFAULT 0",
      // A device of a template send that has gone meanwhile: any lane will find that out.
      """
      UPDATE retry SET
        hub = (SELECT hub FROM notification WHERE id = retry.notification),
        platform = COALESCE(
          (SELECT NULLIF(format, 0) FROM notification WHERE id = retry.notification),
          (SELECT platform FROM registration WHERE id = retry.registration),
          \(PushPlatform.apns.code))
      WHERE notification IN (SELECT id FROM notification)
      """,
      "DROP INDEX retry_due",
      "CREATE INDEX retry_lane ON retry (hub, platform, due)",
    ] { try connection.execute(sql) }
  }

  /// Version 11: finished notifications by their end, so that old ones are found.
  @Sendable static func addNotificationAge(_ connection: any SQLConnection) throws {
    try connection.execute(
      "CREATE INDEX notification_ended ON notification (ended_at) WHERE ended_at IS NOT NULL")
  }

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

  /// Version 13: devices whose id is `.`, `..` or another that no request can name end now, so that
  /// the next clearing removes them. Earlier versions took such ids; URL layers turned a request to
  /// delete one into one to delete the hub.
  @Sendable static func endDotSegments(_ connection: any SQLConnection) throws {
    try connection.execute(
      """
      UPDATE registration SET expires_at = 1 WHERE installation IN
        (SELECT id FROM installation WHERE public_id IN ('.', '..'))
      """)
    try connection.execute(
      "UPDATE installation SET expires_at = 1 WHERE public_id IN ('.', '..')")
    var numbers: [Int64] = []
    do {
      let row = try connection.statement(
        "SELECT id, public_id FROM registration WHERE public_id IS NOT NULL")
      while try row.step() {
        if row.text(1).hasDotSegment { numbers.append(row.integer(0)) }
      }
    }
    for number in numbers {
      let end = try connection.statement("UPDATE registration SET expires_at = 1 WHERE id = ?1")
      try end.bind(number, at: 1)
      try end.run()
    }
  }

  /// Version 14: which transaction wrote a registration last, and which accepted a notification or
  /// released it. What was written before was in the audience from the start.
  @Sendable static func addAudienceVersion(_ connection: any SQLConnection) throws {
    let type = connection.dialect
    for sql in [
      "ALTER TABLE registration ADD COLUMN written \(type.integer) NOT NULL DEFAULT 0",
      "ALTER TABLE notification ADD COLUMN audience_commit \(type.integer) NOT NULL DEFAULT 0",
    ] { try connection.execute(sql) }
  }

  /// Version 15: registrations that a push service has called dead stay for a while, and each
  /// registration says which commit has written it.
  @Sendable static func addRemovals(_ connection: any SQLConnection) throws {
    let type = connection.dialect
    for sql in [
      // The `commit_number` of the last write by an app or a client.
      "ALTER TABLE registration ADD COLUMN revision \(type.integer) NOT NULL DEFAULT 0",
      // A row of `registration` as it was. `new_handle` is null when the row was deleted there;
      // else it got that handle from its push service, and has it still unless it was written
      // since.
      """
      CREATE TABLE removed_registration (
        id \(type.rowNumber), hub \(type.integer) NOT NULL, installation \(type.integer) NOT NULL,
        public_id TEXT, public_hash \(type.integer), etag \(type.integer) NOT NULL, name TEXT,
        tile TEXT, tag_text TEXT, template_handle \(type.integer), platform \(type.integer) NOT NULL,
        template \(type.integer), handle TEXT NOT NULL, handle_hash \(type.integer) NOT NULL,
        variables \(type.bytes), tags \(type.bytes) NOT NULL, expires_at \(type.integer),
        confirmed_at \(type.integer) NOT NULL, environment \(type.integer),
        removed_at \(type.integer) NOT NULL, outcome \(type.integer) NOT NULL, new_handle TEXT)
      """,
      "CREATE INDEX removed_registration_time ON removed_registration (hub, removed_at)",
      "CREATE INDEX removed_registration_handle ON removed_registration (handle_hash)",
      """
      CREATE INDEX removed_registration_installation ON removed_registration (installation)
      WHERE installation <> 0
      """,
      """
      CREATE INDEX removed_registration_public ON removed_registration (hub, public_hash)
      WHERE public_hash IS NOT NULL
      """,
    ] { try connection.execute(sql) }
  }

  /// Version 16: what is kept of feedback and outcomes is counted for each hub.
  @Sendable static func addHubRetention(_ connection: any SQLConnection) throws {
    for sql in [
      // Rises by one with each row of a hub, so that its oldest are found without counting.
      "ALTER TABLE feedback ADD COLUMN number \(connection.dialect.integer) NOT NULL DEFAULT 0",
      """
      UPDATE feedback SET number = numbered.number FROM (
        SELECT id, ROW_NUMBER() OVER (PARTITION BY hub ORDER BY id) AS number FROM feedback
      ) AS numbered WHERE numbered.id = feedback.id
      """,
      "CREATE INDEX feedback_number ON feedback (hub, number)",
      """
      CREATE INDEX notification_kept_hub ON notification (hub, kept_at, kept_rows)
      WHERE kept_at IS NOT NULL
      """,
    ] { try connection.execute(sql) }
  }

  /// Version 17: finds what still uses a template, so that one that nobody uses can go.
  @Sendable static func addUses(_ connection: any SQLConnection) throws {
    for sql in [
      """
      CREATE INDEX registration_template ON registration (template)
      WHERE template IS NOT NULL
      """,
      """
      CREATE INDEX removed_registration_template ON removed_registration (template)
      WHERE template IS NOT NULL
      """,
      // So far a change of an installation with a dead handle gave it a fingerprint although its
      // document names templates that no registration has; of secondary tiles no column tells.
      """
      UPDATE installation SET fingerprint = 0 WHERE NOT EXISTS (
        SELECT 1 FROM registration WHERE registration.installation = installation.id
          AND registration.installation <> 0
          AND template IS NULL AND tile IS NULL AND platform NOT IN (2, 3))
        OR EXISTS (SELECT 1 FROM registration WHERE registration.installation = installation.id
          AND registration.installation <> 0 AND tile IS NOT NULL)
      """,
      // Installations whose registrations do not say all that their document does.
      "CREATE INDEX installation_apart ON installation (hub) WHERE fingerprint = 0",
    ] { try connection.execute(sql) }
  }

  /// Version 18: the members of a tag by parts of 65 536 numbers, and a log of the changes that are
  /// not in them yet, in place of a row for each member.
  @Sendable static func addTagParts(_ connection: any SQLConnection) throws {
    let type = connection.dialect
    for sql in [
      // `total` counts the members.
      """
      CREATE TABLE tag_part (
        tag \(type.integer) NOT NULL, part \(type.integer) NOT NULL, total \(type.integer) NOT NULL,
        members \(type.bytes) NOT NULL, PRIMARY KEY (tag, part)) \(type.clustered)
      """,
      "CREATE TABLE tag_log (id \(type.rowNumber), changes \(type.bytes) NOT NULL)",
    ] { try connection.execute(sql) }
    try movePairs(connection)
    try connection.execute("DROP TABLE registration_tag")
  }

  /// Version 19: when a notification's sender has called it off.
  @Sendable static func addAborts(_ connection: any SQLConnection) throws {
    try connection.execute(
      "ALTER TABLE notification ADD COLUMN aborted_at \(connection.dialect.integer)")
  }

  /// Version 20: who has changed or sent what.
  @Sendable static func addActivity(_ connection: any SQLConnection) throws {
    let type = connection.dialect
    for sql in [
      // Hub 0 is the namespace. The name stays when the hub goes.
      """
      CREATE TABLE activity (
        id \(type.rowNumber), hub \(type.integer) NOT NULL, hub_name TEXT,
        at \(type.integer) NOT NULL, actor TEXT NOT NULL, via TEXT NOT NULL, action TEXT NOT NULL,
        object TEXT, address TEXT NOT NULL, status \(type.integer) NOT NULL)
      """,
      "CREATE INDEX activity_time ON activity (at, id)",
      "CREATE INDEX activity_hub ON activity (hub, at, id)",
    ] { try connection.execute(sql) }
  }

  /// Version 22: who is signed in at the portal.
  @Sendable static func addOperatorSessions(_ connection: any SQLConnection) throws {
    let type = connection.dialect
    for sql in [
      // `id` is a digest of what the browser shows.
      """
      CREATE TABLE operator_session (
        id \(type.bytes) NOT NULL PRIMARY KEY, user_key TEXT NOT NULL,
        fingerprint \(type.bytes) NOT NULL, started_at \(type.integer) NOT NULL,
        seen_at \(type.integer) NOT NULL, confirmed_at \(type.integer) NOT NULL)
      """,
      "CREATE INDEX operator_session_user ON operator_session (user_key, seen_at)",
      "CREATE INDEX operator_session_seen ON operator_session (seen_at)",
    ] { try connection.execute(sql) }
  }

  private static func movePairs(_ connection: any SQLConnection) throws {
    let row = try connection.statement(
      "SELECT tag, registration FROM registration_tag ORDER BY tag, registration")
    var open: (tag: Int64, number: UInt32, part: TagPart)?
    func close() throws {
      guard let open, let bytes = open.part.bytes else { return }
      try connection.insert(bytes, total: open.part.count, part: open.number, of: open.tag)
    }
    while try row.step() {
      guard let registration = UInt32(exactly: row.integer(1)) else { continue }
      let tag = row.integer(0)
      if open?.tag != tag || open?.number != registration >> 16 {
        try close()
        open = (tag, registration >> 16, TagPart())
      }
      open?.part.insert(UInt16(truncatingIfNeeded: registration))
    }
    try close()
  }

  /// Version 24: the template registrations of each platform and name are a pseudo-tag, so that
  /// counting them reads no rows.
  @Sendable static func addNamedTemplates(_ connection: any SQLConnection) throws {
    struct Name: Hashable {
      let hub: Int64
      let platform: Int64
      let name: String
    }
    var numbers: [Name: Int64] = [:]
    var last = try StoreState.read(from: connection).lastTag
    /// Of the part that is being read.
    var members: [Int64: [UInt16]] = [:]
    var part: UInt32 = 0
    func close() throws {
      for (tag, numbers) in members.sorted(by: { $0.key < $1.key }) {
        var open = TagPart()
        for number in numbers { open.insert(number) }
        guard let bytes = open.bytes else { continue }
        try connection.insert(bytes, total: open.count, part: part, of: tag)
      }
      members = [:]
    }
    let row = try connection.statement(
      """
      SELECT id, hub, platform, COALESCE(name, '') FROM registration NOT INDEXED
      WHERE template IS NOT NULL ORDER BY id
      """)
    while try row.step() {
      guard let registration = UInt32(exactly: row.integer(0)),
        let platform = try? PushPlatform(code: row.integer(2))
      else { continue }
      let name = Name(hub: row.integer(1), platform: row.integer(2), name: row.text(3))
      let number: Int64
      if let known = numbers[name] {
        number = known
      } else {
        last += 1
        number = last
        numbers[name] = number
        let key = TagKey.named(TemplateKey(platform: platform, name: name.name), hub: name.hub)
        let insert = try connection.statement(
          "INSERT INTO tag (id, hub, kind, name) VALUES (?1, ?2, ?3, ?4)", number, key.hub,
          key.kind.rawValue, key.name)
        try insert.run()
      }
      if registration >> 16 != part {
        try close()
        part = registration >> 16
      }
      members[number, default: []].append(UInt16(truncatingIfNeeded: registration))
    }
    try close()
    try connection.execute("UPDATE store_state SET last_tag = \(last)")
  }

  /// Version 25: FCM's tokens of an installation have the hash of its id, so that a send finds the
  /// registrations of one device.
  @Sendable static func hashInstallationIDs(_ connection: any SQLConnection) throws {
    let platform = PushPlatform.fcmv1.code
    for (table, isLive) in [("registration", true), ("removed_registration", false)] {
      var changes: [(id: Int64, old: Int64, new: Int64, isNative: Bool)] = []
      do {
        let row = try connection.statement(
          """
          SELECT id, hub, handle, handle_hash, template FROM \(table)
          WHERE platform = ?1 AND handle LIKE '%:%'
          """, platform)
        while try row.step() {
          let hash = PreparedRegistration.hash(
            of: row.text(2), platform: platform, hub: row.integer(1))
          guard hash != row.integer(3) else { continue }
          changes.append((row.integer(0), row.integer(3), hash, row.isNull(4)))
        }
      }
      for change in changes {
        try connection.change(
          "UPDATE \(table) SET handle_hash = ?2 WHERE id = ?1", change.id, change.new)
        guard isLive else { continue }
        guard change.isNative else {
          try connection.change(
            """
            UPDATE registration SET template_handle = ?2
            WHERE id = ?1 AND template_handle IS NOT NULL
            """, change.id, change.new)
          continue
        }
        // One that is still in the log finds no row any more.
        try connection.change(
          "DELETE FROM device_key WHERE hash = ?1 AND number = ?2", change.old, change.id)
        try connection.change(
          "INSERT INTO device_key (hash, number) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
          change.new, change.id)
      }
    }
    try noteSharedHandles(of: platform, connection)
  }

  /// Gives the native registrations of a platform that share the hash of their handle the tag that
  /// says so. The log's later rows win, so those that have it already are no harm.
  private static func noteSharedHandles(
    of platform: Int64, _ connection: any SQLConnection
  ) throws {
    var holders: [Int64: [UInt32]] = [:]
    do {
      let row = try connection.statement(
        """
        SELECT hub, id FROM registration WHERE platform = ?1 AND template IS NULL
          AND handle_hash IN (SELECT handle_hash FROM registration
            WHERE platform = ?1 AND template IS NULL GROUP BY handle_hash HAVING COUNT(*) > 1)
        """, platform)
      while try row.step() {
        guard let bit = UInt32(exactly: row.integer(1)) else { continue }
        holders[row.integer(0), default: []].append(bit)
      }
    }
    for (hub, numbers) in holders {
      let key = TagKey.sharedHandle(hub: hub)
      var tag = try connection.tagNumber(key)
      if tag == nil {
        let last = try StoreState.read(from: connection).lastTag + 1
        try connection.change(
          "INSERT INTO tag (id, hub, kind, name) VALUES (?1, ?2, ?3, ?4)", last, key.hub,
          key.kind.rawValue, key.name)
        try connection.change("UPDATE store_state SET last_tag = ?1", last)
        tag = last
      }
      guard let tag else { continue }
      let changes = numbers.map { TagChange(tag: tag, registration: $0, isMember: true) }
      try connection.change("INSERT INTO tag_log (changes) VALUES (?1)", TagLog.encode(changes))
    }
  }

  /// Version 21: devices are found by ``DeviceKeys`` in place of indexes on random columns.
  @Sendable static func addDeviceKeys(_ connection: any SQLConnection) throws {
    let type = connection.dialect
    for sql in [
      """
      CREATE TABLE device_key (
        hash \(type.integer) NOT NULL, number \(type.integer) NOT NULL,
        PRIMARY KEY (hash, number)) \(type.clustered)
      """,
      "CREATE TABLE key_log (id \(type.rowNumber), changes \(type.bytes) NOT NULL)",
      """
      INSERT INTO device_key SELECT hash, id FROM (
        SELECT \(DeviceKey.sql("id_hash", kind: 1)) AS hash, id FROM installation
        UNION SELECT \(DeviceKey.sql("user_hash", kind: 2)), id FROM installation
          WHERE user_hash IS NOT NULL
        UNION SELECT handle_hash, id FROM registration WHERE template IS NULL
      ) AS keys ORDER BY hash, id
      """,
      "DROP INDEX installation_id", "DROP INDEX installation_user",
      "DROP INDEX registration_handle",
      // Their order is that in which they came, so that it costs no page of its own.
      "CREATE INDEX installation_hub ON installation (hub)",
    ] { try connection.execute(sql) }
  }

  /// Version 23: what happens in hubs, by the minute and the hour (``StatisticPeriod``), and how
  /// many registrations they have. `at` counts periods since 1970; `code` is that of an outcome, or
  /// -1 for notifications accepted, whose `platform` is 0.
  @Sendable static func addStatistics(_ connection: any SQLConnection) throws {
    let type = connection.dialect
    for sql in [
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
      """
      INSERT INTO registration_total
      SELECT hub, platform, COUNT(*) FROM registration GROUP BY hub, platform
      """,
    ] { try connection.execute(sql) }
  }
}
