import HubTesting
import SQLDatabase
import Testing

@Suite(
  "A batch for PostgreSQL",
  .enabled(if: PostgresServer.isInstalled, "PostgreSQL's server is not installed"))
struct PostgresBatchTests {
  private func withConnection(_ body: (PostgresConnection) throws -> Void) throws {
    let connection = try PostgresConnection(
      address: try PostgresServer.shared().makeDatabase(), component: "test")
    defer { connection.close() }
    try body(connection)
  }

  @Test("travels as arrays and comes back as rows, nulls and all")
  func arrays() throws {
    try withConnection { connection in
      let numbers: [Int64?] = [.min, nil, 0, .max]
      let small: [Int64?] = [-32_768, 7, nil, 99_999]
      let texts: [String?] = ["", "it's {\"x\"}, \\ ☃", nil, "NULL"]
      let bytes: [[UInt8]?] = [[], [0, 255], nil, [1]]
      let fractions: [Double?] = [-2.5, nil, 0, 1e300]
      let row = try connection.statement(
        """
        SELECT * FROM unnest(?1::int8[], ?2::int2[], ?3::text[], ?4::bytea[], ?5::float8[])
        """)
      try row.bind(PostgresArray.int8(numbers), at: 1)
      try row.bind(PostgresArray.int2(small), at: 2)
      try row.bind(PostgresArray.text(texts), at: 3)
      try row.bind(PostgresArray.bytes(bytes), at: 4)
      try row.bind(PostgresArray.float8(fractions), at: 5)
      for index in 0..<4 {
        let isThere = try row.step()
        #expect(isThere)
        #expect(row.optionalInteger(0) == numbers[index])
        #expect(row.optionalInteger(1) == (index == 3 ? 32_767 : small[index]))
        #expect(row.optionalText(2) == texts[index])
        #expect(row.optionalBytes(3) == bytes[index])
        #expect((row.isNull(4) ? nil : row.double(4)) == fractions[index])
      }
      let isAnother = try row.step()
      #expect(!isAnother)
    }
  }

  @Test("may be empty, and reads arrays of texts back")
  func emptyAndTexts() throws {
    try withConnection { connection in
      for texts in [[], ["a"], ["", "x,y", "\"q\" \\ {b}", "☃", "NULL"]] as [[String]] {
        let row = try connection.statement("SELECT ?1::text[], ?2::text::text[]")
        try row.bind(PostgresArray.text(texts), at: 1)
        try row.bind(PostgresArray.literal(texts), at: 2)
        let isThere = try row.step()
        #expect(isThere)
        #expect(row.withBytes(0) { PostgresArray.texts(in: $0) } == texts)
        #expect(row.withBytes(1) { PostgresArray.texts(in: $0) } == texts)
      }
      #expect([1, 2, 3].withUnsafeBytes { PostgresArray.texts(in: $0) } == nil)
    }
  }

  @Test("is sent in one go, statements that are new in the middle of it too")
  func pipeline() throws {
    try withConnection { connection in
      try connection.execute("CREATE TABLE t (a BIGINT UNIQUE)")
      try connection.writing {
        try connection.pipelined {
          for value in 0..<500 {
            // Each text is a statement of its own.
            let row = try connection.statement("INSERT INTO t VALUES (?1 + \(value % 7) * 0)")
            try row.bind(Int64(value), at: 1)
            try row.run()
          }
        }
      }
      let count = try connection.statement("SELECT COUNT(*) FROM t")
      _ = try count.step()
      #expect(count.integer(0) == 500)
    }
  }

  @Test("gives its rows at the end to the statements that are still on loan")
  func pipelinedRows() throws {
    try withConnection { connection in
      let first = try connection.statement("SELECT a FROM generate_series(1, ?1::int8) AS a")
      let empty = try connection.statement("SELECT 1 WHERE ?1::int8 = 0")
      try connection.pipelined {
        try first.bind(3 as Int64, at: 1)
        try first.run()
        // Those of a statement that is given back are dropped, also for the next one who borrows it.
        for value in [5, 6] as [Int64] {
          let other = try connection.statement("SELECT ?1::int8")
          try other.bind(value, at: 1)
          try other.run()
        }
        try empty.bind(1 as Int64, at: 1)
        try empty.run()
      }
      let other = try connection.statement("SELECT ?1::int8")
      try other.bind(7 as Int64, at: 1)
      var found: [Int64] = []
      while try first.step() { found.append(first.integer(0)) }
      while try other.step() { found.append(other.integer(0)) }
      while try empty.step() { found.append(empty.integer(0)) }
      #expect(found == [1, 2, 3, 7])
      // Run again, one by one.
      first.reset()
      try first.bind(1 as Int64, at: 1)
      while try first.step() { found.append(first.integer(0)) }
      #expect(found == [1, 2, 3, 7, 1])
    }
  }

  @Test("has no rows where a statement has failed")
  func failedPipelineRows() throws {
    try withConnection { connection in
      let late = try connection.statement("SELECT 1")
      let error = #expect(throws: SQLError.self) {
        try connection.pipelined {
          let failing = try connection.statement("SELECT 1 / ?1::int8")
          try failing.bind(0 as Int64, at: 1)
          try failing.run()
          try late.run()
        }
      }
      #expect(error?.message.contains("division by zero") == true)
      // It runs now.
      let isThere = try late.step()
      #expect(isThere && late.integer(0) == 1)
    }
  }

  @Test("fails as a whole where one of its statements does, and leaves the connection usable")
  func failingPipeline() throws {
    try withConnection { connection in
      try connection.execute("CREATE TABLE t (a BIGINT UNIQUE)")
      let error = #expect(throws: SQLError.self) {
        try connection.writing {
          try connection.pipelined {
            for value in [1, 2, 1, 3] as [Int64] {
              let row = try connection.statement("INSERT INTO t VALUES (?1)")
              try row.bind(value, at: 1)
              try row.run()
            }
          }
        }
      }
      #expect(error?.kind == .constraint)
      #expect(!connection.isInTransaction)
      let count = try connection.statement("SELECT COUNT(*) FROM t")
      _ = try count.step()
      #expect(count.integer(0) == 0)
    }
  }

  @Test("of texts without end only some stay prepared on the server")
  func statementLimit() throws {
    try withConnection { connection in
      for number in 0..<450 {
        let row = try connection.statement("SELECT \(number)")
        _ = try row.step()
        #expect(row.integer(0) == number)
      }
      let row = try connection.statement("SELECT COUNT(*) FROM pg_prepared_statements")
      _ = try row.step()
      #expect(row.integer(0) <= 201)
    }
  }
}
