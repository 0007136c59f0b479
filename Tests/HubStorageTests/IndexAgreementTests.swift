import Foundation
import HubCore
import HubStorage
import HubTesting
import NotificationHubs
import StoreContract
import Testing

@Suite("Bitmaps in memory and rows in the file")
struct IndexAgreementTests {
  private static let tags: [NotificationHubs.Tag] = ["a", "b", "c", "d"]

  @Test("agree after many writers have changed the same devices at the same time")
  func agree() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      let store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
      let hub = try await makeHub(store)
      // So that every bitmap is in memory while the writes come.
      let before = try await members(store, hub)
      #expect(Set(before) == [[]])
      try await withThrowingTaskGroup(of: Void.self) { group in
        for writer in 0..<64 {
          group.addTask {
            for round in 0..<10 {
              let number = (writer * 7 + round * 3) % 16
              if (writer + round) % 5 == 0 {
                _ = try await store.deleteInstallation("i-\(number)", hub: hub)
              } else {
                let tags = Self.tags.enumerated().filter { (writer + round) >> $0.offset & 1 == 1 }
                // Handles are shared by up to three devices.
                let device = SampleDevice(
                  "i-\(number)", handle: "H\(number % 6)", tags: tags.map(\.element),
                  templates: round % 2 == 0 ? ["main": PushTemplate(body: "{}")] : [:])
                try await store.put(device, hub: hub, at: .now)
              }
              if round % 4 == 0 { _ = try await members(store, hub) }
            }
          }
        }
        try await group.waitForAll()
      }
      let inMemory = try await members(store, hub)
      try await expectCounts(inMemory, store, hub)
      try await store.close()
      let again = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
      let inFile = try await members(again, hub)
      try await expectCounts(inFile, again, hub)
      try await again.close()
      #expect(inMemory == inFile)
      #expect(inFile != before)
    }
  }

  /// Counts of native registrations and of templates by name are those of ``members(_:_:)``.
  private func expectCounts(
    _ members: [[String]], _ store: SQLiteHubStore, _ hub: Hub.ID
  ) async throws {
    var counted: [[Int]] = [[], []]
    for expression in [nil] + Self.tags.map({ TagExpression.tag($0) }) {
      let counts = try await store.counts(of: expression, hub: hub, asOf: .now)
      counted[0].append(counts.native[.apns] ?? 0)
      counted[1].append(counts.templates[TemplateKey(platform: .apns, name: "main")] ?? 0)
    }
    #expect(counted.joined().elementsEqual(members.map(\.count)))
  }

  /// Number and duplicate mark of everyone, by tag and kind.
  private func members(_ store: SQLiteHubStore, _ hub: Hub.ID) async throws -> [[String]] {
    var all: [[String]] = []
    for kind in [AudienceQuery.Kind.native(.apns), .template] {
      for expression in [nil] + Self.tags.map({ TagExpression.tag($0) }) {
        let query = AudienceQuery(hub: hub, kind: kind, expression: expression, asOf: .now)
        let page = try await store.targets(query, after: 0, limit: 1_000)
        all.append(page.targets.map { "\($0.registration) \($0.isDuplicate)" })
      }
    }
    return all
  }
}
