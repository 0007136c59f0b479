import Foundation
import HubCore
import HubTesting
import NotificationHubs
import SQLDatabase
import StoreContract
import Testing

@testable import HubStorage

@Suite("The members of a tag in the file")
struct TagPartTests {
  static let patterns: [[UInt16]] = [
    [0], [65_535], [0, 65_535], Array(100..<9_000), Array(0...65_535),
    stride(from: 0, to: 65_535, by: 2).map { UInt16($0) },
    (0..<400).map { UInt16($0 * 163 % 65_536) }, [63, 64, 127, 128],
  ]

  @Test("come back, in no more than 8 KiB", arguments: patterns)
  func roundTrip(members: [UInt16]) throws {
    var part = TagPart()
    for member in members { part.insert(member) }
    let bytes = try #require(part.bytes)
    #expect(bytes.count <= 1 + 8_192)
    let again = try TagPart(bytes)
    #expect(again.members(of: 3) == Set(members).sorted().map { 3 << 16 | UInt32($0) })
    #expect(again.count == Set(members).count)
    for member in members { part.remove(member) }
    #expect(part.bytes == nil)
  }

  @Test("that are damaged are refused, not trusted")
  func damage() {
    var generator = SeededGenerator(seed: 4)
    for bytes: [UInt8] in [
      [], [2], [1, 0], [0, 0xff, 0xff, 0xff, 0x7f, 0], [0, 0, 0x80, 0x80, 4], [0, 0x80],
    ] {
      #expect(throws: StoreError.self) { try TagPart(bytes) }
    }
    for _ in 0..<2_000 {
      let bytes = (0..<Int.random(in: 0...40, using: &generator)).map { _ in
        UInt8.random(in: 0...255, using: &generator)
      }
      // Some are valid; none may trap.
      _ = try? TagPart(bytes)
      try? TagLog.decode(bytes) { _ in }
    }
  }

  @Test("have the last change of each registration in the log")
  func log() throws {
    let changes = [
      TagChange(tag: 9, registration: 70_000, isMember: true),
      TagChange(tag: 2, registration: .max, isMember: true),
      TagChange(tag: 9, registration: 5, isMember: true),
      TagChange(tag: 9, registration: 70_000, isMember: false),
    ]
    var read: [String] = []
    try TagLog.decode(TagLog.encode(changes)) {
      read.append("\($0.tag) \($0.registration) \($0.isMember)")
    }
    #expect(read == ["2 4294967295 true", "9 5 true", "9 70000 false"])
  }

  @Test("go from the log into the parts a few with each transaction, with the same answers")
  func mergedInSlices() async throws {
    var options = SQLiteHubStore.Options()
    // Two thousand parts are due.
    options.tagLogLimit = 32_000
    try await withTemporaryStore(options: options) { store in
      let hub = try await makeHub(store)
      func parts() async throws -> Int {
        try await store.read { session in
          try session.connection.numbers("SELECT COUNT(*) FROM tag_part").first.map(Int.init) ?? 0
        }
      }
      func put(_ number: Int, _ tags: some Sequence<Int>) async throws {
        let tags = tags.map { NotificationHubs.Tag(rawValue: "t\($0)") }
        try await store.put(SampleDevice("i-\(number)", tags: tags), hub: hub, at: .now)
      }
      var most = 0
      var before = 0
      for number in 0..<24 {
        try await put(number, (number * 100)..<(number * 100 + 100))
        let now = try await parts()
        most = max(most, now - before)
        before = now
      }
      #expect(before > 0 && before < 1_500, "\(before)")
      // Some of what is on its way changes meanwhile.
      try await put(3, [300, 301])
      _ = try await store.deleteInstallation("i-23", hub: hub)
      before = try await parts()
      for number in 100..<160 {
        try await put(number, [number])
        let now = try await parts()
        most = max(most, now - before)
        before = now
      }
      #expect(before >= 2_000 && most <= 64 + 5 * 103 / 4, "\(before), \(most)")
      func reached(_ tag: String) async throws -> Int {
        try await store.count(
          AudienceQuery(
            hub: hub, kind: .native(.apns), expression: .tag(.init(rawValue: tag)), asOf: .now))
      }
      for (tag, count) in [("t0", 1), ("t300", 1), ("t302", 0), ("t2350", 0), ("t150", 2)] {
        #expect(try await reached(tag) == count, "\(tag)")
      }
    }
  }

  @Test("are in the parts in the end, though restarts interrupt the merge")
  func interruptedMerge() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      var options = SQLiteHubStore.Options()
      options.tagLogLimit = 16 * 12_800
      var store = try await SQLiteHubStore.open(at: path, sealing: TestSealing(), options: options)
      let hub = try await makeHub(store)
      // 12 800 parts are due. Without interruption they take some 180 devices.
      for tags in [1_000..<13_700, 13_700..<13_800] as [Range<Int64>] {
        try await store.write { session in
          for tag in tags { TagWriter(session).setTag(tag, of: 1, isMember: true) }
          try session.connection.execute("UPDATE hub SET name = name")
        }
      }
      for number in 0..<240 {
        if number % 80 == 79 {
          try await store.close()
          store = try await SQLiteHubStore.open(at: path, sealing: TestSealing(), options: options)
        }
        try await store.put(SampleDevice("i-\(number)"), hub: hub, at: .now)
      }
      try await store.close()
      let connection = try SQLiteConnection(path: path)
      defer { connection.close() }
      #expect(try connection.numbers("SELECT COUNT(*) FROM tag_part")[0] >= 12_800)
      // The log does not grow.
      #expect(try connection.numbers("SELECT COUNT(*) FROM tag_log")[0] < 200)
    }
  }

  @Test("are the same whether they wait in the log, are merged, or are read after a restart")
  func merging() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      var found: [[Int]] = []
      for (round, limit) in [1, 40, 65_536].enumerated() {
        var options = SQLiteHubStore.Options()
        options.tagLogLimit = limit
        var store = try await SQLiteHubStore.open(
          at: "\(path)\(round)", sealing: TestSealing(), options: options)
        let hub = try await makeHub(store)
        for number in 0..<120 {
          let tags = (0..<3).map { Tag(rawValue: "t\((number * 7 + $0) % 30)") }
          try await store.put(SampleDevice("i-\(number % 50)", tags: tags), hub: hub, at: .now)
          if number % 9 == 0 {
            _ = try await store.deleteInstallation("i-\(number % 11)", hub: hub)
          }
        }
        var counts: [[Int]] = []
        for _ in 0..<2 {
          var row: [Int] = []
          for tag in 0..<30 {
            let query = AudienceQuery(
              hub: hub, kind: .native(.apns), expression: .tag(Tag(rawValue: "t\(tag)")),
              asOf: .now)
            row.append(try await store.count(query))
          }
          counts.append(row)
          try await store.close()
          store = try await SQLiteHubStore.open(
            at: "\(path)\(round)", sealing: TestSealing(), options: options)
        }
        try await store.close()
        #expect(counts[0] == counts[1])
        found.append(counts[0])
      }
      #expect(found[0] == found[1] && found[1] == found[2])
      #expect(found[0].contains { $0 > 1 })
    }
  }
}
