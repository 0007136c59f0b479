import Foundation
import HubCore
import HubStorage
import HubTesting
import NotificationHubs
import SQLDatabase
import StoreContract
import Testing

@Suite("What a doctor asks of a file")
struct StoreFileTests {
  /// Devices that come, change and go, and a notification, with the store still open.
  private func fill(_ store: SQLiteHubStore) async throws -> Hub.ID {
    let hub = try await makeHub(store)
    for round in 0..<3 {
      for number in 0..<60 {
        if (number + round) % 7 == 0 {
          _ = try await store.deleteInstallation("i-\(number)", hub: hub)
          continue
        }
        let device = SampleDevice(
          "i-\(number)", handle: "H\(number % 40)",
          tags: ["a", Tag(rawValue: "t\((number + round) % 5)")],
          templates: number % 2 == 0 ? ["main": PushTemplate(body: "{}")] : [:])
        try await store.put(device, hub: hub, at: .now)
      }
    }
    try await store.accept(
      NotificationRecord(
        id: NotificationID(rawValue: "n-1"), hub: hub,
        request: NotificationRequest(format: .template, body: [1]), state: .enqueued,
        enqueuedAt: .now))
    return hub
  }

  private func expectSound(_ path: String) throws {
    let file = try StoreFile(path: path)
    defer { file.connection.close() }
    let tags = try file.audienceFaults()
    #expect(tags.wrong == 0)
    #expect(try file.totalFaults() == 0)
    #expect(try file.orphans().map(\.rows) == [])
    #expect(try file.discardedCommits() == nil)
    #expect(file.connection.faults(comparesIndexes: true) == [])
    try file.check(TestSealing())
  }

  @Test("a file at work is sound, with its tags in the log or in parts", arguments: [2, 65_536])
  func sound(limit: Int) async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      var options = SQLiteHubStore.Options()
      options.tagLogLimit = limit
      let store = try await SQLiteHubStore.open(at: path, sealing: TestSealing(), options: options)
      let hub = try await fill(store)
      try expectSound(path)
      #expect(try StoreFile(path: path).audienceFaults().of > 7)
      // Half of a hub that is being deleted is no fault.
      #expect(try await store.deleteHub(named: "hub1"))
      #expect(try await store.hub(named: "hub1")?.id != hub)
      try expectSound(path)
      _ = try await store.clear(expiredBy: .distantPast)
      try expectSound(path)
      try await store.close()
      try expectSound(path)
    }
  }

  @Test("what does not fit together is found, and nothing is written")
  func faults() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      var options = SQLiteHubStore.Options()
      options.tagLogLimit = 2
      let store = try await SQLiteHubStore.open(at: path, sealing: TestSealing(), options: options)
      _ = try await fill(store)
      try await store.close()
      func faults(after sql: String) throws -> [String] {
        let bad = directory.path("bad.sqlite")
        try? FileManager.default.removeItem(atPath: bad)
        try FileManager.default.copyItem(atPath: path, toPath: bad)
        do {
          let connection = try SQLiteConnection(path: bad)
          try connection.execute(sql)
          connection.close()
        }
        let file = try StoreFile(path: bad)
        let tags = try file.audienceFaults().wrong
        return (tags > 0 ? ["\(tags) tags"] : [])
          + (try file.totalFaults() > 0 ? ["sums"] : []) + (try file.orphans().map(\.rows))
      }
      #expect(try faults(after: "SELECT 1") == [])
      #expect(
        try faults(
          after: "DELETE FROM tag_part WHERE tag = (SELECT id FROM tag WHERE name = 't1')")
          == ["1 tags"])
      #expect(
        try faults(after: "UPDATE registration_total SET total = total + 1") == ["sums"])
      #expect(
        try faults(after: "DELETE FROM template") == ["registrations without their template"])
      #expect(
        try faults(
          after: "DELETE FROM notification; INSERT INTO notification_count VALUES (1, 1, 0, 0, 1)")
          == ["counts without their notification"])
      let rows = try faults(after: "DELETE FROM hub")
      #expect(
        rows.contains("registrations without a hub")
          && rows.contains("policies without a hub") == false)
      #expect(
        try faults(after: "DELETE FROM installation WHERE public_id = 'i-4'")
          == ["registrations without their installation"])
    }
  }

  @Test("another key, another program's file and a newer version are refused")
  func refusals() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      try await SQLiteHubStore.open(at: path, sealing: TestSealing()).close()
      let file = try StoreFile(path: path)
      #expect(throws: StoreError.sealedSecret) { try file.check(TestSealing(keys: ["another"])) }
      file.connection.close()
      let theirs = directory.path("theirs.sqlite")
      try SQLiteConnection(path: theirs).execute("CREATE TABLE theirs (a)")
      #expect(throws: StoreError.corrupt("it is not a database of Belfry")) {
        _ = try StoreFile(path: theirs)
      }
      try SQLiteConnection(path: path).setSchemaVersion(99)
      #expect(throws: StoreError.newerSchema(found: 99, known: StoreFile.newestSchema)) {
        _ = try StoreFile(path: path)
      }
    }
  }
}
