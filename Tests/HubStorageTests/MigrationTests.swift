import Foundation
import HubCore
import HubTesting
import NotificationHubs
import SQLDatabase
import StoreContract
import Testing

@testable import HubStorage

@Suite("Databases of older versions")
struct MigrationTests {
  static let now = Date(timeIntervalSince1970: 1_893_456_000)

  /// A database of a version as that version left it: a hub, a device with a tag and a template.
  private func makeDatabase(at path: String, version: Int) throws {
    var options = SQLiteConnection.Options()
    options.applicationID = Schema.applicationID
    let connection = try SQLiteConnection(path: path, options: options)
    defer { connection.close() }
    // Version 18 has another form of what is written below.
    try connection.migrate(with: Schema.migrations.filter { $0.version <= min(version, 17) })
    defer { try? connection.migrate(with: Schema.migrations.filter { $0.version <= version }) }
    try connection.writing {
      try connection.execute(
        """
        UPDATE store_state SET last_hub = 1, last_installation = 1, last_registration = 2,
          last_tag = 3, last_template = 1;
        INSERT INTO hub (id, name, folded_name, registration_ttl, is_disabled, created_at)
          VALUES (1, 'Hub1', 'hub1', NULL, 0, 0);
        INSERT INTO template (id, hub, hash, body, headers, expiry)
          VALUES (1, 1, 0, '{"aps":{}}', x'00', NULL);
        INSERT INTO tag VALUES (1, 1, 0, 'red'), (2, 1, 1, 'apns'), (3, 1, 2, '');
        INSERT INTO registration_tag VALUES (1, 1), (2, 1), (1, 2), (3, 2);
        """)
      var installation = Self.device.installation
      installation.templates["main"]?.tags = []
      try connection.execute(
        """
        UPDATE store_state SET last_notification = 1;
        INSERT INTO notification (id, hub, public_id, format, body, headers, state, enqueued_at,
          position, is_audience_read) VALUES (1, 1, 'n-1', 0, x'7b7d', x'00', 'Processing', 0, 2, 1);
        """)
      let lane = version < 10 ? ("", "") : (", hub, platform", ", 1, 1")
      try connection.execute(
        """
        INSERT INTO retry (notification, registration, attempts, due\(lane.0))
          VALUES (1, 2, 3, 7000\(lane.1))
        """)
      let row = try connection.statement(
        """
        INSERT INTO installation (id, hub, id_hash, public_id, user_hash, fingerprint, document)
        VALUES (1, 1, ?1, 'i-1', NULL, 0, ?2)
        """)
      try row.bind(PreparedInstallation.hash("i-1"), at: 1)
      try row.bind(InstallationDocument.encode(installation) { _ in 1 }, at: 2)
      try row.run()
      for (number, template, name) in [(Int64(1), Int64?.none, String?.none), (2, 1, "main")] {
        let row = try connection.statement(
          """
          INSERT INTO registration (id, hub, installation, platform, template, name, handle,
            handle_hash, tags, etag, confirmed_at) VALUES (?1, 1, 1, 1, ?2, ?3, 'AA', ?4, ?5, 3, 7)
          """)
        try row.bind(number, at: 1)
        try row.bind(template, at: 2)
        try row.bind(name, at: 3)
        try row.bind(PreparedRegistration.hash(of: "AA", platform: 1, hub: 1), at: 4)
        try row.bind([2, 1, UInt8(number) + 1], at: 5)
        try row.run()
      }
    }
  }

  private func schema(_ path: String) throws -> Int { try StoreFile(path: path).schema }

