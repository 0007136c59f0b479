import SQLDatabase

/// The backend's tables. Names and times stand in the clear, payloads sealed.
enum BackendSchema {
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
    }
  ]
}
