import Foundation
import HubCore
import HubStorage
import HubTesting
import NotificationHubs
import StoreContract
import Testing

@Suite("A disk in trouble")
struct DiskTroubleTests {
  @Test("refuses every write, keeps what there was, and takes writes again by itself")
  func fullDisk() async throws {
    try await withDisk { disk, store in
      let hub = try await makeHub(store)
      try await prepare(store, hub)
      for path in WritePath.all {
        disk.fault = .full
        await #expect(throws: StoreError.diskFull, "\(path.name)") {
          try await path.write(store, hub)
        }
        #expect(
          await store.condition() == .readOnly(reason: StoreError.diskFull.description),
          "\(path.name)")
        #expect(try await store.installation("kept", hub: hub)?.tags == ["red"], "\(path.name)")
        disk.fault = .none
        try await path.write(store, hub)
        #expect(await store.condition() == .healthy, "\(path.name)")
      }
    }
  }

  @Test("whose writes fail leaves reads alone, and health says so")
  func failingWrites() async throws {
    try await withDisk { disk, store in
      let hub = try await makeHub(store)
      try await prepare(store, hub)
      disk.fault = .failsWrites
      for path in WritePath.all {
        await #expect(throws: StoreError.self, "\(path.name)") { try await path.write(store, hub) }
      }
      guard case .readOnly = await store.condition() else {
        Issue.record("the store says that it is \(await store.condition())")
        return
      }
      #expect(try await store.installation("kept", hub: hub) != nil)
      disk.fault = .none
      // Nobody writes, but somebody asks.
      try await withLimit(.seconds(20), "the store to find out") {
        while await store.condition() != .healthy { try await Task.sleep(for: .milliseconds(50)) }
      }
    }
  }

  @Test("that cannot sync lets nobody go on before it can, refuses others, and counts once")
  func failingSync() async throws {
    try await withDisk { disk, store in
      let hub = try await makeHub(store)
      try await prepare(store, hub)
      let id = NotificationID(rawValue: "kept")
      disk.fault = .failsSyncs
      let waiting = Task {
        var page = Checkpoint(notification: id, hub: hub, at: .now)
        page.cursor = 7
        page.counts = [OutcomeKey(platform: .apns, isTemplate: true, outcome: .success): 7]
        try await store.checkpoint(page)
        return disk.fault
      }
      try await withLimit(.seconds(20), "the sync to fail") {
        while await store.condition() == .healthy { try await Task.sleep(for: .milliseconds(1)) }
      }
      await #expect(throws: StoreError.self) {
        try await store.put(SampleDevice("i-2"), hub: hub, at: .now)
      }
      #expect(try await store.installation("i-2", hub: hub) == nil)
      disk.fault = .none
      let fault = try await waiting.value
      guard case .none = fault else {
        Issue.record("told of success while the disk failed")
        return
      }
      #expect(await store.condition() == .healthy)
      #expect(try await store.notification(id, hub: hub)?.counts.values.reduce(0, +) == 7)
      try await store.put(SampleDevice("i-2"), hub: hub, at: .now)
    }
  }

  @Test("that can no longer sync does not keep the store from closing")
  func closingWithoutSync() async throws {
    try await withDisk { disk, store in
      let hub = try await makeHub(store)
      disk.fault = .failsSyncs
      let waiting = Task { try await store.put(SampleDevice("i-1"), hub: hub, at: .now) }
      try await withLimit(.seconds(20), "the sync to fail") {
        while await store.condition() == .healthy { try await Task.sleep(for: .milliseconds(1)) }
      }
      try await store.close()
      await #expect(throws: StoreError.self) { try await waiting.value }
    }
  }

  @Test("and a lock that another process holds too long: refused, said, and over when it goes")
  func heldLock() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      var options = SQLiteHubStore.Options()
      options.lockTimeout = 1
      let store = try await SQLiteHubStore.open(
        at: path, sealing: TestSealing(), options: options)
      let hub = try await makeHub(store)
      try await prepare(store, hub)
      let lock = try HeldLock(path: path)
      for path in WritePath.all {
        await #expect(throws: StoreError.locked, "\(path.name)") {
          try await path.write(store, hub)
        }
      }
      #expect(await store.condition() == .readOnly(reason: StoreError.locked.description))
      #expect(try await store.installation("kept", hub: hub) != nil)
      lock.release()
      for path in WritePath.all { try await path.write(store, hub) }
      #expect(await store.condition() == .healthy)
      try await store.close()
    }
  }

  private func prepare(_ store: SQLiteHubStore, _ hub: Hub.ID) async throws {
    try await store.put(SampleDevice("kept", user: "kim", tags: ["red"]), hub: hub, at: .now)
    try await store.accept(WritePath.record("kept", hub))
  }

  private func withDisk(
    _ body: (FaultyDisk, SQLiteHubStore) async throws -> Void
  ) async throws {
    let disk = try FaultyDisk()
    var options = SQLiteHubStore.Options()
    options.fileSystem = disk.name
    try await withTemporaryStore(options: options) { store in
      try await body(disk, store)
      disk.fault = .none
    }
  }
}

