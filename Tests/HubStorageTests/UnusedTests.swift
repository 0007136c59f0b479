import Foundation
import HubCore
import HubTesting
import NotificationHubs
import SQLDatabase
import StoreContract
import Testing

@testable import HubStorage

@Suite("Tags and templates that nobody uses")
struct UnusedTests {
  static let now = Date(timeIntervalSince1970: 1_893_456_000)

  private static func store(
    _ path: String, tags: Int = 1_000, templates: Int = 1_000
  ) async throws -> SQLiteHubStore {
    var options = SQLiteHubStore.Options()
    options.tagsPerHub = tags
    options.templatesPerHub = templates
    return try await SQLiteHubStore.open(at: path, sealing: TestSealing(), options: options)
  }

  /// Plain tags and templates in the file.
  private static func rows(_ path: String) throws -> [String] {
    let connection = try SQLiteConnection(path: path)
    defer { connection.close() }
    var found: [String] = []
    let row = try connection.statement(
      "SELECT name FROM tag WHERE kind = 0 UNION ALL SELECT body FROM template ORDER BY 1")
    while try row.step() { found.append(row.text(0)) }
    return found
  }

  private static func device(_ id: String, _ word: String) -> SampleDevice {
    SampleDevice(
      id, tags: [Tag(rawValue: "tag-\(word)")],
      templates: ["main": PushTemplate(body: "{\"a\":\"\(word)\"}")])
  }

