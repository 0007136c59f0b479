extension Schema {
  /// Installations and registrations, and the means to find them: their keys and their tags.
  static let deviceTables =
    [
      // One row: the secret from which the ids of registrations are made.
      """
      CREATE TABLE registration_key (
        id INTEGER PRIMARY KEY, first INTEGER NOT NULL, second INTEGER NOT NULL)
      """,
      // Bodies, headers and expiries that many devices share, looked up by a hash of all three.
      """
      CREATE TABLE template (
        id INTEGER PRIMARY KEY, hub INTEGER NOT NULL, hash INTEGER NOT NULL,
        body TEXT NOT NULL, headers BLOB NOT NULL, expiry TEXT)
      """,
      "CREATE INDEX template_hash ON template (hub, hash)",
      // `id_hash` and `user_hash` are of the id in lower case; matches are compared in full.
      // `fingerprint` is of everything that was written; an identical write leaves it and
      // the document. `request` is a hash of the request whose result the row is, exclusive or
      // `fingerprint`; 0 for none, and void while `fingerprint` is 0.
      """
      CREATE TABLE installation (
        id INTEGER PRIMARY KEY, hub INTEGER NOT NULL, id_hash INTEGER NOT NULL,
        public_id TEXT NOT NULL, user_hash INTEGER, fingerprint INTEGER NOT NULL,
        document BLOB NOT NULL, expires_at INTEGER, request INTEGER NOT NULL DEFAULT 0)
      """,
      // In the order of arrival, so that an insertion costs no page of its own.
      "CREATE INDEX installation_hub ON installation (hub)",
      """
      CREATE INDEX installation_expiry ON installation (expires_at)
      WHERE expires_at IS NOT NULL
      """,
      // Installations whose document names more than their registrations say.
      "CREATE INDEX installation_apart ON installation (hub) WHERE fingerprint = 0",
    ]
    + registrationTables + [
      // Devices are looked up by ``DeviceKeys`` in place of indexes on random columns; the log
      // has the keys that are not in the index yet.
      """
      CREATE TABLE device_key (
        hash INTEGER NOT NULL, number INTEGER NOT NULL,
        PRIMARY KEY (hash, number)) WITHOUT ROWID
      """,
      "CREATE TABLE key_log (id INTEGER PRIMARY KEY, changes BLOB NOT NULL)",
      """
      CREATE TABLE tag (
        id INTEGER PRIMARY KEY, hub INTEGER NOT NULL, kind INTEGER NOT NULL,
        name TEXT NOT NULL, UNIQUE (hub, kind, name))
      """,
      // The members of a tag by parts of 65 536 numbers, and a log of the changes that are not
      // merged yet. `total` counts the members.
      """
      CREATE TABLE tag_part (
        tag INTEGER NOT NULL, part INTEGER NOT NULL,
        total INTEGER NOT NULL, members BLOB NOT NULL,
        PRIMARY KEY (tag, part)) WITHOUT ROWID
      """,
      "CREATE TABLE tag_log (id INTEGER PRIMARY KEY, changes BLOB NOT NULL)",
      // The number of registrations.
      """
      CREATE TABLE registration_total (
        hub INTEGER NOT NULL, platform INTEGER NOT NULL,
        total INTEGER NOT NULL, PRIMARY KEY (hub, platform)) WITHOUT ROWID
      """,
    ]

  private static let registrationTables = [
    // `installation` is 0 for one that a client has written itself. Native when `template` is
    // null. `tags` holds the numbers of all its tags, so that no index is needed to find them.
    // `public_id` is null when the hub has made it, because then it follows from `id`;
    // `public_hash` is its hash. `tag_text` holds the tags as they were written; it is null when
    // they are derived from the installation. `template_handle` repeats `handle_hash` for a
    // template registration that cannot be found through a native one of its installation.
    // `environment` is where pushes have succeeded, as ``PushEnvironment``; null where it was
    // always the credential's own. `written` is the `commit_number` of the last write, `revision`
    // of the last one by an app or a client.
    """
    CREATE TABLE registration (
      id INTEGER PRIMARY KEY, hub INTEGER NOT NULL, installation INTEGER NOT NULL,
      platform INTEGER NOT NULL, template INTEGER, name TEXT, tile TEXT,
      handle TEXT NOT NULL, handle_hash INTEGER NOT NULL, variables BLOB,
      tags BLOB NOT NULL, etag INTEGER NOT NULL, expires_at INTEGER,
      confirmed_at INTEGER NOT NULL, public_id TEXT, public_hash INTEGER,
      tag_text TEXT, template_handle INTEGER, environment INTEGER,
      written INTEGER NOT NULL DEFAULT 0, revision INTEGER NOT NULL DEFAULT 0)
    """,
    "CREATE INDEX registration_installation ON registration (installation)",
    """
    CREATE INDEX registration_expiry ON registration (hub, expires_at)
    WHERE expires_at IS NOT NULL
    """,
    """
    CREATE INDEX registration_public ON registration (hub, public_hash)
    WHERE public_hash IS NOT NULL
    """,
    """
    CREATE INDEX registration_template_handle ON registration (template_handle)
    WHERE template_handle IS NOT NULL
    """,
    // Finds the users of a template, so that an unused one can be deleted.
    """
    CREATE INDEX registration_template ON registration (template)
    WHERE template IS NOT NULL
    """,
    // A row of `registration` as it was when a push service reported its handle dead.
    // `new_handle` is null when the row was deleted there; otherwise it is the replacement from
    // the push service, which the row still has unless it was written since.
    """
    CREATE TABLE removed_registration (
      id INTEGER PRIMARY KEY, hub INTEGER NOT NULL, installation INTEGER NOT NULL,
      public_id TEXT, public_hash INTEGER, etag INTEGER NOT NULL, name TEXT,
      tile TEXT, tag_text TEXT, template_handle INTEGER, platform INTEGER NOT NULL,
      template INTEGER, handle TEXT NOT NULL, handle_hash INTEGER NOT NULL,
      variables BLOB, tags BLOB NOT NULL, expires_at INTEGER,
      confirmed_at INTEGER NOT NULL, environment INTEGER,
      removed_at INTEGER NOT NULL, outcome INTEGER NOT NULL, new_handle TEXT)
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
    """
    CREATE INDEX removed_registration_template ON removed_registration (template)
    WHERE template IS NOT NULL
    """,
  ]
}
