import Foundation
import HubCore
import HubTesting
import NotificationHubs
import SQLDatabase
import Testing

@testable import HubStorage

@Suite(
  "Devices on PostgreSQL",
  .enabled(
    if: PostgresServer.isInstalled,
    "PostgreSQL's server is not installed, so there is nothing to connect to; script/bootstrap installs it"
  ))
struct PostgresDeviceTests {
  private static let now = Date(timeIntervalSince1970: 1_893_456_000)

  /// Opens as many stores as nodes on a new database with one hub, of number 1.
  private func withStores(
    _ count: Int = 1, options: PostgresHubStore.Options = .init(),
    _ body: ([PostgresHubStore]) async throws -> Void
  ) async throws {
    let address = try PostgresServer.shared().makeDatabase()
    var stores: [PostgresHubStore] = []
    for _ in 0..<count {
      stores.append(
        try await PostgresHubStore.open(
          address: address, sealing: TestSealing(), options: options))
    }
    _ = try await stores[0].write { session in
      try session.execute(
        """
        INSERT INTO hub (id, name, folded_name, is_disabled, created_at)
        VALUES (1, 'hub1', 'hub1', 0, 0)
        """)
    }
    do { try await body(stores) } catch {
      for store in stores { try await store.close() }
      throw error
    }
    for store in stores { try await store.close() }
  }

  private func put(_ store: PostgresHubStore, _ device: SampleDevice) async throws {
    try await store.putInstallation(
      device.installation, registrations: device.registrations, hub: 1, at: Self.now)
  }

  private func query(_ expression: TagExpression? = nil) -> AudienceQuery {
    AudienceQuery(hub: 1, kind: .native(.apns), expression: expression, asOf: Self.now)
  }

  @Test("an installation is there as it was written, and its registrations reach it")
  func roundTrip() async throws {
    try await withStores { stores in
      let device = SampleDevice(
        "i-1", user: "Bob", tags: ["Red", "it's \"so\", \\ {x}"],
        templates: ["main": PushTemplate(body: "{}")], variables: ["a": "b"])
      try await put(stores[0], device)
      #expect(try await stores[0].installation("i-1", hub: 1) == device.installation)
      for tag in ["red", "it's \"so\", \\ {x}", "$UserId:{bob}"] as [NotificationHubs.Tag] {
        let page = try await stores[0].targets(query(.tag(tag)), after: 0, limit: 10)
        #expect(page.handleTexts == ["HANDLE-i-1"])
      }
    }
  }

  @Test("every constraint of a device table begins with the hub and the slot")
  func slotRule() async throws {
    try await withStores { stores in
      let found = try await stores[0].read { session in
        try session.connection.rows(
          """
          SELECT t.relname, string_agg(a.attname, ',' ORDER BY k.n)
          FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid
          CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, n)
          JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number
          WHERE i.indisunique AND NOT t.relispartition AND t.relname IN
            ('installation', 'registration', 'removed_registration')
          GROUP BY i.indexrelid, t.relname
          """
        ) { ($0.text(0), $0.text(1)) }
      }
      #expect(Set(found.map(\.0)).count == 3)
      for (table, columns) in found {
        #expect(columns.hasPrefix("hub,slot,"), "\(table): \(columns)")
      }
    }
  }

  @Test("nodes that write the same devices at once leave each once, as one of them has written it")
  func manyWriters() async throws {
    try await withStores(2) { stores in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (number, store) in stores.enumerated() {
          for round in 0..<4 {
            for device in 0..<60 {
              group.addTask {
                try await put(
                  store,
                  SampleDevice(
                    "i-\(device)", handle: "H\(device % 20)",
                    tags: ["n\(number)", "r\(round)"].map { NotificationHubs.Tag(rawValue: $0) }))
              }
            }
          }
        }
        try await group.waitForAll()
      }
      #expect(try await stores[0].count(query()) == 60)
      for device in 0..<60 {
        let found = try await stores[1].installation("i-\(device)", hub: 1)
        let tags = try #require(found?.tags)
        let reached = try await stores[0].count(
          query(.and(.and(.tag(tags[0]), .tag(tags[1])), .installation("i-\(device)"))))
        #expect(reached == 1)
      }
      let total = try await stores[0].read { session in
        try session.first("SELECT SUM(total)::int8 FROM registration_count")
      }
      #expect(total == 60)
      // Of the three devices with one handle all but the first are duplicates.
      let page = try await stores[0].targets(query(), after: 0, limit: 100)
      #expect(page.targets.filter { !$0.isDuplicate }.count == 20)
    }
  }
}