  @Test("go with the last device, however it goes")
  func churn() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let path = directory.path("hub.sqlite")
    let store = try await Self.store(path)
    let hub = try await store.createHub(
      named: "hub1", registrationTTL: nil, policies: [], at: Self.now
    ).id
    for round in 0..<20 {
      try await store.put(Self.device("i", "\(round)"), hub: hub, at: Self.now)
    }
    #expect(try Self.rows(path) == ["main", "tag-19", #"{"a":"19"}"#])
    try await store.put(Self.device("j", "19"), hub: hub, at: Self.now)
    #expect(try await store.deleteInstallation("i", hub: hub))
    #expect(try Self.rows(path) == ["main", "tag-19", #"{"a":"19"}"#])
    #expect(try await store.deleteInstallation("j", hub: hub))
    #expect(try Self.rows(path) == [])
    // A client's own registration.
    let draft = RegistrationDraft(
      kind: .template(PushTemplate(body: "{}"), name: nil), platform: .apns,
      channel: .handle("AA"), tags: ["mine"])
    let made = try await store.createRegistration(draft, hub: hub, at: Self.now)
    #expect(try Self.rows(path) == ["mine", "{}"])
    _ = try await store.deleteRegistration(made.id, hub: hub, condition: .any, at: Self.now)
    #expect(try Self.rows(path) == [])
    try await store.close()
  }

  @Test("a template stays while the document of an installation names it")
  func document() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let path = directory.path("hub.sqlite")
    var store = try await Self.store(path)
    let hub = try await store.createHub(
      named: "hub1", registrationTTL: nil, policies: [], at: Self.now
    ).id
    try await store.put(Self.device("i", "x"), hub: hub, at: Self.now)
    let all = try await store.registrations(
      .all, hub: hub, asOf: Self.now, after: 0, limit: 10
    ).registrations
    for registration in all {
      _ = try await store.deleteRegistration(
        registration.id, hub: hub, condition: .any, at: Self.now)
    }
    #expect(try Self.rows(path) == [#"{"a":"x"}"#])
    try await store.close()
    store = try await Self.store(path)
    while try await store.clear(expiredBy: .distantPast) {}
    #expect(
      try await store.installation("i", hub: hub)?.templates["main"]?.body == #"{"a":"x"}"#)
    #expect(try await store.deleteInstallation("i", hub: hub))
    while try await store.clear(expiredBy: .distantPast) {}
    try await store.close()
    store = try await Self.store(path)
    while try await store.clear(expiredBy: .distantPast) {}
    #expect(try Self.rows(path) == [])
    try await store.close()
  }

  @Test("a template stays with a device whose handle is dead, also when the device is changed")
  func deadDevice() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let path = directory.path("hub.sqlite")
    var store = try await Self.store(path)
    let hub = try await store.createHub(
      named: "hub1", registrationTTL: nil, policies: [], at: Self.now
    ).id
    try await store.put(Self.device("i", "x"), hub: hub, at: Self.now)
    let id = NotificationID(at: Self.now, random: .system)
    let request = NotificationRequest(format: .native(.apns), body: Array("{}".utf8))
    try await store.accept(
      NotificationRecord(
        id: id, hub: hub, request: request, state: .enqueued, enqueuedAt: Self.now))
    var page = Checkpoint(notification: id, hub: hub, at: Self.now)
    page.deadHandles = try await store.registrations(
      .all, hub: hub, asOf: Self.now, after: 0, limit: 10
    ).registrations.map {
      .init(
        registration: $0.number, platform: .apns, handle: $0.draft.channel.handle,
        revision: .newest,
        outcome: .expiredChannel, newHandle: nil)
    }
    try await store.checkpoint(page)
    let isThere = try await store.updateInstallation("i", hub: hub, at: Self.now) { installation in
      var changed = installation
      changed.tags = ["other"]
      return (changed, changed.registrationDrafts)
    }
    #expect(isThere)
    try await store.close()
    let connection = try SQLiteConnection(path: path)
    try connection.execute("DELETE FROM removed_registration")
    connection.close()
    store = try await Self.store(path)
    while try await store.clear(expiredBy: .distantPast) {}
    let left = try await store.installation("i", hub: hub)
    #expect(left?.pushChannelExpired == true)
    #expect(left?.templates["main"]?.body == #"{"a":"x"}"#)
    try await store.close()
  }

  @Test("of earlier versions are swept away after the start")
  func sweep() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let path = directory.path("hub.sqlite")
    var store = try await Self.store(path)
    let hub = try await store.createHub(
      named: "hub1", registrationTTL: nil, policies: [], at: Self.now
    ).id
    try await store.put(Self.device("i", "x"), hub: hub, at: Self.now)
    try await store.close()
    let connection = try SQLiteConnection(path: path)
    try connection.writing {
      for number in 100..<2_600 {
        try connection.execute(
          "INSERT INTO tag (id, hub, kind, name) VALUES (\(number), 1, 0, 'email:\(number)')")
      }
      try connection.execute(
        """
        INSERT INTO template (id, hub, hash, body, headers, expiry)
          VALUES (100, 1, 0, 'Hello Alice', x'00', NULL);
        UPDATE store_state SET last_tag = 3000, last_template = 100
        """)
    }
    connection.close()
    store = try await Self.store(path)
    while try await store.clear(expiredBy: .distantPast) {}
    #expect(try Self.rows(path) == ["main", "tag-x", #"{"a":"x"}"#])
    try await store.close()
  }

  @Test("a hub has no more than its limit of them, and devices with known ones still register")
  func quota() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let store = try await Self.store(directory.path("hub.sqlite"), tags: 5, templates: 2)
    try await Self.check(store)
    try await store.close()
  }

  private static func check(_ store: any HubStore) async throws {
    let hub = try await store.createHub(
      named: "hub1", registrationTTL: nil, policies: [], at: now
    ).id
    try await store.put(device("a", "1"), hub: hub, at: now)
    try await store.put(device("b", "2"), hub: hub, at: now)
    await #expect(throws: StoreError.quota("templates", limit: 2)) {
      try await store.put(device("c", "3"), hub: hub, at: now)
    }
    #expect(try await store.installation("c", hub: hub) == nil)
    await #expect(throws: StoreError.quota("tags", limit: 5)) {
      try await store.put(SampleDevice("c", tags: ["x", "y", "z"]), hub: hub, at: now)
    }
    await #expect(throws: StoreError.quota("tags", limit: 5)) {
      _ = try await store.createRegistration(
        RegistrationDraft(
          kind: .native, platform: .apns, channel: .handle("AA"), tags: ["x", "y", "z"]),
        hub: hub, at: now)
    }
    try await store.put(device("c", "2"), hub: hub, at: now)
    try await store.put(SampleDevice("d", tags: ["x", "y"]), hub: hub, at: now)
    // What goes makes room.
    #expect(try await store.deleteInstallation("a", hub: hub))
    try await store.put(device("e", "3"), hub: hub, at: now)
  }
}
