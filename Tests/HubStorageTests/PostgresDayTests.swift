import Foundation
import HubCore
import HubTesting
import NotificationHubs
import SQLDatabase
import StoreContract
import Testing

@testable import HubStorage

@Suite(
  "Tables of days on PostgreSQL",
  .enabled(if: PostgresStores.areInstalled, "PostgreSQL's server is not installed"))
struct PostgresDayTests {
  /// The begin of a day.
  private static let now = Date(timeIntervalSince1970: 1_893_456_000)
  private static let today: Int64 = 21_915
  private static let days = Array(today...today + 3)
  private static let id = NotificationID(rawValue: "n-1")

  /// Runs `body` on a database with two devices, and a notification to them.
  private func scene(
    isPrepared: Bool = true, _ body: (PostgresHubStore, Hub.ID) async throws -> Void
  ) async throws {
    try await PostgresStores.withNodes(1) { nodes in
      let hub = try await nodes[0].createHub(named: "hub1", HubContents(), at: Self.now).id
      for id in ["i-1", "i-2"] {
        try await nodes[0].put(SampleDevice(id), hub: hub, at: Self.now)
      }
      if isPrepared { try await clear(nodes[0], by: Self.now) }
      let request = NotificationRequest(format: .native(.apns), body: Array("{}".utf8))
      try await nodes[0].accept(
        NotificationRecord(
          id: Self.id, hub: hub, request: request, state: .enqueued, enqueuedAt: Self.now))
      try await body(nodes[0], hub)
    }
  }

  private func clear(_ store: PostgresHubStore, by limit: Date) async throws {
    while try await store.clear(expiredBy: limit) {}
  }

  private func clearOutcomes(_ store: PostgresHubStore, before limit: Date) async throws {
    while try await store.clearOutcomes(before: limit, keeping: 100) {}
  }

  /// Both devices' handles are bad, some time after the begin.
  private func fail(_ store: PostgresHubStore, _ hub: Hub.ID, after hours: Double) async throws {
    let query = AudienceQuery(hub: hub, kind: .native(.apns), expression: nil, asOf: Self.now)
    let record = try #require(try await store.notification(Self.id, hub: hub))
    var page = Checkpoint(
      notification: Self.id, hub: hub, lease: record.lease,
      at: Self.now.addingTimeInterval(hours * 3_600))
    page.failures = try await store.targets(query, after: 0, limit: 10).targets.map {
      .init(registration: $0.registration, outcome: .badChannel, status: 400, reason: nil)
    }
    _ = try await store.claimWork(limit: 10)
    page.lease = try await lease(store)
    try await store.checkpoint(page)
  }

  private func lease(_ store: PostgresHubStore) async throws -> WorkLease {
    WorkLease(
      part: 0,
      epoch: try await store.read { try $0.first("SELECT MAX(epoch) FROM work") ?? 0 })
  }

  private func count(_ store: PostgresHubStore, _ table: String) async throws -> Int64? {
    try await store.read { try $0.first("SELECT COUNT(*) FROM \(table)") }
  }

  private func outcomes(_ store: PostgresHubStore, _ hub: Hub.ID) async throws -> Int {
    try await store.outcomes(of: Self.id, hub: hub, OutcomeFilter(), after: 0, limit: 9)
      .outcomes.count
  }

  private func days(_ store: PostgresHubStore, _ table: DayTable) async throws -> [Int64] {
    try await store.read { try DayPartitions($0).days(of: table) }
  }

  @Test("days ahead have their tables, and those that are over are dropped whole")
  func dropped() async throws {
    try await scene { store, hub in
      #expect(try await days(store, .failures) == Self.days)
      #expect(try await days(store, .feedback) == Self.days)
      // The outcomes of the next day stand with the notification's others.
      try await fail(store, hub, after: 12)
      try await fail(store, hub, after: 30)
      for table in ["notification_failure_21915", "feedback_21915", "feedback_21916"] {
        #expect(try await count(store, table) == 2, "\(table)")
      }
      // The day is over, but not the notification's last outcome.
      try await clearOutcomes(store, before: Self.now.addingTimeInterval(30 * 3_600))
      #expect(try await outcomes(store, hub) == 2)
      try await clearOutcomes(store, before: Self.now.addingTimeInterval(30 * 3_600 + 1))
      #expect(try await outcomes(store, hub) == 0)
      #expect(try await days(store, .failures) == Array(Self.days.dropFirst()))
      #expect(try await count(store, "kept_outcome") == 0)
      #expect(try await store.notification(Self.id, hub: hub)?.hasClearedOutcomes == true)
      // One that comes after all is kept, though its day has no table any more.
      try await fail(store, hub, after: 31)
      #expect(try await outcomes(store, hub) == 2)
      #expect(try await count(store, "notification_failure_rest") == 2)
      try await clearOutcomes(store, before: Self.now.addingTimeInterval(31 * 3_600 + 1))
      #expect(try await outcomes(store, hub) == 0)
    }
  }

