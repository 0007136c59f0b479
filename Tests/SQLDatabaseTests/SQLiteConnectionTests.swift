import Foundation
import Testing

@testable import SQLDatabase

@Suite("An SQLite connection")
struct SQLiteConnectionTests {
  @Test("gives back what was bound", arguments: [Int64.min, -1, 0, 1, .max])
  func integersRoundTrip(value: Int64) throws {
    try withConnection { connection in
      let row = try connection.statement("SELECT ?1, ?2, ?3")
      try row.bind(value, at: 1)
      try row.bind(Int64?.none, at: 2)
      try row.bind(value == 0, at: 3)
      try requireRow(row)
      #expect(row.integer(0) == value)
      #expect(row.optionalInteger(1) == nil)
      #expect(row.integer(2) == (value == 0 ? 1 : 0))
      let isAnotherRow = try row.step()
      #expect(!isAnotherRow)
    }
  }

  @Test(
    "keeps texts and bytes as they are, empty ones too",
    arguments: ["", "a", "fifteen letters", "more than sixteen letters", "nul \0 inside", "☃🔔"])
  func textsRoundTrip(text: String) throws {
    try withConnection { connection in
      let row = try connection.statement("SELECT ?1, ?2, typeof(?1), typeof(?2), ?3")
      try row.bind(text, at: 1)
      try row.bind(Array(text.utf8), at: 2)
      try requireRow(row)
      #expect(row.text(0) == text)
      #expect(row.bytes(1) == Array(text.utf8))
      #expect(row.text(2) == "text")
      #expect(row.text(3) == "blob")
      #expect(row.optionalText(4) == nil)
      #expect(row.optionalBytes(4) == nil)
    }
  }

  @Test("lends a statement again with its parameters forgotten")
  func statementsAreReused() throws {
    try withConnection { connection in
      let sql = "SELECT ?1"
      do {
        let row = try connection.statement(sql)
        try row.bind(Int64(7), at: 1)
        try requireRow(row)
      }
      let row = try connection.statement(sql)
      try requireRow(row)
      let isForgotten = row.isNull(0)
      #expect(isForgotten)
    }
  }

  @Test("forgets each parameter that the next use does not bind, however many there are")
  func parametersAreForgotten() throws {
    try withConnection { connection in
      for count in [3, 62, 63, 64, 65, 100] {
        let sql = "SELECT " + (1...count).map { "?\($0)" }.joined(separator: ", ")
        for (round, bound) in [1...count, 2...2, 1...1, count...count, 2...count].enumerated() {
          let row = try connection.statement(sql)
          for index in bound {
            try row.bind("\(round) \(index)", at: Int32(index))
          }
          // A loan without a run changes nothing for the next one.
          if round == 1 { continue }
          try requireRow(row)
          for index in 1...count {
            let text = row.optionalText(Int32(index - 1))
            #expect(text == (bound.contains(index) ? "\(round) \(index)" : nil))
          }
        }
        do {
          let row = try connection.statement(sql)
          try row.bind([UInt8](repeating: 7, count: 10_000), at: 1)
          try requireRow(row)
        }
        let row = try connection.statement(sql)
        try requireRow(row)
        #expect(row.isNull(0) && row.isNull(Int32(count - 1)))
      }
    }
  }

  @Test("gives back texts and bytes of any length, in many runs of one loan")
  func boundTexts() throws {
    try withConnection { connection in
      let row = try connection.statement("SELECT ?1, ?2, ?3, ?4")
      try row.bind("stays", at: 1)
      // Together more than a statement keeps by itself.
      for length in [0, 1, 100, 500, 600, 1_024, 1_025, 20_000, 3] {
        let text = String(repeating: "é", count: length)
        let bytes = [UInt8](repeating: UInt8(length % 251), count: length)
        try row.bind(text, at: 2)
        try row.bind(bytes, at: 3)
        try row.bind("replaced", at: 4)
        try row.bind("\(length)", at: 4)
        try requireRow(row)
        let found = (row.text(0), row.text(1), row.bytes(2), row.text(3))
        #expect(found.0 == "stays" && found.1 == text && found.2 == bytes && found.3 == "\(length)")
        row.reset()
      }
    }
  }

  @Test("finds a statement by its text, wherever that lies")
  func statementsByText() throws {
    try withConnection { connection in
      for round in 0..<3 {
        for number in 0..<600 {
          // Freed texts leave their addresses to others.
          let row = try connection.statement("SELECT \(number), 'a text that is long enough'")
          try requireRow(row)
          #expect(row.integer(0) == Int64(number), "round \(round)")
        }
      }
    }
  }

  @Test("lends one statement twice at the same time")
  func statementsNest() throws {
    try withConnection { connection in
      try connection.execute("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)")
      var pairs = 0
      let outer = try connection.statement("SELECT a FROM t")
      while try outer.step() {
        let inner = try connection.statement("SELECT a FROM t")
        while try inner.step() { pairs += 1 }
      }
      #expect(pairs == 9)
    }
  }

