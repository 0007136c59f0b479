import Foundation
import HubCore
import HubStorage
import HubTesting
import NotificationHubs
import SQLDatabase
import StoreContract
import Testing

@Suite("Deleting a large hub")
struct HubDeletionTests {
  @Test("is over at once for everyone, goes on after a restart, and leaves no row")
  func deletionGoesOn() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      let store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
      let hub = try await makeHub(store)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<600 {
          group.addTask {
            try await store.put(
              SampleDevice("i-\(number)", tags: ["red", Tag(rawValue: "t\(number)")]), hub: hub,
              at: .now)
          }
        }
        try await group.waitForAll()
      }
      try await store.accept(
        NotificationRecord(
          id: NotificationID(rawValue: "n-1"), hub: hub,
          request: NotificationRequest(format: .template, body: [1]), state: .enqueued,
          enqueuedAt: .now))
      #expect(try await store.deleteHub(named: "hub1"))
      #expect(try await store.clear(expiredBy: .distantPast))
      #expect(try await store.installation("i-1", hub: hub) == nil)
      try await store.close()
      let again = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
      #expect(try await again.hubs().isEmpty)
      var slices = 0
      while try await again.clear(expiredBy: .distantPast) { slices += 1 }
      #expect(slices > 5)
      try await again.close()
      let connection = try SQLiteConnection(path: path)
      for table in [
        "installation", "registration", "tag_part", "tag_log", "tag", "template", "notification",
        "deleted_hub", "access_policy",
      ] {
        let row = try connection.statement("SELECT COUNT(*) FROM \(table)")
        #expect(try row.step() && row.integer(0) == 0, "\(table) has rows left")
      }
      connection.close()
    }
  }

  @Test("an old notification goes in slices and leaves no row, of one with many rows as of others")
  func oldNotifications() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      let store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
      let hub = try await makeHub(store)
      let start = Date(timeIntervalSince1970: 1_893_456_000)
      for number in 0..<150 {
        let count = number == 0 ? 5_000 : 1
        let record = NotificationRecord(
          id: NotificationID(rawValue: "n-\(number)"), hub: hub,
          request: NotificationRequest(format: .native(.apns), body: [1], isDirect: true),
          state: .enqueued, enqueuedAt: start)
        let targets = (0..<count).map { DirectTarget(handle: "H\($0)", isDuplicate: false) }
        _ = try await store.accept(Submission(record: record, targets: targets))
        var end = Checkpoint(notification: record.id, hub: hub, at: start)
        end.state = .completed
        end.counts = [OutcomeKey(platform: .apns, isTemplate: false, outcome: .badChannel): count]
        end.failures = (1...Int64(count)).map {
          Checkpoint.Failure(registration: $0, outcome: .badChannel, status: 400, reason: "r")
        }
        try await store.checkpoint(end)
      }
      var slices = 0
      while try await store.clearNotifications(endedBefore: start + 1) { slices += 1 }
      #expect((5...20).contains(slices), "\(slices)")
      try await store.close()
      let connection = try SQLiteConnection(path: path)
      for table in [
        "notification", "notification_count", "notification_failure", "notification_target",
      ] {
        let row = try connection.statement("SELECT COUNT(*) FROM \(table)")
        #expect(try row.step() && row.integer(0) == 0, "\(table) has rows left")
      }
      connection.close()
    }
  }
}
