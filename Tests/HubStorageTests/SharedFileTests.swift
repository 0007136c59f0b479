import Foundation
import HubCore
import HubStorage
import HubTesting
import NotificationHubs
import StoreContract
import Testing

/// Two stores on one file are two processes, as far as SQLite and the caches are concerned.
@Suite("Two processes on one file")
struct SharedFileTests {
  @Test("see each other's hubs, policies and credentials, and that they have changed")
  func directoryIsShared() async throws {
    try await withTwoStores { one, two in
      let before = try await one.directoryVersion()
      let hub = try await two.createHub(
        named: "hub1", registrationTTL: nil, policies: [], at: .now)
      #expect(try await one.hub(named: "hub1") == hub)
      let mine = try await two.directoryVersion()
      #expect(mine > before)
      // The other side may take some milliseconds to notice.
      let limit = ContinuousClock.now + .seconds(30)
      while try await one.directoryVersion() != mine {
        try #require(ContinuousClock.now < limit, "the change was not noticed")
        try await Task.sleep(for: .milliseconds(1))
      }
    }
  }

  @Test("see each other's devices, also where bitmaps are in memory")
  func audienceIsShared() async throws {
    try await withTwoStores { one, two in
      let hub = try await one.createHub(
        named: "hub1", registrationTTL: nil, policies: [], at: .now
      ).id
      let query = AudienceQuery(
        hub: hub, kind: .native(.apns), expression: .tag("red"), asOf: .now)
      for number in 1...10 {
        let writer = number % 2 == 0 ? one : two
        try await writer.put(SampleDevice("i-\(number)", tags: ["red"]), hub: hub, at: .now)
        #expect(try await one.count(query) == number)
        #expect(try await two.count(query) == number)
      }
      #expect(try await two.deleteInstallation("i-2", hub: hub))
      #expect(try await one.count(query) == 9)
      #expect(try await one.deleteHub(named: "hub1"))
      #expect(try await two.count(query) == 0)
      await #expect(throws: StoreError.noHub) {
        try await two.put(SampleDevice("i-1"), hub: hub, at: .now)
      }
    }
  }

  private func withTwoStores(
    _ body: (SQLiteHubStore, SQLiteHubStore) async throws -> Void
  ) async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      let one = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
      let two = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
      try await body(one, two)
      try await one.close()
      try await two.close()
    }
  }
}
