import SQLDatabase

extension PostgresSchema {
  /// Devices: there is no row that every write touches, devices share nothing, and every key begins
  /// with the hub and the slot.
  static func deviceTables(_ slots: DeviceSlots) -> [String] {
    [
      "CREATE SEQUENCE installation_number INCREMENT BY \(NumberBlocks.blockSize)",
      "CREATE SEQUENCE registration_number INCREMENT BY \(NumberBlocks.blockSize)",
      // `user_hash` is of the id in lower case; matches are compared in full. `fingerprint` is of
      // everything that was written; an identical write writes nothing else.
      """
      CREATE TABLE installation (
        hub BIGINT NOT NULL, slot SMALLINT NOT NULL, id BIGINT NOT NULL, public_id TEXT NOT NULL,
        user_hash BIGINT, fingerprint BIGINT NOT NULL, document BYTEA NOT NULL, expires_at BIGINT,
        PRIMARY KEY (hub, slot, id), UNIQUE (hub, slot, public_id)) WITH (fillfactor = 70)
      """,
      """
      CREATE INDEX installation_user ON installation (hub, user_hash) WHERE user_hash IS NOT NULL
      """,
      """
      CREATE INDEX installation_expiry ON installation (expires_at) WHERE expires_at IS NOT NULL
      """,
    ]
      + registrationTable(slots) + [
        // Maps handles to registrations. Registrations are stored with their devices, so an index
        // on them would be searched in every slot. `slot` is that of the hash.
        """
        CREATE TABLE registration_handle (
          hub BIGINT NOT NULL, hash BIGINT NOT NULL, id BIGINT NOT NULL, slot SMALLINT NOT NULL,
          is_native SMALLINT NOT NULL, PRIMARY KEY (hub, slot, hash, id))
        """,
        """
        CREATE TABLE removed_registration (
          \(registrationColumns), removed_at BIGINT NOT NULL, outcome SMALLINT NOT NULL,
          new_handle TEXT, PRIMARY KEY (hub, slot, id))
        """,
        "CREATE INDEX removed_registration_time ON removed_registration (hub, removed_at)",
        "CREATE INDEX removed_registration_handle ON removed_registration (hub, handle_hash)",
        """
        CREATE INDEX removed_registration_public ON removed_registration (hub, public_id)
        WHERE public_id IS NOT NULL
        """,
        """
        CREATE INDEX removed_registration_installation
        ON removed_registration (hub, slot, installation) WHERE installation <> 0
        """,
        // Number of registrations, with a row for each lane; readers add them up.
        """
        CREATE TABLE registration_count (
          hub BIGINT NOT NULL, platform SMALLINT NOT NULL, lane SMALLINT NOT NULL,
          total BIGINT NOT NULL, PRIMARY KEY (hub, platform, lane)) WITH (fillfactor = 50)
        """,
      ]
  }

  /// The tables whose rows are deleted with a hub, each with a column `hub`; others are deleted
  /// with their notifications.
  static func hubTables(_ slots: DeviceSlots) -> [String] {
    ["installation"] + (0..<slots.tableCount).map { "registration_\($0)" }
      + ["registration_handle", "removed_registration", "registration_count"] + workHubTables
  }

  /// Marks the native registrations that share a handle.
  /// - Parameter transaction: An `xid8` in SQL.
  static func noteSharedHandles(_ slots: DeviceSlots, since transaction: String) -> String {
    """
    UPDATE registration r SET shared_at = \(transaction)
    FROM registration_handle h JOIN (
      SELECT hub, slot, hash FROM registration_handle WHERE is_native = 1
      GROUP BY hub, slot, hash HAVING COUNT(*) > 1) AS several
      ON several.hub = h.hub AND several.slot = h.slot AND several.hash = h.hash
    WHERE h.is_native = 1 AND r.hub = h.hub AND r.id = h.id
      AND r.slot = \(slots.sqlSlot(ofNumber: "h.id")) AND r.shared_at IS NULL
    """
  }

  /// The columns that a registration and a removed one share.
  ///
  /// `installation` is 0 for one that a client has written; `public_id` is null when it follows
  /// from the number; `tag_text` holds the tags as a client wrote them, and is null when they are
  /// derived from the installation; `template` is null for a native one; `tags` are those that
  /// expressions match, in lower case.
  private static let registrationColumns = """
    hub BIGINT NOT NULL, slot SMALLINT NOT NULL, id BIGINT NOT NULL, installation BIGINT NOT NULL,
    public_id TEXT, etag BIGINT NOT NULL, name TEXT, tile TEXT, tag_text TEXT,
    platform SMALLINT NOT NULL, template BYTEA, handle TEXT NOT NULL, handle_hash BIGINT NOT NULL,
    variables BYTEA, tags TEXT[] NOT NULL, expires_at BIGINT, confirmed_at BIGINT NOT NULL,
    environment SMALLINT
    """

  /// Each slot is a table, up to a limit, so that rows that are read together are stored together.
  private static func registrationTable(_ slots: DeviceSlots) -> [String] {
    // `confirmed` is the transaction of the last write by an app or a client, `written` of the last
    // change. `shared_at` is the one that has found that another native registration has the same
    // handle; it is never cleared.
    let table = """
      CREATE TABLE registration (
        \(registrationColumns),
        confirmed xid8 NOT NULL DEFAULT pg_current_xact_id(),
        written xid8 NOT NULL DEFAULT pg_current_xact_id(), shared_at xid8,
        PRIMARY KEY (hub, slot, id)) PARTITION BY LIST (slot)
      """
    let parts = (0..<slots.tableCount).map { table in
      let values = slots.slots(inTable: table).map { "\($0)" }.joined(separator: ", ")
      return """
        CREATE TABLE registration_\(table) PARTITION OF registration FOR VALUES IN (\(values))
        WITH (fillfactor = 70)
        """
    }
    return [table] + parts + [
      """
      CREATE UNIQUE INDEX registration_public ON registration (hub, slot, public_id)
      WHERE public_id IS NOT NULL
      """,
      """
      CREATE INDEX registration_installation ON registration (hub, slot, installation)
      WHERE installation <> 0
      """,
      "CREATE INDEX registration_expiry ON registration (expires_at) WHERE expires_at IS NOT NULL",
      """
      CREATE INDEX registration_shared ON registration (hub, slot, id) WHERE shared_at IS NOT NULL
      """,
      "CREATE INDEX registration_tags ON registration USING gin (tags)",
      // The planner uses them to choose between a tag's index and a slot's order.
      "ALTER TABLE registration ALTER COLUMN tags SET STATISTICS 500",
    ]
  }
}