  @Test("undoes a transaction whose work throws")
  func failedTransactionIsUndone() throws {
    struct Stop: Error {}
    try withConnection { connection in
      try connection.execute("CREATE TABLE t (a)")
      #expect(throws: Stop.self) {
        try connection.writing {
          try connection.execute("INSERT INTO t VALUES (1)")
          throw Stop()
        }
      }
      #expect(!connection.isInTransaction)
      let row = try connection.statement("SELECT COUNT(*) FROM t")
      try requireRow(row)
      #expect(row.integer(0) == 0)
    }
  }

  @Test("names a broken constraint without the value")
  func constraintIsNamed() throws {
    try withConnection { connection in
      try connection.execute("CREATE TABLE t (a TEXT UNIQUE); INSERT INTO t VALUES ('secret')")
      let error = #expect(throws: SQLError.self) {
        let row = try connection.statement("INSERT INTO t VALUES (?1)")
        try row.bind("secret", at: 1)
        try row.run()
      }
      #expect(error?.kind == .constraint)
      #expect(error?.code == 2067)  // SQLITE_CONSTRAINT_UNIQUE
      #expect(error?.description.contains("secret") == false)
    }
  }

  @Test(
    "tells a lack of memory as that, also where SQLite calls it an error of the disk",
    arguments: [7, 10 | 12 << 8] as [Int32])
  func outOfMemory(code: Int32) {
    let error = SQLError(sqlite: code, message: "disk I/O error")
    #expect(error.kind == .inputOutput && error.code == code)
    #expect(error.message.contains("no more memory"))
  }

  @Test("says that the disk is full when the database may not grow")
  func fullDiskIsTold() throws {
    var options = SQLiteConnection.Options()
    options.maximumPages = 8
    try withConnection(options: options) { connection in
      try connection.execute("CREATE TABLE t (a)")
      let error = #expect(throws: SQLError.self) {
        let row = try connection.statement("INSERT INTO t VALUES (zeroblob(100000))")
        try row.run()
      }
      #expect(error?.kind == .full)
    }
  }

  @Test("says that another connection holds the lock")
  func lockIsTold() throws {
    try withDirectory { directory in
      let path = directory.appendingPathComponent("a.sqlite").path
      var options = SQLiteConnection.Options()
      options.lockTimeout = 0
      let first = try SQLiteConnection(path: path, options: options)
      let second = try SQLiteConnection(path: path, options: options)
      try first.execute(first.dialect.beginWriting)
      let error = #expect(throws: SQLError.self) {
        try second.execute(second.dialect.beginWriting)
      }
      #expect(error?.kind == .locked)
    }
  }

  @Test("refuses a file that is no database")
  func textFileIsRefused() throws {
    try withDirectory { directory in
      let url = directory.appendingPathComponent("a.sqlite")
      let text = String(repeating: "This is not a database.\n", count: 100)
      try text.write(to: url, atomically: true, encoding: .utf8)
      let error = #expect(throws: SQLError.self) { try SQLiteConnection(path: url.path) }
      #expect(error?.kind == .notADatabase)
      #expect(try String(contentsOf: url, encoding: .utf8) == text)
    }
  }

  @Test("refuses another program's database and leaves it as it is")
  func foreignDatabaseIsRefused() throws {
    try withDirectory { directory in
      let url = directory.appendingPathComponent("a.sqlite")
      do {
        let theirs = try SQLiteConnection(path: url.path)
        try theirs.execute("CREATE TABLE theirs (a)")
      }
      let before = try Data(contentsOf: url)
      var options = SQLiteConnection.Options()
      options.applicationID = 42
      let error = #expect(throws: SQLError.self) {
        try SQLiteConnection(path: url.path, options: options)
      }
      #expect(error?.kind == .notADatabase)
      #expect(try Data(contentsOf: url) == before)
    }
  }

  @Test("cannot open what lies in a directory that does not exist")
  func missingDirectoryIsTold() throws {
    try withDirectory { directory in
      let path = directory.appendingPathComponent("missing/a.sqlite").path
      let error = #expect(throws: SQLError.self) { try SQLiteConnection(path: path) }
      #expect(error?.kind == .cannotOpen)
    }
  }
}

func withConnection(
  options: SQLiteConnection.Options = .init(), _ body: (SQLiteConnection) throws -> Void
) throws {
  try withDirectory { directory in
    let path = directory.appendingPathComponent("test.sqlite").path
    try body(try SQLiteConnection(path: path, options: options))
  }
}

func withDirectory(_ body: (URL) throws -> Void) throws {
  let directory = FileManager.default.temporaryDirectory
    .appendingPathComponent("belfry-sql-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: directory) }
  try body(directory)
}

/// `#expect` cannot look into what is not copyable.
func requireRow(_ row: borrowing Statement) throws {
  let isRow = try row.step()
  try #require(isRow)
}