/// A call that writes. It succeeds when it can be written, as often as it is made.
struct WritePath: Sendable {
  let name: String
  let write: @Sendable (SQLiteHubStore, Hub.ID) async throws -> Void

  static func record(
    _ id: String, _ hub: Hub.ID, scheduled: Bool = false
  ) -> NotificationRecord {
    NotificationRecord(
      id: NotificationID(rawValue: id), hub: hub,
      request: NotificationRequest(format: .template, body: [1]),
      state: scheduled ? .scheduled : .enqueued, enqueuedAt: .now,
      scheduledFor: scheduled ? Date(timeIntervalSinceNow: -1) : nil)
  }

  private static func unique(_ word: String) -> String { "\(word)-\(UUID().uuidString)" }

  private static let draft = RegistrationDraft(
    kind: .native, platform: .apns, channel: .handle("AA"), tags: ["red"])

  private static func policy() -> AccessPolicy {
    AccessPolicy(
      name: "policy", rights: .listen, primaryKey: unique("a"), secondaryKey: "b",
      createdAt: .now, modifiedAt: .now)
  }

  private static let credential = PushCredential(
    platform: .apns, properties: ["Token": "t"], modifiedAt: .now)

  /// Has the hub's ADM devices called dead.
  private static func condemn(_ store: SQLiteHubStore, _ hub: Hub.ID) async throws {
    let query = AudienceQuery(hub: hub, kind: .native(.adm), expression: nil, asOf: .now)
    let page = try await store.targets(query, after: 0, limit: 100)
    var checkpoint = Checkpoint(
      notification: NotificationID(rawValue: "kept"), hub: hub, at: .now)
    checkpoint.deadHandles = page.targets.map {
      .init(
        registration: $0.registration, platform: .adm,
        handle: String(decoding: page.handles[$0.handle], as: UTF8.self),
        revision: page.revision, outcome: .badChannel)
    }
    try await store.checkpoint(checkpoint)
  }

