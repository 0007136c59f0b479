import Foundation
import HubCore
import HubStorage
import HubTesting
import NotificationHubs
import StoreContract
import Testing

@Suite("After an end without goodbye")
struct CrashTests {
  /// The files as they lie at this moment are what `kill -9` would leave.
  @Test("everything that was confirmed is there")
  func confirmedSurvives() async throws {
    try await withDirectory { directory in
      let store = try await SQLiteHubStore.open(
        at: directory.path("hub.sqlite"), sealing: TestSealing())
      let hub = try await makeHub(store)
      let id = NotificationID(rawValue: "n-1")
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<100 {
          group.addTask {
            try await store.put(SampleDevice("i-\(number)", tags: ["red"]), hub: hub, at: .now)
          }
        }
        try await group.waitForAll()
      }
      try await store.accept(
        NotificationRecord(
          id: id, hub: hub, request: NotificationRequest(format: .template, body: [1]),
          state: .enqueued, enqueuedAt: .now))
      var page = Checkpoint(notification: id, hub: hub, at: .now)
      page.cursor = 50
      page.retries = [Checkpoint.Retry(registration: 7, platform: .apns, attempts: 1, due: .now)]
      try await store.checkpoint(page)
      for suffix in ["", "-wal"] {
        try FileManager.default.copyItem(
          atPath: directory.path("hub.sqlite" + suffix),
          toPath: directory.path("left.sqlite" + suffix))
      }
      let left = try await SQLiteHubStore.open(
        at: directory.path("left.sqlite"), sealing: TestSealing())
      let query = AudienceQuery(
        hub: hub, kind: .native(.apns), expression: .tag("red"), asOf: .now)
      #expect(try await left.count(query) == 100)
      #expect(try await left.unfinishedNotifications().map(\.cursor) == [50])
      #expect(try await left.waitingRetries(id, hub: hub) == 1)
      try await left.close()
      try await store.close()
    }
  }
}