  @Test("a database is kept as it was before it is brought up to date, until the next time")
  func keepsCopy() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let (path, newest) = (directory.path("hub.sqlite"), StoreFile.newestSchema)
    try makeDatabase(at: path, version: newest - 1)
    let others = ["hub.sqlite.before-7", "hub.sqlite.before-\(newest + 1)", "hub.sqlite.before-x"]
    for name in others { try Data().write(to: URL(fileURLWithPath: directory.path(name))) }
    let store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
    let copy = path + ".before-\(newest)"
    #expect(store.upgrade == StoreUpgrade(from: newest - 1, to: newest, copy: copy))
    try await store.put(SampleDevice("i-2"), hub: 1, at: Self.now)
    try await store.close()
    #expect(try schema(copy) == newest - 1)
    #expect(
      try FileManager.default.attributesOfItem(atPath: copy)[.posixPermissions] as? Int == 0o600)
    #expect(!FileManager.default.fileExists(atPath: directory.path(others[0])))
    for name in others[1...] {
      #expect(FileManager.default.fileExists(atPath: directory.path(name)))
    }
    let again = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
    #expect(again.upgrade == nil)
    try await again.close()
    // The way back: the copy in the place of the database.
    for suffix in ["", "-wal", "-shm", "-mark"] {
      try? FileManager.default.removeItem(atPath: path + suffix)
    }
    try FileManager.default.moveItem(atPath: copy, toPath: path)
    let back = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
    #expect(try await back.installations(hub: 1).map(\.installationID) == ["i-1"])
    try await back.close()
  }

  @Test(
    "an upgrade without room for a copy says so and changes nothing; it can be done without one")
  func noRoom() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let (path, newest) = (directory.path("hub.sqlite"), StoreFile.newestSchema)
    try makeDatabase(at: path, version: newest - 1)
    var options = SQLiteHubStore.Options()
    options.availableBytes = 10_000
    do {
      _ = try await SQLiteHubStore.open(at: path, sealing: TestSealing(), options: options)
      Issue.record("it was brought up to date")
    } catch StoreError.cannotOpen(let text) {
      #expect(text.contains("nothing was changed") && text.contains("--upgrade-copy off"))
    }
    #expect(try schema(path) == newest - 1)
    #expect(try !directory.contents().contains { $0.contains("before") })
    options.keepsUpgradeCopy = false
    let store = try await SQLiteHubStore.open(at: path, sealing: TestSealing(), options: options)
    #expect(store.upgrade == StoreUpgrade(from: newest - 1, to: newest, copy: nil))
    try await store.close()
    #expect(try !directory.contents().contains { $0.contains("before") })
  }

  @Test("an upgrade that was killed between two steps keeps the copy from before its first")
  func interrupted() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let (path, newest) = (directory.path("hub.sqlite"), StoreFile.newestSchema)
    try makeDatabase(at: path, version: newest - 1)
    let copy = path + ".before-\(newest)"
    try makeDatabase(at: copy, version: newest - 3)
    try await SQLiteHubStore.open(at: path, sealing: TestSealing()).close()
    #expect(try schema(copy) == newest - 3)
    // One that is left from an upgrade that was undone is of the version that is there again:
    // replaced.
    for suffix in ["", "-wal", "-shm", "-mark"] {
      try? FileManager.default.removeItem(atPath: path + suffix)
    }
    try makeDatabase(at: path, version: newest - 3)
    try await SQLiteHubStore.open(at: path, sealing: TestSealing()).close()
    #expect(try schema(copy) == newest - 3)
    #expect(
      try StoreFile(path: copy).connection.numbers("SELECT COUNT(*) FROM installation") == [1])
  }

  @Test("registrations of an older version are counted", arguments: [1, 17, 18])
  func registrationTotals(version: Int) async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let path = directory.path("hub.sqlite")
    try makeDatabase(at: path, version: version)
    let store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
    func registrations() async throws -> [PushPlatform: Int]? {
      try await store.noteRegistrations(at: Self.now)
      let span = StatisticSpan(
        period: .hour, first: Int64(Self.now.timeIntervalSince1970) / 3_600, step: 1, count: 1)
      return try await store.statistics(span, hub: 1).first?.registrations
    }
    #expect(try await registrations() == [.apns: 2])
    try await store.put(SampleDevice("i-2"), hub: 1, at: Self.now)
    #expect(try await registrations() == [.apns: 3])
    try await store.close()
  }

  @Test("templates of an older version are counted by name", arguments: [1, 17, 18, 23])
  func names(version: Int) async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let path = directory.path("hub.sqlite")
    try makeDatabase(at: path, version: version)
    let store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
    func counts() async throws -> [TemplateKey: Int] {
      try await store.counts(of: nil, hub: 1, asOf: Self.now).templates
    }
    let main = TemplateKey(platform: .apns, name: "main")
    #expect(try await counts() == [main: 1])
    try await store.put(
      SampleDevice("i-2", tags: ["red"], templates: ["main": PushTemplate(body: "{}")]), hub: 1,
      at: Self.now)
    #expect(try await counts() == [main: 2])
    #expect(try await store.deleteInstallation("i-1", hub: 1))
    #expect(try await counts() == [main: 1])
    #expect(try await store.deleteInstallation("i-2", hub: 1))
    #expect(try await counts() == [:])
    try await store.close()
    // Names go with the last device that has them.
    let connection = try SQLiteConnection(path: path)
    defer { connection.close() }
    #expect(try connection.numbers("SELECT id FROM tag WHERE kind = 4") == [])
  }

  @Test(
    "feedback of an older version is numbered hub by hub, and its limit goes on from there",
    arguments: [4, 14, 15])
  func feedback(version: Int) async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let path = directory.path("hub.sqlite")
    try makeDatabase(at: path, version: version)
    var options = SQLiteConnection.Options()
    options.applicationID = Schema.applicationID
    var connection = try SQLiteConnection(path: path, options: options)
    let hour = Int(Self.now.timeIntervalSince1970) / 3600
    try connection.writing {
      for (id, hub) in [(3, 1), (5, 2), (6, 1), (9, 2), (12, 1)] {
        try connection.execute(
          """
          INSERT INTO feedback (id, hub, hour, at, outcome, platform, handle, registration,
            notification) VALUES (\(id), \(hub), \(hour), \(hour * 3_600_000), 5, 1, 'F\(id)', 1, 'n-1')
          """)
      }
    }
    connection.close()
    let store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
    #expect(try await store.feedbackHours(hub: 1).map(\.count) == [3])
    var checkpoint = Checkpoint(
      notification: NotificationID(rawValue: "n-1"), hub: 1, at: Self.now)
    checkpoint.failures = [
      .init(registration: 2, outcome: .expiredChannel, status: 410, reason: nil)
    ]
    try await store.checkpoint(checkpoint)
    try await store.close()
    connection = try SQLiteConnection(path: path, options: options)
    defer { connection.close() }
    let row = try connection.statement("SELECT hub, id, number FROM feedback ORDER BY hub, id")
    var numbers: [[Int64]] = []
    while try row.step() { numbers.append([row.integer(0), row.integer(1), row.integer(2)]) }
    #expect(
      numbers == [[1, 3, 1], [1, 6, 2], [1, 12, 3], [1, 13, 4], [2, 5, 1], [2, 9, 2]])
  }

  @Test("devices that no request can name are gone after the update")
  func dotSegments() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let path = directory.path("hub.sqlite")
    var store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
    var hub = try await store.createHub(
      named: "hub1", registrationTTL: nil, policies: [], at: Self.now)
    for id in ["..", "phone"] {
      let device = SampleDevice(id)
      try await store.putInstallation(
        device.installation, registrations: device.registrations, hub: hub.id, at: Self.now)
    }
    for id in [".", "%2E%2e", "..;x", "a\\b", "other"] {
      _ = try await store.putRegistration(
        id,
        RegistrationDraft(kind: .native, platform: .apns, channel: .handle("AA")), hub: hub.id,
        condition: .none, at: Self.now)
    }
    try await store.close()
    let connection = try SQLiteConnection(path: path)
    try connection.writing { try Schema.endDotSegments(connection) }
    connection.close()
    store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
    hub = try #require(try await store.hub(named: "hub1"))
    while try await store.clear(expiredBy: Self.now) {}
    let left = try await store.registrations(
      .all, hub: hub.id, asOf: Self.now, after: 0, limit: 10
    ).registrations
    #expect(left.count == 3, "\(left.map(\.id))")
    #expect(Set(left.map(\.id)).isSuperset(of: ["a\\b", "other"]))
    let installations = try await store.installations(hub: hub.id)
    #expect(installations.map(\.installationID) == ["phone"])
    try await store.close()
  }

  private static let device = SampleDevice(
    "i-1", handle: "AA", tags: ["Red"], templates: ["main": PushTemplate(body: #"{"aps":{}}"#)])

  @Test(
    "are brought up to date with all they hold", arguments: Schema.migrations.map(\.version))
  func migrates(version: Int) async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let path = directory.path("hub.sqlite")
    try makeDatabase(at: path, version: version)
    for _ in 1...2 {
      let store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
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
        #expect(found.prefix(2).map(\.etag) == [3, 3])
        #expect(
          found.prefix(2).map(\.draft.tags.first?.rawValue)
            == Array(
              repeating: "$InstallationId:{i-1}", count: 2))
        #expect(found.first?.draft.tags.last?.rawValue == "Red")
      }
      let lane = LaneKey(hub: hub.id, platform: .apns)
      #expect(try await store.retryLanes() == [lane: Date(timeIntervalSince1970: 7)])
      let due = try await store.dueRetries(of: lane, asOf: Self.now, limit: 10)
      #expect(due.map(\.attempts) == [[2: 3]])
      let made = try await store.createRegistration(
        RegistrationDraft(kind: .native, platform: .apns, channel: .handle("BB")), hub: hub.id,
        at: Self.now)
      #expect(made.number > 2)
      #expect(try await store.registration(made.id, hub: hub.id, asOf: Self.now) == made)
      try await store.close()
    }
  }

  @Test("a command does not bring a database up to date under a server of its version")
  func underAServer() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let path = directory.path("hub.sqlite")
    let old = Schema.migrations.count - 1
    try makeDatabase(at: path, version: old)
    var options = SQLiteHubStore.Options()
    options.mayMigrate = false
    let error = await #expect(throws: StoreError.self) {
      _ = try await SQLiteHubStore.open(at: path, sealing: TestSealing(), options: options)
    }
    #expect(error?.description.contains("restart the server first") == true)
    let connection = try SQLiteConnection(path: path)
    #expect(try connection.schemaVersion() == old)
    connection.close()
    try await SQLiteHubStore.open(at: path, sealing: TestSealing()).close()
    try await SQLiteHubStore.open(at: path, sealing: TestSealing(), options: options).close()
  }
}
