import Foundation
import HubCore
import HubTesting
import NotificationHubs
import SQLDatabase
import Testing

@testable import HubStorage
@testable import StoreContract

@Suite("Devices that register again with the same request")
struct ConfirmationTests {
  private static let device = SampleDevice("i-1", tags: ["red"])
  private static let request = InstallationRequest(body: Array("{}".utf8), rules: [60])
  private let now = Date(timeIntervalSince1970: 1_700_000_000)

  private func put(_ store: SQLiteHubStore, _ hub: Hub.ID) async throws {
    try await store.putInstallation(
      Self.device.installation, registrations: Self.device.registrations, request: Self.request,
      hub: hub, at: now)
  }

  private func confirms(_ store: SQLiteHubStore, _ hub: Hub.ID, after seconds: Double) async throws
    -> Bool
  {
    try await store.confirmInstallation(
      "i-1", request: Self.request, hub: hub, at: now.addingTimeInterval(seconds))
  }

  /// The time that is in the file.
  private func written(_ store: SQLiteHubStore) async throws -> [Int64] {
    try await store.read { try $0.connection.numbers("SELECT confirmed_at FROM registration") }
  }

  @Test(
    "are answered while the writing thread is busy, and their time is written by itself",
    .timeLimit(.minutes(1)))
  func answeredAtOnce() async throws {
    try await withTemporaryStore { store in
      let hub = try await makeHub(store)
      try await put(store, hub)
      let (begun, report) = AsyncStream.makeStream(of: Void.self)
      let gate = DispatchSemaphore(value: 0)
      let busy = Task {
        try await store.write("block") { _ in
          report.yield()
          gate.wait()
        }
      }
      for await _ in begun.prefix(1) {}
      #expect(try await confirms(store, hub, after: 60))
      #expect(try await written(store) == [1_700_000_000_000])
      gate.signal()
      try await busy.value
      while try await written(store) != [1_700_000_060_000] { await Task.yield() }
    }
  }

  @Test(
    "are written as others while a write of the device is under way, which may not be on the disk")
  func writeUnderWay() async throws {
    try await withTemporaryStore { store in
      let hub = try await makeHub(store)
      try await put(store, hub)
      let key = DeviceKey.installation(idHash: PreparedInstallation.hash("i-1"), hub: hub)
      try await store.engine.confirmations.writing(key) {
        let whileTwo = try await store.engine.confirmations.writing(key) {
          try await confirms(store, hub, after: 1)
        }
        let whileOne = try await confirms(store, hub, after: 1)
        #expect(!whileTwo && !whileOne)
      }
      #expect(try await confirms(store, hub, after: 1))
    }
  }

  @Test("are written as others while devices are removed, or were since their row was read")
  func removalUnderWay() async throws {
    try await withTemporaryStore { store in
      let hub = try await makeHub(store)
      try await put(store, hub)
      let confirmations = store.engine.confirmations
      await confirmations.removing {}
      let key = DeviceKey.installation(idHash: 1, hub: hub)
      let mark = try #require(confirmations.mark(key))
      await confirmations.removing {
        #expect(confirmations.mark(key) == nil)
        #expect(!confirmations.confirm(1, at: 0, since: mark) {})
      }
      #expect(!confirmations.confirm(1, at: 0, since: mark) {})
      #expect(!confirmations.areWaiting)
      #expect(try await confirms(store, hub, after: 1))
    }
  }

  @Test("keep a handle that a push service has called dead, though their time is not written yet")
  func removalBehind() async throws {
    try await withTemporaryStore { store in
      let hub = try await makeHub(store)
      try await put(store, hub)
      let dead = try await HubStoreContract.condemned(store, hub)
      try await store.accept(HubStoreContract.record("n-1", hub: hub))
      #expect(try await confirms(store, hub, after: -60))
      var page = HubStoreContract.checkpoint(hub)
      page.deadHandles = dead
      try await store.checkpoint(page)
      #expect(try await store.installation("i-1", hub: hub)?.pushChannelExpired == false)
    }
  }

  @Test("are read again when they have expired, or another release has written them")
  func expiredOrOld() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      var store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
      let hub = try await makeHub(store)
      var expiring = Self.device.installation
      expiring.expirationTime = now.addingTimeInterval(60)
      try await store.putInstallation(
        expiring, registrations: [], request: Self.request, hub: hub, at: now)
      #expect(try await confirms(store, hub, after: 59))
      #expect(try await !confirms(store, hub, after: 60))
      try await put(store, hub)
      #expect(try await confirms(store, hub, after: 1))
      try await store.close()
      var options = SQLiteHubStore.Options()
      options.release = "2.0"
      store = try await SQLiteHubStore.open(at: path, sealing: TestSealing(), options: options)
      // Closing has written the time.
      #expect(try await written(store) == [1_700_000_001_000])
      #expect(try await !confirms(store, hub, after: 2))
      // Nothing else has changed, so the row only learns the request.
      try await put(store, hub)
      #expect(try await confirms(store, hub, after: 3))
      try await store.close()
    }
  }

  @Test("are looked up less while most devices are new")
  func luck() async throws {
    let confirmations = Confirmations(release: "")
    let key = DeviceKey.installation(idHash: 1, hub: 1)
    let asked = (0..<1_000).count { _ in confirmations.mark(key) != nil }
    #expect((60...160).contains(asked))
    for _ in 0..<32 {
      if let mark = confirmations.mark(key) { _ = confirmations.confirm(1, at: 0, since: mark) {} }
    }
    #expect(confirmations.mark(key) != nil && confirmations.mark(key) != nil)
  }
}
