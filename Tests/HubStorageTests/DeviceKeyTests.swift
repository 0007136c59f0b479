import Foundation
import HubCore
import HubTesting
import NotificationHubs
import SQLDatabase
import StoreContract
import Testing

@testable import HubStorage

@Suite("Devices are found by their keys")
struct DeviceKeyTests {
  /// What a hub says of each device by its id, its user and its handle.
  private static func answers(_ store: SQLiteHubStore, hub: Hub.ID) async throws -> [String] {
    var answers: [String] = []
    for number in 0..<40 {
      if let found = try await store.installation("i-\(number)", hub: hub) {
        answers.append("i-\(number) \(found.userID ?? "") \(found.pushChannel.handle)")
      }
    }
    for user in 0..<6 {
      let filter = InstallationFilter(userID: "U\(user)", asOf: .now)
      let page = try await store.installations(filter, hub: hub, after: nil, limit: 100)
      answers.append("u\(user) \(page.installations.map(\.installationID).sorted())")
    }
    for handle in 0..<25 {
      let filter = try RegistrationFilter(
        parsing: "DeviceToken eq '\(String(format: "%064X", handle))'")
      let page = try await store.registrations(
        .device(filter), hub: hub, asOf: .now, after: 0, limit: 100)
      answers.append("h\(handle) \(page.registrations.map(\.number))")
    }
    return answers
  }

  private static func options(limit: Int, portion: Int = 1) -> SQLiteHubStore.Options {
    var options = SQLiteHubStore.Options()
    options.keyLogLimit = limit
    options.keyPortion = portion
    return options
  }

  /// A device whose user and handle it shares with some others.
  private static func device(
    _ number: Int, _ generator: inout SeededGenerator
  ) -> SampleDevice {
    let handle = String(format: "%064X", Int.random(in: 0..<25, using: &generator))
    let user = Int.random(in: 0..<7, using: &generator)
    return SampleDevice("i-\(number)", handle: handle, user: user == 6 ? nil : "u\(user)")
  }

  @Test(
    "the same whether the keys wait in the log, are on their way into the index, or are read after a restart",
    arguments: 1...6 as ClosedRange<UInt64>)
  func sameAnswers(seed: UInt64) async throws {
    try await withDirectory { directory in
      var all: [[String]] = []
      for (limit, portion) in [(1, 1), (7, 1), (60, 1), (60, 40), (262_144, 2_048)] {
        var generator = SeededGenerator(seed: seed)
        let path = directory.path("hub-\(limit)-\(portion).sqlite")
        let options = Self.options(limit: limit, portion: portion)
        var store = try await SQLiteHubStore.open(
          at: path, sealing: TestSealing(), options: options)
        let hub = try await makeHub(store)
        for step in 0..<300 {
          let number = Int.random(in: 0..<40, using: &generator)
          switch Int.random(in: 0..<12, using: &generator) {
          case 0..<9:
            try await store.put(Self.device(number, &generator), hub: hub, at: .now)
          case 9..<11:
            _ = try await store.deleteInstallation("i-\(number)", hub: hub)
          default:
            _ = try await store.eraseUser("u\(number % 6)", hub: hub)
          }
          guard step % 70 == 69 else { continue }
          let before = try await Self.answers(store, hub: hub)
          try await store.close()
          store = try await SQLiteHubStore.open(
            at: path, sealing: TestSealing(), options: options)
          let after = try await Self.answers(store, hub: hub)
          #expect(before == after, "limit \(limit), portion \(portion), step \(step)")
        }
        all.append(try await Self.answers(store, hub: hub))
        try await store.close()
      }
      #expect(all.allSatisfy { $0 == all[0] })
      #expect(all[0].count { $0.hasPrefix("i-") } > 5)
    }
  }