  static let all: [WritePath] = [
    WritePath(name: "createHub") { store, _ in
      _ = try await store.createHub(
        named: unique("h"), registrationTTL: nil, policies: [], at: .now)
    },
    WritePath(name: "updateHub") { store, hub in
      _ = try await store.updateHub(hub, HubContents(userMetadata: unique("m")), at: .now)
    },
    WritePath(name: "putAccessPolicy") { try await $0.putAccessPolicy(policy(), hub: $1) },
    WritePath(name: "deleteAccessPolicy") { store, hub in
      if try await store.accessPolicies(hub: hub).isEmpty {
        try await store.putAccessPolicy(policy(), hub: hub)
      }
      _ = try await store.deleteAccessPolicy(named: "policy", hub: hub)
    },
    WritePath(name: "putCredential") { try await $0.putCredential(credential, hub: $1) },
    WritePath(name: "deleteCredential") { store, hub in
      if try await store.credentials(hub: hub).isEmpty {
        try await store.putCredential(credential, hub: hub)
      }
      _ = try await store.deleteCredential(.apns, hub: hub)
    },
    WritePath(name: "putInstallation") { store, hub in
      try await store.put(SampleDevice(unique("i")), hub: hub, at: .now)
    },
    WritePath(name: "updateInstallation") { store, hub in
      _ = try await store.updateInstallation("kept", hub: hub, at: .now) { present in
        var changed = present
        changed.pushVariables = ["v": unique("v")]
        return (changed, SampleDevice.registrations(of: changed))
      }
    },
    WritePath(name: "deleteInstallation") { store, hub in
      if try await store.installation("brief", hub: hub) == nil {
        try await store.put(SampleDevice("brief"), hub: hub, at: .now)
      }
      _ = try await store.deleteInstallation("brief", hub: hub)
    },
    WritePath(name: "reserveRegistrationID") { _ = try await $0.reserveRegistrationID(hub: $1) },
    WritePath(name: "createRegistration") {
      _ = try await $0.createRegistration(draft, hub: $1, at: .now)
    },
    WritePath(name: "putRegistration") {
      _ = try await $0.putRegistration(
        unique("r"), draft, hub: $1, condition: .none, at: .now)
    },
    WritePath(name: "deleteRegistration") { store, hub in
      if try await store.registration("brief", hub: hub, asOf: .now) == nil {
        _ = try await store.putRegistration(
          "brief", draft, hub: hub, condition: .none, at: .now)
      }
      _ = try await store.deleteRegistration("brief", hub: hub, condition: .none, at: .now)
    },
    WritePath(name: "accept") { try await $0.accept(record(unique("n"), $1)) },
    WritePath(name: "accept for later") {
      try await $0.accept(record(unique("n"), $1, scheduled: true))
    },
    WritePath(name: "releaseSchedules") { store, hub in
      if try await store.nextSchedule() == nil {
        try await store.accept(record(unique("n"), hub, scheduled: true))
      }
      _ = try await store.releaseSchedules(asOf: .now, limit: 10)
    },
    WritePath(name: "checkpoint") { store, hub in
      var page = Checkpoint(notification: NotificationID(rawValue: "kept"), hub: hub, at: .now)
      page.retries = [
        Checkpoint.Retry(
          registration: .random(in: 1...1 << 30), platform: .apns, attempts: 1, due: .now)
      ]
      try await store.checkpoint(page)
    },
    WritePath(name: "addJob") { store, hub in
      try await store.addJob(
        HubJob(
          id: unique("j"), hub: hub, kind: .exportRegistrations, outputContainer: "c",
          importFile: nil, createdAt: .now), forgetting: .distantPast)
    },
    WritePath(name: "eraseUser") { store, hub in
      if try await store.installation("hers", hub: hub) == nil {
        try await store.put(SampleDevice("hers", user: "jo"), hub: hub, at: .now)
      }
      _ = try await store.eraseUser("jo", hub: hub)
    },
    WritePath(name: "restoreRemoved") { store, hub in
      try await store.put(SampleDevice("dead", platform: .adm), hub: hub, at: .now)
      try await condemn(store, hub)
      _ = try await store.restoreRemoved(RemovalWave(), hub: hub, asOf: .now, limit: 10)
    },
    WritePath(name: "clear") { store, hub in
      var device = SampleDevice(unique("old"))
      device.expiresAt = Date(timeIntervalSinceNow: -10)
      try await store.put(device, hub: hub, at: .now)
      _ = try await store.clear(expiredBy: .now)
    },
    WritePath(name: "deleteHub") { store, _ in
      let name = unique("h")
      _ = try await store.createHub(
        named: name, registrationTTL: nil, policies: [], at: .now)
      _ = try await store.deleteHub(named: name)
    },
  ]
}
