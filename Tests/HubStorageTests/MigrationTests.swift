import Foundation
import HubCore
import HubTesting
import NotificationHubs
import SQLDatabase
import StoreContract
import Testing

@testable import HubStorage

/// The pattern for the steps of released versions: a database as the version before left it, the
/// step, what must be there afterwards, and the way back.
@Suite("Databases of older versions")
struct MigrationTests {
  static let now = Date(timeIntervalSince1970: 1_893_456_000)

  private static let released = Schema.migrations.count

  /// Steps of the next versions: a table that is filled from another one, a column with an index, a
  /// column with a default.
  private static let laterSteps = [
    Migration(version: released + 1) { connection in
      for sql in [
        """
        CREATE TABLE hub_word (
          hub INTEGER NOT NULL, word TEXT NOT NULL, PRIMARY KEY (hub, word)) WITHOUT ROWID
        """,
        "INSERT INTO hub_word SELECT id, user_metadata FROM hub WHERE user_metadata IS NOT NULL",
      ] {
        try connection.execute(sql)
      }
    },
    Migration(version: released + 2) { connection in
      try connection.execute("ALTER TABLE registration ADD COLUMN is_quiet INTEGER")
      try connection.execute(
        "CREATE INDEX registration_quiet ON registration (hub) WHERE is_quiet = 1")
    },
    Migration(version: released + 3) { connection in
      try connection.execute("ALTER TABLE template ADD COLUMN uses INTEGER NOT NULL DEFAULT 0")
    },
  ]

  /// Opens a database as the build does that knows some of the later steps.
  private func open(
    _ path: String, steps: Int, _ change: (inout SQLiteHubStore.Options) -> Void = { _ in }
  ) async throws -> SQLiteHubStore {
    var options = SQLiteHubStore.Options()
    options.laterSteps = Array(Self.laterSteps.prefix(steps))
    change(&options)
    return try await SQLiteHubStore.open(at: path, sealing: TestSealing(), options: options)
  }

