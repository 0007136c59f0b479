import Foundation
import HubCore
import HubStorage
import HubTesting
import NotificationHubs
import StoreContract
import Testing

@Suite("A database with damaged pages")
struct DamagedPageTests {
  /// Whatever stands in a page, reading it must end in an answer or an error.
  @Test(
    "answers or says that it is damaged, wherever the damage is", arguments: [1, 2, 3] as [UInt64])
  func everyPage(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    try await withDirectory { directory in
      let whole = try Data(contentsOf: URL(fileURLWithPath: try await makeFile(directory)))
      let pages = whole.count / 4096
      var refusals = 0
      for page in 0..<pages {
        var damaged = whole
        let range = page * 4096..<(page + 1) * 4096
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: damaged.replaceSubrange(range, with: Data(count: 4096))
        case 1:
          damaged.replaceSubrange(
            range, with: (0..<4096).map { _ in UInt8.random(in: 0...255, using: &generator) })
        case 2:
          for _ in 0..<20 {
            damaged[range.randomElement(using: &generator) ?? 0] ^=
              1
              << UInt8.random(
                in: 0..<8, using: &generator)
          }
        default:
          // Another page of the same file.
          let other = Int.random(in: 0..<pages, using: &generator) * 4096
          damaged.replaceSubrange(range, with: whole[other..<other + 4096])
        }
        let path = directory.path("damaged.sqlite")
        try damaged.write(to: URL(fileURLWithPath: path))
        if await isRefused(path, "seed \(seed), page \(page + 1) of \(pages)") { refusals += 1 }
        for suffix in ["", "-wal", "-shm"] {
          try? FileManager.default.removeItem(atPath: path + suffix)
        }
      }
      // Otherwise the damage was not where the calls look.
      #expect(refusals > pages / 4)
    }
  }

  @Test("serves the hubs whose pages are sound, and health says what to do")
  func otherHubs() async throws {
    try await withDirectory { directory in
      let path = try await makeFile(directory)
      let damaged = try damagePages(
        of: URL(fileURLWithPath: path), holding: "second-device", sparing: "first-device")
      try #require(damaged > 0)
      let store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
      let first = try #require(try await store.hub(named: "first")).id
      let second = try #require(try await store.hub(named: "second")).id
      var refused = 0
      for number in 0..<60 {
        #expect(try await store.installation("first-device-\(number)", hub: first) != nil)
        do {
          _ = try await store.installation("second-device-\(number)", hub: second)
        } catch let error as StoreError {
          guard case .corrupt = error else {
            Issue.record("not told as damage: \(error)")
            continue
          }
          refused += 1
        }
      }
      #expect(refused > 0)
      guard case .unavailable(let reason) = await store.condition() else {
        Issue.record("the store is \(await store.condition())")
        return
      }
      #expect(reason.contains("damaged") && reason.contains("backup"))
      // New work for the sound hub is taken.
      try await store.accept(WritePath.record("n", first))
      #expect(try await store.notification(NotificationID(rawValue: "n"), hub: first) != nil)
      try await store.close()
    }
  }

  @Test("that is cut short is noticed when it is opened")
  func cutShort() async throws {
    try await withDirectory { directory in
      let path = try await makeFile(directory)
      let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
      try file.truncate(atOffset: file.seekToEnd() / 2 / 4096 * 4096)
      try file.close()
      do {
        let store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
        guard case .unavailable = await store.condition() else {
          Issue.record("the store is \(await store.condition())")
          return
        }
        try await store.close()
      } catch let error as StoreError {
        guard case .corrupt = error else { throw error }
      }
    }
  }

  // MARK: Making and asking

  /// A closed file with two hubs; the rows of each fill pages of their own.
  private func makeFile(_ directory: TemporaryDirectory) async throws -> String {
    let path = directory.path("hub.sqlite")
    let store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
    for name in ["first", "second"] {
      let hub = try await store.createHub(
        named: name, registrationTTL: nil, policies: [], at: .now
      ).id
      for number in 0..<60 {
        var device = SampleDevice(
          "\(name)-device-\(number)", user: "kim", tags: ["red", Tag(rawValue: "t\(number)")])
        device.installation.pushVariables = ["v": String(repeating: "x", count: 300)]
        try await store.put(device, hub: hub, at: .now)
      }
      try await store.accept(WritePath.record("\(name)-n", hub))
    }
    try await store.close()
    return path
  }

  /// Opens a damaged file and asks everything of it.
  /// - Returns: Whether it has said at least once that it is damaged.
  private func isRefused(_ path: String, _ comment: Comment) async -> Bool {
    var isDamaged = false
    func attempt(_ body: () async throws -> Void) async {
      do { try await body() } catch let error as StoreError {
        if case .corrupt = error { isDamaged = true }
      } catch {
        Issue.record("\(error)", sourceLocation: #_sourceLocation)
      }
    }
    await attempt {
      // This disk does not sync: each of the many writes would wait for the machine's.
      let disk = try FaultyDisk()
      defer { withExtendedLifetime(disk) {} }
      var options = SQLiteHubStore.Options()
      options.fileSystem = disk.name
      let store = try await SQLiteHubStore.open(
        at: path, sealing: TestSealing(), options: options)
      for hub in 1...2 as ClosedRange<Hub.ID> {
        for call in Self.reads { await attempt { try await call(store, hub) } }
        for path in WritePath.all { await attempt { try await path.write(store, hub) } }
      }
      let condition = await store.condition()
      if isDamaged {
        #expect(condition != .healthy, comment)
      } else if condition != .healthy {
        isDamaged = true
      }
      try await store.close()
    }
    return isDamaged
  }

  private static let reads: [@Sendable (SQLiteHubStore, Hub.ID) async throws -> Void] = [
    { store, _ in _ = try await store.hubs() },
    { _ = try await $0.accessPolicies(hub: $1) },
    { _ = try await $0.credentials(hub: $1) },
    { store, hub in
      for number in 0..<60 {
        _ = try await store.installation(
          (hub == 1 ? "first" : "second") + "-device-\(number)", hub: hub)
      }
    },
    { _ = try await $0.installations(hub: $1) },
    {
      _ = try await $0.targets(
        AudienceQuery(hub: $1, kind: .native(.apns), expression: nil, asOf: .now), after: 0,
        limit: 1000)
    },
    {
      _ = try await $0.targets(
        AudienceQuery(hub: $1, kind: .native(.apns), expression: .tag("red"), asOf: .now),
        after: 0, limit: 1000)
    },
    {
      _ = try await $0.count(
        AudienceQuery(hub: $1, kind: .native(.apns), expression: .not(.tag("t1")), asOf: .now))
    },
    { store, _ in _ = try await store.unfinishedNotifications() },
    {
      _ = try await $0.dueRetries(of: LaneKey(hub: $1, platform: .apns), asOf: .now, limit: 100)
    },
    { store, _ in _ = try await store.retryLanes() },
    { store, _ in _ = try await store.unfinishedJobs() },
    { _ = try await $0.registrations(.all, hub: $1, asOf: .now, after: 0, limit: 100) },
    { _ = try await $0.feedbackHours(hub: $1) },
  ]
}
