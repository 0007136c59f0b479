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

  /// The times in the file.
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
      try await store.engine.confirmations.whileWriting(key) {
        let whileTwo = try await store.engine.confirmations.whileWriting(key) {
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
      let key = DeviceKey.installation(idHash: 1, hub: hub)
      let attempt = try #require(confirmations.attempt(key, of: 1))
      await confirmations.whileRemoving {
        #expect(confirmations.attempt(key, of: 1) == nil)
        #expect(!confirmations.confirm(1, at: 0, attempt))
      }
      #expect(!confirmations.confirm(1, at: 0, attempt))
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
      // Closing has written the latest time.
      #expect(try await written(store) == [1_700_000_059_000])
      #expect(try await !confirms(store, hub, after: 2))
      // Nothing else has changed, so the row only learns the request.
      try await put(store, hub)
      #expect(try await confirms(store, hub, after: 3))
      try await store.close()
    }
  }

  @Test("are refused once the disk fails, and a time that waits is written when it works again")
  func failingDisk() async throws {
    let disk = try FaultyDisk()
    var options = SQLiteHubStore.Options()
    options.fileSystem = disk.name
    try await withTemporaryStore(options: options) { store in
      let hub = try await makeHub(store)
      try await put(store, hub)
      let confirmations = store.engine.confirmations
      disk.fault = .failsWrites
      #expect(try await confirms(store, hub, after: 1))
      try await withLimit(.seconds(60), "the time to be refused") {
        while try await confirms(store, hub, after: 2) { await Task.yield() }
      }
      #expect(confirmations.areWaiting)
      #expect(try await written(store) == [1_700_000_000_000])
      disk.fault = .none
      try await withLimit(.seconds(60), "the time to be written") {
        while confirmations.areWaiting { try await Task.sleep(for: .milliseconds(10)) }
      }
      #expect(try await written(store) == [1_700_000_002_000])
      // The keys of devices are read again by the next write.
      try await put(store, hub)
      #expect(try await confirms(store, hub, after: 3))
    }
  }

  @Test("are read again after a build that does not know the hash has written their row")
  func olderBuild() async throws {
    try await withTemporaryStore { store in
      let hub = try await makeHub(store)
      try await put(store, hub)
      try await store.write("older build") {
        try $0.connection.run("UPDATE installation SET fingerprint = 12345")
      }
      #expect(try await !confirms(store, hub, after: 1))
    }
  }

  @Test("whose row is damaged keep no other device's time waiting")
  func damagedRow() async throws {
    try await withTemporaryStore { store in
      let hub = try await makeHub(store)
      try await put(store, hub)
      try await store.putInstallation(
        SampleDevice("i-2").installation, registrations: SampleDevice("i-2").registrations,
        request: Self.request, hub: hub, at: now)
      try await store.write("damage") { session in
        try session.connection.run(
          """
          CREATE TRIGGER damage BEFORE UPDATE ON registration WHEN old.installation = 1
          BEGIN SELECT RAISE(FAIL, 'damaged'); END
          """)
      }
      #expect(try await confirms(store, hub, after: 60))
      #expect(
        try await store.confirmInstallation(
          "i-2", request: Self.request, hub: hub, at: now.addingTimeInterval(60)))
      await store.writeTimes()
      #expect(
        try await written(store).sorted() == [1_700_000_000_000, 1_700_000_060_000])
    }
  }

  @Test("do not set a later time back")
  func laterTime() async throws {
    try await withTemporaryStore { store in
      let hub = try await makeHub(store)
      try await put(store, hub)
      #expect(try await confirms(store, hub, after: -60))
      #expect(try await confirms(store, hub, after: -30))
      await store.writeTimes()
      #expect(try await written(store) == [1_700_000_000_000])
    }
  }

  @Test("are seen by a send before their time is written")
  func seenBySend() async throws {
    try await withTemporaryStore { store in
      let hub = try await makeHub(store)
      try await put(store, hub)
      #expect(try await confirms(store, hub, after: 60))
      let page = try await store.targets(
        AudienceQuery(hub: hub, kind: .native(.apns), expression: nil, asOf: now), after: 0,
        limit: 10)
      #expect(page.targets.map(\.confirmedAt) == [1_700_000_060_000])
    }
  }

  @Test(
    "are recognised by a hash that differs in each store, so that none with the same can be made")
  func keyedHash() async throws {
    var hashes: Set<[Int64]> = []
    for _ in 0..<2 {
      try await withTemporaryStore { store in
        let hub = try await makeHub(store)
        try await put(store, hub)
        hashes.insert(
          try await store.read { session in
            try session.connection.numbers("SELECT request FROM installation")
              + session.connection.numbers("SELECT fingerprint FROM installation")
          })
      }
    }
    #expect(hashes.count == 2 && hashes.first?.count == 2)
    #expect(Set(hashes.joined()).count == 4)
  }

  @Test(
    "are answered after a crash from commits that are in the file itself, whatever synced its log")
  func afterCrash() async throws {
    try await withDirectory { directory in
      let (path, crashed) = (directory.path("hub.sqlite"), directory.path("crashed.sqlite"))
      let store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
      try await put(store, try await makeHub(store))
      for suffix in ["", "-wal"] {
        try FileManager.default.copyItem(atPath: path + suffix, toPath: crashed + suffix)
      }
      try await store.close()
      let again = try await SQLiteHubStore.open(at: crashed, sealing: TestSealing())
      // Without its log.
      try FileManager.default.copyItem(atPath: crashed, toPath: directory.path("file.sqlite"))
      try await again.close()
      let connection = try SQLiteConnection(path: directory.path("file.sqlite"))
      defer { connection.close() }
      #expect(try connection.numbers("SELECT COUNT(*) FROM installation") == [1])
    }
  }

  @Test("are looked up less while most devices are new")
  func credit() async throws {
    let queue = JobQueue<WriteJob>()
    queue.closeWithoutWaiting()
    let confirmations = Confirmations(writer: queue)
    let key = DeviceKey.installation(idHash: 1, hub: 1)
    let asked = (0..<1_000).count { _ in confirmations.attempt(key, of: 1) != nil }
    #expect(asked == 48 + 952 / 64)
    for _ in 0..<64 {
      if let attempt = confirmations.attempt(key, of: 1) {
        _ = confirmations.confirm(1, at: 0, attempt)
      }
    }
    #expect((0..<4).allSatisfy { _ in confirmations.attempt(key, of: 1) != nil })
  }
}
