import HubTesting
import Testing

@testable import SQLDatabase

/// What both drivers must do alike, tried on a PostgreSQL server of our own.
@Suite(
  "A PostgreSQL connection", .serialized,
  .enabled(
    if: PostgresServer.isInstalled,
    "PostgreSQL's server is not installed, so there is nothing to connect to; script/bootstrap installs it"
  ))
struct PostgresConnectionTests {
  /// Makes a database for one test.
  /// - Parameter body: Also gets its address.
  private func withConnection(_ body: (PostgresConnection, String) throws -> Void) throws {
    let address = try PostgresServer.shared().makeDatabase()
    let connection = try PostgresConnection(address: address, component: "test")
    defer { connection.close() }
    try body(connection, address)
  }

  @Test("a character that the database cannot keep is a fault of the value")
  func untranslatable() throws {
    try withConnection { connection, _ in
      let error = #expect(throws: SQLError.self) {
        try connection.execute(#"SELECT '"\u0000"'::jsonb->>0, '"\u0000"'::jsonb"#)
      }
      #expect(error?.kind == .unfitValue)
    }
  }

  @Test("is exposed when it leads to another machine in the clear")
  func exposure() throws {
    for (host, address, isLocal) in [
      ("/run/postgresql", "", true), ("", "", true), ("localhost", "127.0.0.1", true),
      ("::1", "::1", true), ("db1.example.com", "192.0.2.7", false), ("db1.example.com", "", false),
      ("db1.example.com", "2001:db8::1", false),
    ] {
      #expect(PostgresConnection.isLocal(host: host, address: address) == isLocal, "\(host)")
    }
    try withConnection { connection, _ in #expect(!connection.isExposed) }
  }

  @Test("gives back integers, texts and bytes as they were bound")
  func roundTrips() throws {
    try withConnection { connection, _ in
      try connection.execute(
        "CREATE TABLE t (a BIGINT, b TEXT, c BYTEA, d DOUBLE PRECISION, e INTEGER)")
      let insert = try connection.statement("INSERT INTO t VALUES (?1, ?2, ?3, ?4, ?5)")
      for value in [Int64.min, -1, 0, 1, 255, 256, .max] {
        for text in ["", "a", "it's ?1 \"quoted\"", "☃🔔"] {
          try connection.execute("DELETE FROM t")
          try insert.bind(value, at: 1)
          try insert.bind(text, at: 2)
          try insert.bind(Array(text.utf8) + [0, 255], at: 3)
          try insert.bind(-2.5, at: 4)
          try insert.bind(Int64(-7), at: 5)
          try insert.run()
          insert.reset()
          let row = try connection.statement("SELECT a, b, c, d, e, NULL, COUNT(*) OVER () FROM t")
          guard try row.step() else {
            Issue.record("no row")
            return
          }
          #expect(row.integer(0) == value)
          #expect(row.text(1) == text)
          #expect(row.bytes(2) == Array(text.utf8) + [0, 255])
          #expect(row.double(3) == -2.5)
          #expect(row.integer(4) == -7)
          #expect(row.optionalInteger(5) == nil)
          #expect(row.optionalText(5) == nil)
          #expect(row.integer(6) == 1)
          let isAnother = try row.step()
          #expect(!isAnother)
        }
      }
    }
  }

  @Test("binds null, empty bytes and flags, and a question mark in quotes is no parameter")
  func nullsAndFlags() throws {
    try withConnection { connection, _ in
      try connection.execute("CREATE TABLE t (a BIGINT, b TEXT, c BYTEA)")
      do {
        let insert = try connection.statement("INSERT INTO t VALUES (?1, ?2, ?3)")
        try insert.bind(true, at: 1)
        try insert.bind(String?.none, at: 2)
        try insert.bind([UInt8](), at: 3)
        try insert.run()
      }
      let row = try connection.statement(
        "SELECT a, b, c, 'why?1' FROM t WHERE a = ?1 AND b IS NULL")
      try row.bind(Int64(1), at: 1)
      guard try row.step() else {
        Issue.record("no row")
        return
      }
      #expect(row.integer(0) == 1)
      #expect(row.optionalText(1) == nil)
      #expect(row.optionalBytes(2) == [])
      #expect(row.text(3) == "why?1")
    }
  }

  @Test("lends one statement twice at the same time, and again with its parameters forgotten")
  func statements() throws {
    try withConnection { connection, _ in
      try connection.execute("CREATE TABLE t (a BIGINT); INSERT INTO t VALUES (1), (2), (3)")
      var pairs = 0
      do {
        let outer = try connection.statement("SELECT a FROM t")
        while try outer.step() {
          let inner = try connection.statement("SELECT a FROM t")
          while try inner.step() { pairs += 1 }
        }
      }
      #expect(pairs == 9)
      let sql = "SELECT ?1::bigint"
      do {
        let row = try connection.statement(sql)
        try row.bind(Int64(7), at: 1)
        _ = try row.step()
        #expect(row.integer(0) == 7)
      }
      let row = try connection.statement(sql)
      _ = try row.step()
      let isForgotten = row.isNull(0)
      #expect(isForgotten)
    }
  }

  @Test("undoes a transaction whose work throws")
  func failedTransactionIsUndone() throws {
    struct Stop: Error {}
    try withConnection { connection, _ in
      try connection.execute("CREATE TABLE t (a BIGINT)")
      #expect(throws: Stop.self) {
        try connection.writing {
          try connection.execute("INSERT INTO t VALUES (1)")
          throw Stop()
        }
      }
      #expect(!connection.isInTransaction)
      let row = try connection.statement("SELECT COUNT(*) FROM t")
      _ = try row.step()
      #expect(row.integer(0) == 0)
    }
  }

