import SQLDatabase
import Testing

@Suite("Migrations")
struct MigrationTests {
  private static let steps = [
    Migration(version: 1) { try $0.execute("CREATE TABLE t (a)") },
    Migration(version: 2) { try $0.execute("ALTER TABLE t ADD COLUMN b") },
  ]

  @Test("are applied in order, each once")
  func appliedOnce() throws {
    try withConnection { connection in
      try connection.migrate(with: [Self.steps[0]])
      #expect(try connection.schemaVersion() == 1)
      try connection.migrate(with: Self.steps)
      try connection.migrate(with: Self.steps)
      #expect(try connection.schemaVersion() == 2)
      try connection.execute("INSERT INTO t (a, b) VALUES (1, 2)")
    }
  }

  @Test("leave a newer schema alone")
  func newerSchemaIsRefused() throws {
    try withConnection { connection in
      try connection.migrate(with: Self.steps)
      let error = #expect(throws: SQLError.self) {
        try connection.migrate(with: [Self.steps[0]])
      }
      #expect(error?.kind == .newerSchema(found: 2, known: 1))
      #expect(try connection.schemaVersion() == 2)
    }
  }

  @Test("are undone as a whole when a step fails")
  func failedStepIsUndone() throws {
    struct Stop: Error {}
    try withConnection { connection in
      let broken = Migration(version: 1) {
        try $0.execute("CREATE TABLE t (a)")
        throw Stop()
      }
      #expect(throws: Stop.self) { try connection.migrate(with: [broken]) }
      #expect(try connection.schemaVersion() == 0)
      try connection.migrate(with: Self.steps)
    }
  }
}
