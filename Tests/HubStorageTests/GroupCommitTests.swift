import Foundation
import HubCore
import HubTesting
import NotificationHubs
import SQLDatabase
import StoreContract
import Synchronization
import Testing

@testable import HubStorage

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

  @Test(
    "a tag or a template too many is refused alone, and costs the others no transaction",
    arguments: [false, true])
  func quota(areTemplates: Bool) async throws {
    var options = SQLiteHubStore.Options()
    // Room for those of one more device. Names of templates are tags.
    if areTemplates { options.templatesPerHub = 3 } else { options.tagsPerHub = 4 }
    options.groupTime = .seconds(600)
    try await withTemporaryStore(options: options) { store in
      let hub = try await makeHub(store)
      @Sendable func device(_ number: Int) -> SampleDevice {
        let own = number % 20 == 7 ? ["a\(number)", "b\(number)"] : []
        let bodies = ["{}"] + (areTemplates ? own.map { "{\"\($0)\":1}" } : [])
        return SampleDevice(
          "i-\(number)", tags: (["red"] + (areTemplates ? [] : own)).map(Tag.init(rawValue:)),
          templates: Dictionary(
            uniqueKeysWithValues: bodies.map { ("t\($0)", PushTemplate(body: $0)) }))
      }
      try await store.put(device(100), hub: hub, at: .now)
      let before = await store.statistics().batches.count
      let release = try await holdWriter(of: store)
      let refused = try await withThrowingTaskGroup(of: Bool.self) { group in
        for number in 0..<60 {
          group.addTask {
            do { try await store.put(device(number), hub: hub, at: .now) } catch is StoreError {
              #expect(number % 20 == 7)
              return true
            }
            return false
          }
        }
        while await store.statistics().waiting < 60 { await Task.yield() }
        release()
        return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(refused == 2)
      #expect(await store.statistics().batches.count - before <= 2)
      let query = AudienceQuery(hub: hub, kind: .native(.apns), expression: nil, asOf: .now)
      #expect(try await store.count(query) == 59)
      let kept = try await store.write { session in
        try session.first(
          areTemplates ? "SELECT COUNT(*) FROM template" : "SELECT COUNT(*) FROM tag WHERE kind = 0"
        )
      }
      #expect(kept == (areTemplates ? 3 : 4))
    }
  }

  @Test("after one that fails halfway, the writer knows what the last commit left")
  func failureHalfway() async throws {
    struct Failure: Error {}
    try await withTemporaryStore { store in
      let hub = try await makeHub(store)
      try await store.put(SampleDevice("i-1", tags: ["red"]), hub: hub, at: .now)
      let before = try await store.write { ($0.state, $0.sizes.tags) }
      await #expect(throws: Failure.self) {
        try await store.write { session in
          _ = try TagWriter(session).tagNumber(.plain("blue", hub: hub))
          throw Failure()
        }
      }
      // Counting the tags again after each failure would cost more than the failure.
      let after = try await store.write { ($0.state, $0.sizes.tags) }
      #expect(after == before)
      #expect(after.1 == [hub: 1])
    }
  }

  @Test("after another process has made room and a unit has failed, the room is known")
  func roomOfOthers() async throws {
    struct Failure: Error {}
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      var options = SQLiteHubStore.Options()
      options.tagsPerHub = 2
      let store = try await SQLiteHubStore.open(at: path, sealing: TestSealing(), options: options)
      let other = try await SQLiteHubStore.open(at: path, sealing: TestSealing(), options: options)
      let hub = try await makeHub(store)
      try await store.put(SampleDevice("i-1", tags: ["a", "b"]), hub: hub, at: .now)
      #expect(try await other.deleteInstallation("i-1", hub: hub))
      await #expect(throws: Failure.self) {
        try await store.write { session in
          _ = try TagWriter(session).tagNumber(.everyone(.native(.wns), hub: hub))
          throw Failure()
        }
      }
      try await store.put(SampleDevice("i-2", tags: ["c", "d"]), hub: hub, at: .now)
      try await store.close()
      try await other.close()
    }
  }

  @Test("what is restored beyond a limit counts, also where nothing was counted before")
  func roomOfRestored() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      var options = SQLiteHubStore.Options()
      options.tagsPerHub = 2
      var store = try await SQLiteHubStore.open(at: path, sealing: TestSealing(), options: options)
      let hub = try await makeHub(store)
      try await store.put(SampleDevice("i-1", tags: ["a", "b"]), hub: hub, at: .now)
      try await store.close()
      store = try await SQLiteHubStore.open(at: path, sealing: TestSealing(), options: options)
      try await store.write { session in
        session.isRestoring = true
        defer { session.isRestoring = false }
        _ = try TagWriter(session).tagNumber(.plain("restored", hub: hub))
      }
      let opened = store
      await #expect(throws: StoreError.quota("tags", limit: 2)) {
        try await opened.put(SampleDevice("i-2", tags: ["c"]), hub: hub, at: .now)
      }
      try await store.close()
    }
  }

  @Test("a read that fails between two leaves nothing of either but what is tried again")
  func failingRead() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      let disk = try FaultyDisk()
      var options = SQLiteHubStore.Options()
      options.fileSystem = disk.name
      options.groupTime = .seconds(600)
      var store = try await SQLiteHubStore.open(at: path, sealing: TestSealing(), options: options)
      let hub = try await makeHub(store)
      // So many that the page of one has to be read after the start.
      for number in 0..<10 {
        let tags = (0..<100).map { Tag(rawValue: "some-longer-tag-\(number)-\($0)") }
        try await store.put(SampleDevice("old-\(number)", tags: tags), hub: hub, at: .now)
      }
      try await store.close()
      store = try await SQLiteHubStore.open(at: path, sealing: TestSealing(), options: options)
      let opened = store
      let isThere = try await opened.write { session in try session.hasHub(hub) }
      #expect(isThere)
      let isArmed = Counter()
      let release = try await holdWriter(of: opened)
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await opened.put(SampleDevice("first"), hub: hub, at: .now) }
        while await opened.statistics().waiting < 1 { await Task.yield() }
        group.addTask {
          try await opened.write(as: .asked(.devices)) { _ in
            // Only the first time it is tried.
            if isArmed.value.add(1, ordering: .relaxed).oldValue == 0 {
              disk.fault = .failsNextRead
            }
          }
        }
        while await opened.statistics().waiting < 2 { await Task.yield() }
        group.addTask {
          let tags = [Tag(rawValue: "some-longer-tag-7-7")]
          try await opened.put(SampleDevice("second", tags: tags), hub: hub, at: .now)
        }
        while await opened.statistics().waiting < 3 { await Task.yield() }
        release()
        try await group.waitForAll()
      }
      guard case .none = disk.fault else {
        Issue.record("nothing was read")
        return
      }
      #expect(isArmed.value.load(ordering: .relaxed) == 2)
      let query = AudienceQuery(hub: hub, kind: .native(.apns), expression: nil, asOf: .now)
      #expect(try await opened.count(query) == 12)
      #expect(try await opened.write { try $0.first("SELECT COUNT(*) FROM registration") } == 12)
      try await opened.close()
    }
  }

  @Test("devices that share one are what they would be alone, whatever they have in common")
  func together() async throws {
    // Some share a handle or a user, each eighth comes twice; 20 are there before.
    let devices = (0..<72).map { place in
      let number = place % 8 == 7 ? place - 3 : place
      return SampleDevice(
        "i-\(number)", handle: "H\(number % 37)", user: number % 3 == 0 ? "u\(number % 7)" : nil,
        tags: ["t\(number % 5)", "even\(number % 2)"].map(Tag.init(rawValue:)),
        templates: number % 4 == 0
          ? ["main": PushTemplate(body: "{}"), "b": PushTemplate(body: "{\"n\":\(number % 3)}")]
          : [:])
    }
    var found: [[String]] = []
    var options = SQLiteHubStore.Options()
    // However slow the machine is, it is one transaction.
    options.groupTime = .seconds(600)
    for isShared in [false, true] {
      try await withTemporaryStore(options: options) { store in
        let hub = try await makeHub(store)
        for number in 0..<20 {
          try await store.put(SampleDevice("i-\(number)"), hub: hub, at: .now)
        }
        if isShared {
          let batches = await store.statistics().batches
          let release = try await holdWriter(of: store)
          try await withThrowingTaskGroup(of: Void.self) { group in
            for device in devices {
              group.addTask { try await store.put(device, hub: hub, at: .now) }
            }
            while await store.statistics().waiting < devices.count { await Task.yield() }
            release()
            try await group.waitForAll()
          }
          let after = await store.statistics().batches
          #expect(after.count - batches.count <= 2, "the held one, and all others")
        } else {
          for device in devices { try await store.put(device, hub: hub, at: .now) }
        }
        found.append(try await Self.contents(of: store, hub: hub))
      }
    }
    #expect(found[0] == found[1])
    #expect(found[0].contains { $0.hasPrefix("duplicates: ") && $0 != "duplicates: 0" })
  }

  /// All installations, and all targets with their duplicate mark by tag; the number of an installation
  /// or a registration depends on the order of writes.
  private static func contents(of store: SQLiteHubStore, hub: Hub.ID) async throws -> [String] {
    var all: [String] = []
    for number in 0..<72 {
      let found = try await store.installation("i-\(number)", hub: hub)
      all.append(found.map { String(decoding: $0.jsonData, as: UTF8.self) } ?? "none")
    }
    for kind in [AudienceQuery.Kind.native(.apns), .template] {
      for tag in [nil, "t1", "even0"] {
        let query = AudienceQuery(
          hub: hub, kind: kind, expression: tag.map { .tag(Tag(rawValue: $0)) }, asOf: .now)
        let page = try await store.targets(query, after: 0, limit: 1_000)
        all += page.targets.map {
          "\(kind) \(tag ?? "") \(String(decoding: page.handles[$0.handle], as: UTF8.self))"
        }.sorted()
        // Of those with one handle all but one are duplicates.
        all.append("duplicates: \(page.targets.count { $0.isDuplicate })")
      }
    }
    return all
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

  @Test("a group that has no more time leaves the rest to the next, and all are done")
  func timeIsBounded() async throws {
    var options = SQLiteHubStore.Options()
    options.groupTime = .zero
    try await withTemporaryStore(options: options) { store in
      let hub = try await makeHub(store)
      let before = await store.statistics().batches.count
      let release = try await holdWriter(of: store)
      async let writes = writeMany(100, to: store, hub: hub)
      while await store.statistics().waiting < 100 { await Task.yield() }
      release()
      let results = try await writes
      #expect(!results.contains { !$0.isKept })
      // Installations are written up to 32 at a time.
      #expect(await store.statistics().batches.count - before >= 4)
      let query = AudienceQuery(hub: hub, kind: .native(.apns), expression: nil, asOf: .now)
      #expect(try await store.count(query) == 100)
    }
  }

  private final class Counter: Sendable {
    let value = Atomic(0)
  }

  @Test(
    "a write is not behind a flood of another hub's, nor of another key's",
    arguments: TestedEngine.installed, [false, true])
  func floods(engine: TestedEngine, isSameHub: Bool) async throws {
    // One piece of work a transaction, so that the order shows.
    let store = try await temporaryStore(on: engine, isGrouping: false)
    let hubs = [
      try await store.createHub(named: "flooded", HubContents(), at: .now),
      try await store.createHub(named: "other", HubContents(), at: .now),
    ]
    @Sendable func put(_ id: String, _ hub: Hub, by key: String) async throws {
      let caller = Caller(name: key, via: .key, rights: .listen)
      try await Admission.$current.withValue(Admission(hub: hub, caller: caller)) {
        // Some fifty rows: five have a turn.
        let tags = (0..<50).map { Tag(rawValue: "t\($0)") }
        try await store.put(SampleDevice(id, tags: tags), hub: hub.id, at: .now)
      }
    }
    let done = Counter()
    let count = 300
    // PostgreSQL's has the first of them.
    let begun = engine == .postgres ? 1 : 0
    @Sendable func waitUntilBrought(_ count: Int) async {
      while await store.statistics().waiting + begun + done.value.load(ordering: .relaxed) < count {
        await Task.yield()
      }
    }
    let release = try await holdWriter(of: store)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<count {
        group.addTask {
          defer { done.value.add(1, ordering: .relaxed) }
          // Whoever waits at a lock for too long is refused.
          do { try await put("f-\(number)", hubs[0], by: "app") } catch StoreError.locked {}
        }
      }
      await waitUntilBrought(count)
      group.addTask { try await put("one", isSameHub ? hubs[0] : hubs[1], by: "backend") }
      await waitUntilBrought(count + 1)
      release()
      try await group.waitForAll()
    }
    #expect(await store.statistics().waiting == 0)
    let before = try #require(try await writesBefore("one", in: store))
    #expect(before < 50, "\(before) of the flood were written before")
  }

  /// How many installations were written before this one, each in a transaction of its own.
  private func writesBefore(_ id: String, in store: any HubStore) async throws -> Int64? {
    func query(_ order: String) -> String {
      """
      SELECT COUNT(*) FROM installation
      WHERE \(order) < (SELECT \(order) FROM installation WHERE public_id = '\(id)')
      """
    }
    if let store = store as? PostgresHubStore {
      let sql = query("xmin::text::bigint")
      return try await store.read { try $0.first(sql) }
    }
    let sql = query("id")
    return try await (store as? SQLiteHubStore)?.write { try $0.first(sql) }
  }

  /// Keeps the thread that writes devices from its work until the result is called.
  private func holdWriter(of store: any HubStore) async throws -> () -> Void {
    if let store = store as? PostgresHubStore {
      let other = try PostgresConnection(
        address: store.engine.shared.address, component: "somebody")
      try other.execute("BEGIN; LOCK TABLE installation IN EXCLUSIVE MODE")
      return { other.close() }
    }
    let store = try #require(store as? SQLiteHubStore)
    let isOver = DispatchSemaphore(value: 0)
    let (begun, hasBegun) = AsyncStream<Void>.makeStream()
    Task {
      try await store.write { _ in
        hasBegun.finish()
        isOver.wait()
      }
    }
    for await _ in begun {}
    return { isOver.signal() }
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
