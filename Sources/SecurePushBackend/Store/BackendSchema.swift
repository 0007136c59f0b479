import Authentication
import SQLDatabase

/// The backend's tables. Names and times are stored in plain text, payloads sealed.
enum BackendSchema {
  /// The table of failed passwords, on PostgreSQL; a single backend on a file counts in memory.
  static let attempts = "failed_password"

  static let migrations = [
    Migration(version: 1) { connection in
      let dialect = connection.dialect
      try connection.execute(
        """
        CREATE TABLE message (
          id TEXT PRIMARY KEY,
          owner TEXT NOT NULL,
          payload \(dialect.bytes),
          created_at \(dialect.integer) NOT NULL,
          expires_at \(dialect.integer) NOT NULL,
          read_once \(dialect.integer) NOT NULL,
          read_at \(dialect.integer)
        );
        CREATE INDEX message_owner ON message (owner, created_at);
        CREATE INDEX message_expiry ON message (expires_at);
        CREATE TABLE device (
          id TEXT PRIMARY KEY,
          owner TEXT NOT NULL,
          is_installation \(dialect.integer) NOT NULL,
          platform TEXT NOT NULL,
          channel \(dialect.bytes) NOT NULL,
          sealing_key TEXT,
          updated_at \(dialect.integer) NOT NULL
        );
        CREATE INDEX device_owner ON device (owner);
        CREATE TABLE audit (
          number \(dialect.rowNumber),
          at \(dialect.integer) NOT NULL,
          actor TEXT NOT NULL,
          action TEXT NOT NULL,
          subject TEXT NOT NULL,
          outcome TEXT NOT NULL,
          address TEXT NOT NULL
        );
        CREATE INDEX audit_time ON audit (at);
        """)
    },
    Migration(version: 2) { connection in
      let dialect = connection.dialect
      // Names and subjects shared one name space. `settle` separates the owners.
      try connection.execute(
        """
        UPDATE message SET owner = 'old:' || owner;
        UPDATE device SET owner = 'old:' || owner;
        UPDATE audit SET actor = 'old:' || actor;
        ALTER TABLE device ADD COLUMN folded TEXT NOT NULL DEFAULT '';
        ALTER TABLE device ADD COLUMN has_old_tag \(dialect.integer) NOT NULL DEFAULT 0;
        UPDATE device SET has_old_tag = 1;
        CREATE INDEX device_folded ON device (folded);
        CREATE TABLE signing_key (
          number \(dialect.rowNumber),
          sealed \(dialect.bytes) NOT NULL
        );
        CREATE TABLE session (
          id TEXT PRIMARY KEY,
          owner TEXT NOT NULL,
          expires_at \(dialect.integer) NOT NULL,
          fingerprint \(dialect.bytes) NOT NULL
        );
        CREATE INDEX session_owner ON session (owner, expires_at);
        CREATE INDEX session_expiry ON session (expires_at);
        CREATE TABLE detached (
          owner TEXT NOT NULL,
          device TEXT NOT NULL,
          at \(dialect.integer) NOT NULL,
          PRIMARY KEY (owner, device)
        );
        """)
      // SQL folding differs between engines, and lookups use Swift's.
      var ids: [String] = []
      do {
        let rows = try connection.statement("SELECT id FROM device")
        while try rows.step() { ids.append(rows.text(0)) }
      }
      for id in ids {
        let update = try connection.statement("UPDATE device SET folded = ?2 WHERE id = ?1")
        try update.bind(id, at: 1)
        try update.bind(id.lowercased(), at: 2)
        try update.run()
      }
    },
    Migration(version: 3) { connection in
      guard connection.dialect != .sqlite else { return }
      for sql in SharedAttempts.tables(named: attempts) { try connection.execute(sql) }
    },
    Migration(version: 4) { connection in
      // For the count of a user's lines of one kind within a day.
      try connection.execute(
        "CREATE INDEX audit_actor ON audit (actor, action, outcome, at)")
    },
  ]
}