  @Test("a key that another process has written, or brought into the index, is found at once")
  func otherProcesses() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      let one = try await SQLiteHubStore.open(
        at: path, sealing: TestSealing(), options: Self.options(limit: 5))
      let two = try await SQLiteHubStore.open(
        at: path, sealing: TestSealing(), options: Self.options(limit: 9))
      let hub = try await makeHub(one)
      for number in 0..<60 {
        let (writer, reader) = number % 3 == 0 ? (one, two) : (two, one)
        try await writer.put(SampleDevice("i-\(number)", user: "ann"), hub: hub, at: .now)
        #expect(try await reader.installation("i-\(number)", hub: hub) != nil)
        if number % 4 == 3 {
          #expect(try await reader.deleteInstallation("i-\(number - 1)", hub: hub))
          #expect(try await writer.installation("i-\(number - 1)", hub: hub) == nil)
        }
      }
      let left = try await one.installations(
        InstallationFilter(userID: "Ann", asOf: .now), hub: hub, after: nil, limit: 100)
      #expect(left.installations.count == 45)
      try await one.close()
      try await two.close()
    }
  }

  @Test("new keys go into the index slice by slice, in its order, and none holds the writer up")
  func slices() {
    let recent = RecentKeys(writer: 1)
    var generator = SeededGenerator(seed: 3)
    let changes = (0..<50_000).map { number in
      DeviceKeyChange(
        key: DeviceKey(hash: .random(in: .min ... .max, using: &generator)), number: Int64(number))
    }
    recent.apply(changes + [changes[7]])
    recent.freeze()
    #expect(recent.changes == 0)
    var all: [DeviceKeyChange] = []
    for slice in 0..<RecentKeys.Generation.sliceCount {
      let keys = recent.frozenKeys(slice: slice)
      #expect(keys.count < 2 * changes.count / RecentKeys.Generation.sliceCount)
      all += keys
    }
    #expect(all == changes.sorted { $0.key.hash < $1.key.hash })
  }

  /// Fills the log with keys, so that five devices more, of two keys each, begin a merge.
  private static func fillLog(of store: SQLiteHubStore, limit: Int64) async throws {
    try await store.write { session in
      for number in 1...limit - 10 {
        let hash = Int64(truncatingIfNeeded: UInt64(number) &* 0x9E37_79B9_7F4A_7C15)
        try DeviceKeyWriter(session).addKey(DeviceKey(hash: hash), of: number)
      }
    }
  }

  @Test("new keys go into the index in portions, not with each transaction, until all are in it")
  func portions() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      let store = try await SQLiteHubStore.open(
        at: path, sealing: TestSealing(), options: Self.options(limit: 3_200, portion: 320))
      let hub = try await makeHub(store)
      try await Self.fillLog(of: store, limit: 3_200)
      let connection = try SQLiteConnection(path: path)
      defer { connection.close() }
      var counts: [Int64] = []
      while counts.count < 1_000, counts.last ?? 0 < 3_200 {
        try await store.put(SampleDevice("i-\(counts.count)"), hub: hub, at: .now)
        counts.append(try connection.numbers("SELECT COUNT(*) FROM device_key")[0])
      }
      #expect(counts.first == 0 && counts.last == 3_200)
      // Each device makes 2 + 320 / 32 keys due, and beginning a slice counts as one.
      let steps = zip(counts, counts.dropFirst()).map { $1 - $0 }.filter { $0 > 0 }
      #expect(steps.count <= counts.count / 20)
      #expect(steps.dropLast().allSatisfy { 280...324 ~= $0 }, "\(steps)")
      try await store.close()
    }
  }

  @Test("a merge that restarts interrupt ends nevertheless, and the log does not grow")
  func interruptedMerge() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      // As if earlier merges had been interrupted: the log has twice what begins one.
      var store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
      let hub = try await makeHub(store)
      try await Self.fillLog(of: store, limit: 6_410)
      // At the usual pace it takes some 550 devices.
      let options = Self.options(limit: 3_200, portion: 320)
      for number in 0..<300 {
        if number % 100 == 1 {
          try await store.close()
          store = try await SQLiteHubStore.open(at: path, sealing: TestSealing(), options: options)
        }
        try await store.put(SampleDevice("i-\(number)"), hub: hub, at: .now)
      }
      try await store.close()
      let connection = try SQLiteConnection(path: path)
      defer { connection.close() }
      #expect(try connection.numbers("SELECT COUNT(*) FROM device_key")[0] >= 6_400)
      #expect(try connection.numbers("SELECT COUNT(*) FROM key_log")[0] < 300)
    }
  }

  @Test("a key that a portion's own transaction removes does not return to the index")
  func removedWithPortion() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      let store = try await SQLiteHubStore.open(
        at: path, sealing: TestSealing(), options: Self.options(limit: 100, portion: 64))
      let hub = try await makeHub(store)
      for number in 0..<51 { try await store.put(SampleDevice("i-\(number)"), hub: hub, at: .now) }
      for number in 0..<50 {
        #expect(try await store.deleteInstallation("i-\(number)", hub: hub))
      }
      for number in 0..<200 {
        try await store.put(SampleDevice("i-50", handle: "\(number)"), hub: hub, at: .now)
      }
      try await store.close()
      let connection = try SQLiteConnection(path: path)
      defer { connection.close() }
      let left = try connection.numbers(
        """
        SELECT number FROM device_key WHERE number NOT IN
          (SELECT id FROM installation UNION SELECT id FROM registration)
        """)
      #expect(left == [])
    }
  }

  @Test("nothing is left of the keys of devices that are gone, and the log does not grow")
  func nothingLeft() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      let store = try await SQLiteHubStore.open(
        at: path, sealing: TestSealing(), options: Self.options(limit: 8))
      let kept = try await makeHub(store)
      try await store.put(SampleDevice("kept"), hub: kept, at: .now)
      let hub = try await store.createHub(
        named: "other", registrationTTL: nil, policies: [], at: .now)
      var generator = SeededGenerator(seed: 9)
      for number in 0..<40 {
        try await store.put(Self.device(number, &generator), hub: hub.id, at: .now)
      }
      for number in 0..<10 { _ = try await store.deleteInstallation("i-\(number)", hub: hub.id) }
      _ = try await store.createRegistration(
        RegistrationDraft(kind: .native, platform: .apns, channel: .handle("AB")), hub: hub.id,
        at: .now)
      _ = try await store.deleteHub(named: "other")
      while try await store.clear(expiredBy: .now) {}
      // What waits goes into the index with later writes.
      for number in 0..<200 {
        try await store.put(SampleDevice("kept", handle: "AA\(number)"), hub: kept, at: .now)
      }
      #expect(try await store.installations(hub: kept).count == 1)
      try await store.close()
      let connection = try SQLiteConnection(path: path)
      defer { connection.close() }
      let numbers = try connection.numbers(
        """
        SELECT number FROM device_key WHERE number NOT IN
          (SELECT id FROM installation UNION SELECT id FROM registration)
        """)
      #expect(numbers == [])
      #expect(try connection.numbers("SELECT COUNT(*) FROM key_log")[0] < 60)
    }
  }

  @Test("a write that fails halfway leaves neither keys behind nor takes any away")
  func rollback() async throws {
    struct Refusal: Error {}
    try await withDirectory { directory in
      let store = try await SQLiteHubStore.open(
        at: directory.path("hub.sqlite"), sealing: TestSealing(), options: Self.options(limit: 4))
      let hub = try await makeHub(store)
      for number in 0..<6 {
        try await store.put(
          SampleDevice("i-\(number)", user: "u\(number)"), hub: hub, at: .now)
      }
      let before = try await Self.answers(store, hub: hub)
      for number in 0..<6 {
        await #expect(throws: Refusal.self) {
          try await store.write { session in
            _ = try InstallationWriter(session).deleteInstallation(
              "i-\(number)", idHash: PreparedInstallation.hash("i-\(number)"), hub: hub)
            throw Refusal()
          }
        }
        #expect(try await Self.answers(store, hub: hub) == before)
      }
      try await store.close()
    }
  }

  @Test("a damaged log is an error, not a trap")
  func damage() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      var store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
      let hub = try await makeHub(store)
      try await store.put(SampleDevice("i-1"), hub: hub, at: .now)
      try await store.close()
      let connection = try SQLiteConnection(path: path)
      try connection.writing { try connection.execute("UPDATE key_log SET changes = x'ffffff'") }
      connection.close()
      store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
      await #expect(throws: StoreError.self) { _ = try await store.installation("i-1", hub: hub) }
      await #expect(throws: StoreError.self) {
        try await store.put(SampleDevice("i-2"), hub: hub, at: .now)
      }
      try await store.close()
    }
  }

  @Test("handles of other bytes have other hashes, though they are equal as texts")
  func composed() {
    let handles = ["https://x/\u{E9}", "https://x/e\u{301}"]
    #expect(handles[0] == handles[1])
    let drafts = handles.map {
      RegistrationDraft(kind: .native, platform: .wns, channel: .handle($0))
    }
    let first = PreparedRegistration(drafts[0], hub: 1)
    #expect(PreparedRegistration(drafts[0], hub: 1, after: first).handleHash == first.handleHash)
    let second = PreparedRegistration(drafts[1], hub: 1, after: first)
    #expect(second.handleHash != first.handleHash)
    #expect(second.handleHash == PreparedRegistration(drafts[1], hub: 1).handleHash)
  }
}
