import Foundation
import HubCore
import HubTesting
import NotificationHubs
import SQLDatabase
import StoreContract
import Testing

@testable import HubStorage

@Suite("Opening a store")
struct OpeningTests {
  @Test("brings back what another run has written")
  func reopens() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      let first = try await open(path)
      let hub = try await first.createHub(
        named: "hub1", registrationTTL: nil, policies: [], at: .now)
      try await first.put(SampleDevice("i-1", tags: ["red"]), hub: hub.id, at: .now)
      try await first.close()
      #expect(try directory.contents().sorted() == ["hub.sqlite", "hub.sqlite-mark"])
      let second = try await open(path)
      #expect(try await second.hub(named: "hub1")?.id == hub.id)
      let query = AudienceQuery(
        hub: hub.id, kind: .native(.apns), expression: .tag("red"), asOf: .now)
      #expect(try await second.count(query) == 1)
      try await second.close()
    }
  }

  @Test("makes files that only their owner reads, and leaves the mode of those there are")
  func modes() async throws {
    try await withDirectory { directory in
      func modes() throws -> Set<Int> {
        try Set(
          directory.contents().map { name in
            let path = directory.path(name)
            return try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
              ?? -1
          })
      }
      let path = directory.path("hub.sqlite")
      let store = try await open(path)
      _ = try await store.createHub(named: "hub1", registrationTTL: nil, policies: [], at: .now)
      #expect(try directory.contents().count == 4)
      #expect(try modes() == [0o600])
      try await store.close()
      try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
      let again = try await open(path)
      // The log's files follow the database, the mark stays its owner's.
      #expect(try modes() == [0o640, 0o600])
      try await again.close()
    }
  }

  @Test("refuses a file that is no database, and leaves it as it is")
  func notADatabase() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      let text = String(repeating: "no database ", count: 100)
      try text.write(toFile: path, atomically: true, encoding: .utf8)
      await #expect(throws: StoreError.corrupt("it is not a database of Belfry")) {
        _ = try await open(path)
      }
      #expect(try String(contentsOfFile: path, encoding: .utf8) == text)
      #expect(try directory.contents() == ["hub.sqlite"])
    }
  }

  @Test("refuses a database whose payloads cannot be cleared, and says what to do")
  func unreleased() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      // As the file had it before.
      try await make(
        path,
        changedBy: [
          "DROP TABLE notification", "CREATE TABLE notification (id INTEGER, body BLOB NOT NULL)",
        ])
      try await expectUnreleased { try await open(path).close() }
    }
  }

  /// Makes a database and changes its tables.
  private func make(_ path: String, changedBy statements: [String]) async throws {
    try await open(path).close()
    let connection = try SQLiteConnection(path: path)
    defer { connection.close() }
    for sql in statements { try connection.execute(sql) }
  }

  @Test("adds to a database from before the first release what its installations have gained since")
  func completed() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      try await make(path, changedBy: ["ALTER TABLE installation DROP COLUMN request"])
      let store = try await open(path)
      let hub = try await makeHub(store)
      try await store.put(SampleDevice("i-1"), hub: hub, at: .now)
      #expect(try await store.installation("i-1", hub: hub) != nil)
      try await store.close()
    }
  }

  @Test(
    "refuses a PostgreSQL database whose payloads cannot be cleared, and says what to do",
    .enabled(if: PostgresStores.areInstalled, "PostgreSQL's server is not installed"))
  func unreleasedPostgres() async throws {
    let address = try await PostgresStores.makeDatabase()
    try await PostgresStores.open(address).close()
    do {
      let connection = try PostgresConnection(address: address, component: "test")
      defer { connection.close() }
      try connection.execute("ALTER TABLE notification ALTER COLUMN body SET NOT NULL")
    }
    try await expectUnreleased { try await PostgresStores.open(address).close() }
  }

  private func expectUnreleased(_ open: () async throws -> Void) async throws {
    let error = await #expect(throws: StoreError.self) { try await open() }
    let text = try #require(error?.description)
    #expect(text.contains("before the first release") && text.contains("new database"), "\(text)")
  }

  @Test("refuses another program's database")
  func anotherPrograms() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      do {
        let connection = try SQLiteConnection(path: path)
        try connection.execute("CREATE TABLE theirs (a)")
      }
      await #expect(throws: StoreError.corrupt("it is not a database of Belfry")) {
        _ = try await open(path)
      }
    }
  }

  @Test("refuses a schema newer than this build, naming both versions")
  func newerSchema() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      try await open(path).close()
      do {
        let connection = try SQLiteConnection(path: path)
        try connection.setSchemaVersion(99)
      }
      await #expect(
        throws: StoreError.newerSchema(found: 99, known: Schema.migrations.last?.version ?? 0)
      ) {
        _ = try await open(path)
      }
    }
  }

  @Test("refuses a file whose secrets were sealed with another key")
  func wrongKey() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      try await open(path).close()
      await #expect(throws: StoreError.sealedSecret) {
        _ = try await SQLiteHubStore.open(at: path, sealing: TestSealing(keys: ["another"]))
      }
      try await open(path).close()
    }
  }

  @Test("says which file cannot be opened, and creates nothing")
  func missingDirectory() async throws {
    try await withDirectory { directory in
      await #expect(throws: StoreError.cannotOpen("unable to open database file")) {
        _ = try await open(directory.path("missing/hub.sqlite"))
      }
      try FileManager.default.createDirectory(
        atPath: directory.path("a directory"), withIntermediateDirectories: false)
      await #expect(throws: StoreError.cannotOpen("unable to open database file")) {
        _ = try await open(directory.path("a directory"))
      }
      #expect(try directory.contents() == ["a directory"])
    }
  }

  @Test("waits for another process's lock, then says so")
  func locked() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      try await open(path).close()
      var options = SQLiteConnection.Options()
      options.lockTimeout = 0
      let other = try SQLiteConnection(path: path, options: options)
      try other.execute("BEGIN IMMEDIATE")
      var impatient = SQLiteHubStore.Options()
      impatient.lockTimeout = 1
      await #expect(throws: StoreError.locked) {
        _ = try await SQLiteHubStore.open(at: path, sealing: TestSealing(), options: impatient)
      }
      other.rollBack()
    }
  }

  @Test("leaves nothing behind when the disk is full")
  func fullDisk() async throws {
    try await withDirectory { directory in
      var options = SQLiteHubStore.Options()
      options.maximumPages = 4
      await #expect(throws: StoreError.diskFull) {
        _ = try await SQLiteHubStore.open(
          at: directory.path("hub.sqlite"), sealing: TestSealing(), options: options)
      }
      let left = try directory.contents()
      #expect(left == [])
    }
  }

  @Test("keeps no secret in the clear")
  func secretsAreSealed() async throws {
    try await withDirectory { directory in
      let store = try await open(directory.path("hub.sqlite"))
      let policy = AccessPolicy(
        name: "one", rights: .all, primaryKey: "VerySecretPrimary",
        secondaryKey: "VerySecretSecondary", createdAt: .now, modifiedAt: .now)
      let hub = try await store.createHub(
        named: "hub1", registrationTTL: nil, policies: [policy], at: .now)
      try await store.putCredential(
        PushCredential(platform: .apns, properties: ["Token": "VerySecretToken"], modifiedAt: .now),
        hub: hub.id)
      try await store.close()
      for name in try directory.contents() {
        let bytes = try Data(contentsOf: directory.url.appendingPathComponent(name))
        #expect(bytes.range(of: Data("VerySecret".utf8)) == nil, "in \(name)")
      }
    }
  }
}

private func open(_ path: String) async throws -> SQLiteHubStore {
  try await SQLiteHubStore.open(at: path, sealing: TestSealing())
}

func withDirectory(_ body: (TemporaryDirectory) async throws -> Void) async throws {
  let directory = try TemporaryDirectory()
  defer { directory.remove() }
  try await body(directory)
}

extension TemporaryDirectory {
  func contents() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: url.path).sorted()
  }
}