  @Test("counts what was changed, and refuses changes in a transaction that only reads")
  func readingAndWriting() throws {
    try withConnection { connection, _ in
      try connection.execute("CREATE TABLE t (a BIGINT)")
      let before = connection.totalChanges
      try connection.writing { try connection.execute("INSERT INTO t VALUES (1), (2)") }
      #expect(connection.totalChanges == before + 2)
      let error = #expect(throws: SQLError.self) {
        try connection.reading { try connection.execute("DELETE FROM t") }
      }
      #expect(error?.kind == .readOnly)
      #expect(!connection.isInTransaction)
      let count = try connection.reading {
        let row = try connection.statement("SELECT COUNT(*) FROM t")
        return try row.step() ? row.integer(0) : -1
      }
      #expect(count == 2)
    }
  }

  @Test("names a broken constraint without the value, and a fault in a statement")
  func errors() throws {
    try withConnection { connection, _ in
      try connection.execute("CREATE TABLE t (a TEXT UNIQUE); INSERT INTO t VALUES ('secret')")
      let broken = #expect(throws: SQLError.self) {
        let row = try connection.statement("INSERT INTO t VALUES (?1)")
        try row.bind("secret", at: 1)
        try row.run()
      }
      #expect(broken?.kind == .constraint)
      #expect(broken?.description.contains("secret") == false)
      #expect(throws: SQLError.self) { try connection.run("SELEKT 1") }
      #expect(throws: SQLError.self) {
        let row = try connection.statement("SELECT 1")
        try row.bind(Int64(1), at: 1)
      }
    }
  }

  @Test("applies migrations in order, each once, for each component by itself")
  func migrations() throws {
    let steps = [
      Migration(version: 1) { try $0.execute("CREATE TABLE t (a BIGINT)") },
      Migration(version: 2) { try $0.execute("ALTER TABLE t ADD COLUMN b BIGINT") },
    ]
    try withConnection { connection, address in
      try connection.migrate(with: [steps[0]])
      #expect(try connection.schemaVersion() == 1)
      try connection.migrate(with: steps)
      try connection.migrate(with: steps)
      #expect(try connection.schemaVersion() == 2)
      try connection.execute("INSERT INTO t (a, b) VALUES (1, 2)")
      let error = #expect(throws: SQLError.self) { try connection.migrate(with: [steps[0]]) }
      #expect(error?.kind == .newerSchema(found: 2, known: 1))
      let other = try PostgresConnection(address: address, component: "other")
      #expect(try other.schemaVersion() == 0)
      other.close()
    }
  }

  private static func name(of connection: PostgresConnection) throws -> String {
    let row = try connection.statement("SELECT current_database()")
    return try row.step() ? row.text(0) : ""
  }

  @Test("what a database has set changes no transaction, and an idle one ends after ten seconds")
  func settings() throws {
    try withConnection { connection, address in
      let name = try Self.name(of: connection)
      for (setting, value) in [
        ("default_transaction_isolation", "serializable"),
        ("idle_in_transaction_session_timeout", "0"),
      ] {
        try connection.execute("ALTER DATABASE \(name) SET \(setting) = '\(value)'")
      }
      let other = try PostgresConnection(address: address, component: "test")
      defer { other.close() }
      func shown(_ setting: String) throws -> String {
        let row = try other.statement("SHOW \(setting)")
        return try row.step() ? row.text(0) : ""
      }
      #expect(try shown("default_transaction_isolation") == "serializable")
      #expect(try other.writing { try shown("transaction_isolation") } == "read committed")
      #expect(try other.reading { try shown("transaction_isolation") } == "repeatable read")
      #expect(try shown("idle_in_transaction_session_timeout") == "10s")
    }
  }

  @Test("refuses a database that cannot keep every text")
  func encoding() throws {
    try withConnection { connection, address in
      let name = try Self.name(of: connection)
      try connection.execute(
        "CREATE DATABASE \(name)_latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
      let error = #expect(throws: SQLError.self) {
        try PostgresConnection(
          address: address.replacing(name, with: "\(name)_latin"), component: "test")
      }
      #expect(error?.kind == .cannotOpen)
      #expect(error?.message == "the database's encoding is LATIN1, not UTF8")
    }
  }

  @Test(
    "an address of which libpq would take the password for something else cannot be read",
    arguments: [
      ("postgresql://u:p%2Fw@db:5432,db2:5433/x", true), ("host=db port=5432 dbname=x", true),
      ("postgresql://u:Passw0rd/x@db/belfry", false), ("postgresql://u:p@ss@db/belfry", false),
      ("postgresql://u:%zz@db/belfry", false),
    ])
  func addresses(text: String, isReadable: Bool) {
    #expect(PostgresConnection.isAddress(text) == isReadable)
  }

  @Test("says so when there is no server, and when it goes away")
  func lostServer() throws {
    let missing = #expect(throws: SQLError.self) {
      try PostgresConnection(address: "host=/nowhere user=belfry", component: "test")
    }
    #expect(missing?.kind == .cannotOpen)
    let server = try PostgresServer()
    let connection = try PostgresConnection(address: server.address(), component: "test")
    server.stop()
    let error = #expect(throws: SQLError.self) { try connection.execute("SELECT 1") }
    #expect(error?.kind == .cannotOpen)
    connection.close()
  }
}