  @Test("feedback goes by days, and a hub's with the hub")
  func feedback() async throws {
    try await scene { store, hub in
      try await fail(store, hub, after: 12)
      let last = Self.now.addingTimeInterval(86_400 + HandleFeedback.lifetime)
      try await clear(store, by: last.addingTimeInterval(-1))
      #expect(try await store.feedbackHours(hub: hub).count == 1)
      try await clear(store, by: last)
      #expect(try await store.feedbackHours(hub: hub).isEmpty)
      #expect(try await days(store, .feedback).first == Self.today + 1)
      try await fail(store, hub, after: 36)
      try await fail(store, hub, after: 60)
      #expect(try await count(store, "feedback") == 4)
      #expect(try await store.deleteHub(named: "hub1"))
      try await clear(store, by: last)
      #expect(try await count(store, "feedback") == 0)
      #expect(try await count(store, "notification_failure") == 0)
    }
  }

  @Test("what stands in no day's table is kept, and goes row by row")
  func rest() async throws {
    try await scene(isPrepared: false) { store, hub in
      try await fail(store, hub, after: 12)
      try await clear(store, by: Self.now)
      #expect(try await days(store, .failures) == Array(Self.days.dropFirst()))
      #expect(try await outcomes(store, hub) == 2)
      #expect(try await store.feedbackHours(hub: hub).count == 1)
      let over = Self.now.addingTimeInterval(13 * 3_600)
      try await clearOutcomes(store, before: over)
      try await clear(store, by: over.addingTimeInterval(HandleFeedback.lifetime))
      #expect(try await outcomes(store, hub) == 0)
      #expect(try await count(store, "feedback_rest") == 0)
    }
  }

  @Test("a table that somebody reads for long is dropped in a later round, and nobody waits for it")
  func busy() async throws {
    try await scene { store, hub in
      try await fail(store, hub, after: 12)
      let reader = try PostgresConnection(
        address: store.engine.shared.address, component: "hub")
      try reader.execute("BEGIN; SELECT COUNT(*) FROM notification_failure, feedback")
      let over = Self.now.addingTimeInterval(2 * 86_400)
      try await clearOutcomes(store, before: over)
      try await clear(store, by: over.addingTimeInterval(HandleFeedback.lifetime))
      #expect(try await days(store, .failures).first == Self.today)
      #expect(try await days(store, .feedback).first == Self.today)
      try reader.execute("COMMIT")
      reader.close()
      try await clearOutcomes(store, before: over)
      try await clear(store, by: over.addingTimeInterval(HandleFeedback.lifetime))
      #expect(try await days(store, .failures).first == Self.today + 2)
      #expect(try await days(store, .feedback).first == Self.today + 2)
    }
  }

  @Test("a backup has the days that are over by then, and they are dropped after its end")
  func backedUp() async throws {
    try await scene { store, hub in
      try await fail(store, hub, after: 12)
      let address = store.engine.shared.address
      var snapshot: PostgresSnapshot? = try PostgresSnapshot(of: address)
      var options = PostgresStores.options
      options.snapshot = snapshot?.name
      let source = try await PostgresHubStore.open(
        address: address, sealing: TestSealing(), options: options)
      let over = Self.now.addingTimeInterval(2 * 86_400)
      try await clearOutcomes(store, before: over)
      try await clear(store, by: over.addingTimeInterval(HandleFeedback.lifetime))
      try await withTemporaryStore { file in
        let copied = try await HubMove(from: source, to: file).run()
        for table in ["notification_failure", "feedback"] {
          #expect(copied.first { $0.table == table }?.rows == 2, "\(table)")
        }
      }
      #expect(try await days(store, .failures) == Self.days)
      // Others go on beside it.
      try await store.put(SampleDevice("i-3"), hub: hub, at: Self.now)
      try await source.close()
      snapshot = nil
      // The server notices the end of a connection a little later.
      try await withLimit(.seconds(60), "the days to be dropped") {
        while true {
          let left = [try await days(store, .failures), try await days(store, .feedback)]
          if left.allSatisfy({ $0.first == Self.today + 2 }) { return }
          try await clearOutcomes(store, before: over)
          try await clear(store, by: over.addingTimeInterval(HandleFeedback.lifetime))
          try await Task.sleep(for: .milliseconds(1))
        }
      }
    }
  }
}
