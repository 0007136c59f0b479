import Foundation
import HubCore
import HubStorage
import HubTesting
import NotificationHubs
import Testing

@Suite("Writes that share a transaction")
struct GroupCommitTests {
  @Test("a refused one does not take the others with it")
  func refusalsAreAlone() async throws {
    try await withTemporaryStore { store in
      let hub = try await makeHub(store)
      let refused = await withTaskGroup(of: Bool.self) { group in
        for number in 0..<200 {
          group.addTask {
            do {
              // Every third goes to a hub that does not exist.
              try await store.put(
                SampleDevice("i-\(number)"), hub: number % 3 == 0 ? hub + 1 : hub, at: .now)
              return false
            } catch { return error as? StoreError == .noHub }
          }
        }
        return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(refused == 67)
      let query = AudienceQuery(hub: hub, kind: .native(.apns), expression: nil, asOf: .now)
      #expect(try await store.count(query) == 133)
    }
  }

  @Test("when the disk fills up, what was confirmed is there and what was refused is not")
  func fullDisk() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      var options = SQLiteHubStore.Options()
      options.maximumPages = 140
      let store = try await SQLiteHubStore.open(
        at: path, sealing: TestSealing(), options: options)
      let hub = try await makeHub(store)
      let results = try await writeMany(2_000, to: store, hub: hub)
      let kept = Set(results.filter(\.isKept).map(\.id))
      #expect(!kept.isEmpty && kept.count < 2_000)
      let query = AudienceQuery(hub: hub, kind: .native(.apns), expression: nil, asOf: .now)
      #expect(try await store.count(query) == kept.count)
      // Reading still works, and so does writing once there is room.
      let device = try #require(kept.first)
      #expect(try await store.installation(device, hub: hub) != nil)
      try await store.close()
      let again = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
      #expect(try await again.count(query) == kept.count)
      try await again.put(SampleDevice("late"), hub: hub, at: .now)
      #expect(try await again.count(query) == kept.count + 1)
      try await again.close()
    }
  }

  @Test("a write that waits for another process's lock is refused in the end")
  func lockIsTold() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      var options = SQLiteHubStore.Options()
      options.lockTimeout = 1
      let store = try await SQLiteHubStore.open(
        at: path, sealing: TestSealing(), options: options)
      let hub = try await makeHub(store)
      do {
        let lock = try HeldLock(path: path)
        defer { lock.release() }
        await #expect(throws: StoreError.locked) {
          try await store.put(SampleDevice("i-1"), hub: hub, at: .now)
        }
      }
      try await store.put(SampleDevice("i-1"), hub: hub, at: .now)
      try await store.close()
    }
  }

  private func writeMany(
    _ count: Int, to store: SQLiteHubStore, hub: Hub.ID
  ) async throws -> [(id: String, isKept: Bool)] {
    try await withThrowingTaskGroup(of: (id: String, isKept: Bool).self) { group in
      for number in 0..<count {
        group.addTask {
          let id = "i-\(number)"
          do {
            try await store.put(SampleDevice(id, tags: ["red"]), hub: hub, at: .now)
            return (id, true)
          } catch StoreError.diskFull { return (id, false) }
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
  }
}

func makeHub(_ store: SQLiteHubStore) async throws -> Hub.ID {
  try await store.createHub(named: "hub1", registrationTTL: nil, policies: [], at: .now).id
}
