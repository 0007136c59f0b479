import Foundation
import HubCore
import HubTesting
import NotificationHubs
import SQLDatabase
import StoreContract
import Testing

@testable import HubStorage

@Suite(
  "Servers that are updated one after the other",
  .enabled(if: PostgresStores.areInstalled, "PostgreSQL's server is not installed"))
struct RollingUpgradeTests {
  private static let now = Date(timeIntervalSince1970: 1_893_456_000)

  private static func steps() throws -> [Migration] {
    PostgresSchema.migrations(try #require(DeviceSlots(count: 16)), sealing: TestSealing())
  }

  /// A step of the next version.
  /// - Parameter oldest: See `PostgresSchema.step`.
  private static func nextStep(besideVersionsFrom oldest: Int? = nil) throws -> Migration {
    PostgresSchema.step(try steps().count + 1, besideVersionsFrom: oldest) { connection in
      try connection.execute(
        """
        ALTER TABLE hub ADD COLUMN colour TEXT;
        ALTER TABLE work ADD COLUMN weight INT NOT NULL DEFAULT 1;
        CREATE TABLE of_the_future (id INT PRIMARY KEY);
        """)
    }
  }

  /// Does what the first server of the next version does with a database.
  private func update(_ store: PostgresHubStore, besideVersionsFrom oldest: Int?) throws {
    let connection = try PostgresConnection(
      address: store.engine.shared.address, component: "hub")
    defer { connection.close() }
    try connection.migrate(
      with: Self.steps() + [Self.nextStep(besideVersionsFrom: oldest)])
  }

  private func record(_ id: String, _ hub: Hub.ID) -> NotificationRecord {
    NotificationRecord(
      id: NotificationID(rawValue: id), hub: hub,
      request: NotificationRequest(format: .native(.apns), body: Array("{}".utf8)),
      state: .enqueued, enqueuedAt: Self.now)
  }

  @Test("servers of the version before go on, and start, beside a new one that allows it")
  func beside() async throws {
    try await PostgresStores.withNodes(1) { nodes in
      let old = nodes[0]
      let hub = try await old.createHub(named: "hub1", HubContents(), at: Self.now)
      try await old.put(SampleDevice("i-1"), hub: hub.id, at: Self.now)
      try await old.accept(record("n-1", hub.id))
      let known = try Self.steps().count
      try update(old, besideVersionsFrom: known)

      try await old.heartbeat?.beat()
      #expect(await old.condition() == .healthy)
      try await old.put(SampleDevice("i-2"), hub: hub.id, at: Self.now)
      try await old.accept(record("n-2", hub.id))
      let work = try await old.claimWork(limit: 9).records
      #expect(work.map(\.id.rawValue) == ["n-1", "n-2"])
      for record in work {
        var page = Checkpoint(
          notification: record.id, hub: hub.id, lease: record.lease, at: Self.now)
        page.state = .completed
        #expect(try await old.checkpoint(page).isFinished)
      }
      let again = try await PostgresStores.open(old.engine.shared.address)
      #expect(try await again.installation("i-2", hub: hub.id) != nil)
      _ = try await again.createHub(named: "hub2", HubContents(), at: Self.now)
      try await again.close()
      let version = try await old.read { try $0.connection.schemaVersion() }
      #expect(version == known + 1, "the older one leaves it as it is")
    }
  }

  @Test("servers of the version before stop, and do not start, where a new one allows none")
  func refused() async throws {
    try await PostgresStores.withNodes(1) { nodes in
      let old = nodes[0]
      let hub = try await old.createHub(named: "hub1", HubContents(), at: Self.now)
      try await old.accept(record("n-1", hub.id))
      let known = try Self.steps().count
      try update(old, besideVersionsFrom: nil)
      await #expect(throws: StoreError.newerSchema(found: known + 1, known: known)) {
        try await old.heartbeat?.beat()
      }
      guard case .leaseLost(let reason) = await old.condition() else {
        Issue.record("it is well")
        return
      }
      #expect(reason.contains("update this node"))
      // What it would write or read is of another version: 503, and another node is asked.
      let refusal = StoreError.newerSchema(found: known + 1, known: known)
      #expect(try await old.claimWork(limit: 9).isEmpty)
      await #expect(throws: refusal) { try await old.accept(record("n-2", hub.id)) }
      await #expect(throws: refusal) {
        try await old.put(SampleDevice("i-1"), hub: hub.id, at: Self.now)
      }
      await #expect(throws: refusal) { _ = try await old.installation("i-1", hub: hub.id) }
      #expect(HubFailure(refusal).status == 503)
      let error = await #expect(throws: StoreError.self) {
        _ = try await PostgresStores.open(old.engine.shared.address)
      }
      #expect(error?.description.contains("use a newer belfry") == true)
    }
  }

  @Test("a backup by the version before is refused, even where its servers may go on")
  func backup() async throws {
    try await PostgresStores.withNodes(1) { nodes in
      let address = nodes[0].engine.shared.address
      let known = try Self.steps().count
      try update(nodes[0], besideVersionsFrom: known)
      let snapshot = try PostgresSnapshot(of: address)
      var options = PostgresStores.options
      options.snapshot = snapshot.name
      options.mayMigrate = false
      await #expect(throws: StoreError.newerSchema(found: known + 1, known: known)) {
        try await PostgresHubStore.open(
          address: address, sealing: TestSealing(), options: options
        ).close()
      }
      withExtendedLifetime(snapshot) {}
    }
  }

  @Test("a new version waits for the end of a backup with its tables, and nobody waits for it")
  func waits() async throws {
    try await PostgresStores.withNodes(1) { nodes in
      let old = nodes[0]
      let hub = try await old.createHub(named: "hub1", HubContents(), at: Self.now)
      var snapshot: PostgresSnapshot? = try PostgresSnapshot(of: old.engine.shared.address)
      #expect(snapshot != nil)
      let known = try Self.steps().count
      let step = Task.detached { try update(old, besideVersionsFrom: known) }
      try await withLimit(.seconds(60), "the step to wait") {
        var waiting: Int64? = 0
        while waiting != 1 {
          try await Task.sleep(for: .milliseconds(1))
          waiting = try await old.read { session in
            try session.first(
              """
              SELECT COUNT(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
              """)
          }
        }
      }
      try await old.accept(record("n-1", hub.id))
      #expect(try await old.claimWork(limit: 9).records.count == 1)
      snapshot = nil
      try await step.value
      #expect(try await old.read { try $0.connection.schemaVersion() } == known + 1)
    }
  }

  @Test("a database of the version before is brought up to date by a server, and not by a command")
  func older() async throws {
    let steps = try Self.steps()
    let address = try PostgresServer.shared().makeDatabase()
    let connection = try PostgresConnection(address: address, component: "hub")
    defer { connection.close() }
    try connection.migrate(with: steps)
    var options = PostgresStores.options
    options.laterSteps = [try Self.nextStep()]
    options.mayMigrate = false
    await #expect(throws: StoreError.self) {
      _ = try await PostgresStores.open(address, options: options)
    }
    #expect(try connection.schemaVersion() == steps.count)
    options.mayMigrate = true
    let store = try await PostgresStores.open(address, options: options)
    #expect(try connection.schemaVersion() == steps.count + 1)
    #expect(try await store.exchange([], recovered: []).nodes == 1)
    try await store.close()
  }
}