  /// A database with a hub, a device with a tag and a template, and a notification with a retry, as
  /// the build left it that knew some of the later steps.
  private func makeDatabase(at path: String, steps: Int = 0) async throws {
    let store = try await open(path, steps: 0)
    let hub = try await store.createHub(
      named: "Hub1", HubContents(userMetadata: "word"), at: Self.now)
    try await store.put(
      SampleDevice(
        "i-1", handle: "AA", tags: ["Red"],
        templates: ["main": PushTemplate(body: #"{"aps":{}}"#)]),
      hub: hub.id, at: Self.now)
    let id = NotificationID(rawValue: "n-1")
    try await store.accept(
      NotificationRecord(
        id: id, hub: hub.id,
        request: NotificationRequest(format: .native(.apns), body: Array("{}".utf8)),
        state: .enqueued, enqueuedAt: Self.now))
    var page = Checkpoint(notification: id, hub: hub.id, at: Self.now)
    page.retries = [Checkpoint.Retry(registration: 1, platform: .apns, attempts: 3, due: Self.now)]
    try await store.checkpoint(page)
    try await store.close()
    let connection = try SQLiteConnection(path: path)
    defer { connection.close() }
    try connection.migrate(with: Schema.migrations + Self.laterSteps.prefix(steps))
  }

  private func version(_ path: String) throws -> Int {
    let connection = try SQLiteConnection(path: path)
    defer { connection.close() }
    return try connection.schemaVersion() - Self.released
  }

  private func remove(_ path: String) {
    for suffix in ["", "-wal", "-shm", "-mark"] {
      try? FileManager.default.removeItem(atPath: path + suffix)
    }
  }

  /// All that ``makeDatabase(at:steps:)`` has written is there, and more can be written.
  private func expectContents(of store: SQLiteHubStore) async throws {
    let hub = try #require(try await store.hub(named: "hub1"))
    #expect(try await store.installation("i-1", hub: hub.id)?.tags == ["Red"])
    let query = AudienceQuery(
      hub: hub.id, kind: .native(.apns), expression: .tag("red"), asOf: Self.now)
    #expect(try await store.targets(query, after: 0, limit: 10).handleTexts == ["AA"])
    let device = try RegistrationFilter(parsing: "DeviceToken eq 'AA'")
    for list in [RegistrationQuery.all, .tag("red"), .device(device)] {
      let found = try await store.registrations(
        list, hub: hub.id, asOf: Self.now, after: 0, limit: 10
      ).registrations
      #expect(
        found.prefix(2).map(\.draft.tags.first?.rawValue)
          == Array(repeating: "$InstallationId:{i-1}", count: 2))
    }
    let lane = LaneKey(hub: hub.id, platform: .apns)
    let due = try await store.dueRetries(of: lane, asOf: Self.now, limit: 10)
    #expect(due.map(\.attempts) == [[1: 3]])
    let made = try await store.createRegistration(
      RegistrationDraft(kind: .native, platform: .apns, channel: .handle("BB")), hub: hub.id,
      at: Self.now)
    #expect(made.number > 2)
    #expect(try await store.registration(made.id, hub: hub.id, asOf: Self.now) == made)
  }

  @Test("are brought up to date with all they hold, and refused by the version before")
  func forth() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let path = directory.path("hub.sqlite")
    try await makeDatabase(at: path)
    for _ in 1...2 {
      let store = try await open(path, steps: 1)
      try await expectContents(of: store)
      try await store.close()
    }
    let connection = try SQLiteConnection(path: path)
    defer { connection.close() }
    let row = try connection.statement("SELECT word FROM hub_word")
    #expect(try row.step() && row.text(0) == "word")
    let refusal = StoreError.newerSchema(found: Self.released + 1, known: Self.released)
    await #expect(throws: refusal) { try await open(path, steps: 0) }
    #expect(throws: refusal) { try StoreFile(path: path) }
    #expect(try version(path) == 1)
  }

  @Test("a database is kept as it was before it is brought up to date, until the next time")
  func keepsCopy() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let (path, newest) = (directory.path("hub.sqlite"), Self.released + 1)
    try await makeDatabase(at: path)
    let others = ["hub.sqlite.before-0", "hub.sqlite.before-\(newest + 1)", "hub.sqlite.before-x"]
    for name in others { try Data().write(to: URL(fileURLWithPath: directory.path(name))) }
    let store = try await open(path, steps: 1)
    let copy = path + ".before-\(newest)"
    #expect(store.upgrade == StoreUpgrade(from: Self.released, to: newest, copy: copy))
    let hub = try #require(try await store.hub(named: "hub1"))
    try await store.put(SampleDevice("i-2"), hub: hub.id, at: Self.now)
    try await store.close()
    #expect(try version(copy) == 0)
    #expect(
      try FileManager.default.attributesOfItem(atPath: copy)[.posixPermissions] as? Int == 0o600)
    #expect(!FileManager.default.fileExists(atPath: directory.path(others[0])))
    for name in others[1...] {
      #expect(FileManager.default.fileExists(atPath: directory.path(name)))
    }
    let again = try await open(path, steps: 1)
    #expect(again.upgrade == nil)
    try await again.close()
    // The way back: the copy in the place of the database.
    remove(path)
    try FileManager.default.moveItem(atPath: copy, toPath: path)
    let back = try await open(path, steps: 0)
    #expect(try await back.installations(hub: hub.id).map(\.installationID) == ["i-1"])
    try await expectContents(of: back)
    try await back.close()
  }

  @Test(
    "an upgrade without room for a copy says so and changes nothing; it can be done without one")
  func noRoom() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let path = directory.path("hub.sqlite")
    try await makeDatabase(at: path)
    do {
      _ = try await open(path, steps: 1) { $0.availableBytes = 10_000 }
      Issue.record("it was brought up to date")
    } catch StoreError.cannotOpen(let text) {
      #expect(text.contains("nothing was changed") && text.contains("--upgrade-copy off"))
    }
    #expect(try version(path) == 0)
    #expect(try !directory.contents().contains { $0.contains("before") })
    let store = try await open(path, steps: 1) {
      $0.availableBytes = 10_000
      $0.keepsUpgradeCopy = false
    }
    #expect(
      store.upgrade == StoreUpgrade(from: Self.released, to: Self.released + 1, copy: nil))
    try await store.close()
    #expect(try !directory.contents().contains { $0.contains("before") })
  }

  @Test("an upgrade that was killed between two steps keeps the copy from before its first")
  func interrupted() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let path = directory.path("hub.sqlite")
    try await makeDatabase(at: path, steps: 2)
    let copy = path + ".before-\(Self.released + 3)"
    try await makeDatabase(at: copy)
    try await open(path, steps: 3).close()
    #expect(try version(copy) == 0)
    // One that is left from an upgrade that was undone is of the version that is there again:
    // replaced.
    remove(path)
    try await makeDatabase(at: path)
    let connection = try SQLiteConnection(path: path)
    try connection.execute("DELETE FROM installation")
    connection.close()
    try await open(path, steps: 3).close()
    #expect(try version(copy) == 0)
    #expect(
      try StoreFile(path: copy).connection.numbers("SELECT COUNT(*) FROM installation") == [0])
  }

  @Test("a command does not bring a database up to date under a server of its version")
  func underAServer() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let path = directory.path("hub.sqlite")
    try await makeDatabase(at: path)
    let error = await #expect(throws: StoreError.self) {
      _ = try await open(path, steps: 1) { $0.mayMigrate = false }
    }
    #expect(error?.description.contains("restart the server first") == true)
    #expect(try version(path) == 0)
    try await open(path, steps: 1).close()
    try await open(path, steps: 1) { $0.mayMigrate = false }.close()
  }
}
