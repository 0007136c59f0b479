import Foundation
import HubCore
import HubTesting
import NotificationHubs
import SQLDatabase
import StoreContract
import Testing

@testable import HubStorage

@Suite("Retention of feedback", .timeLimit(.minutes(5)))
struct FeedbackRetentionTests {
  private static let now = Date(timeIntervalSince1970: 1_893_456_000)

  /// Adds feedback as a server has left it.
  private func fill(
    _ connection: SQLiteConnection, hub: Hub.ID, rows: Int, firstID: Int
  ) throws {
    let hour = Int(Self.now.timeIntervalSince1970) / 3600
    try connection.writing {
      try connection.execute(
        """
        WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows - 1))
        INSERT INTO feedback (id, hub, hour, at, outcome, platform, handle, registration,
          notification, number)
        SELECT i + \(firstID), \(hub), \(hour), \(hour * 3_600_000), 5, 1, 'AA', 1, 'n', i + 1 FROM n
        """)
    }
  }

  private func report(_ store: SQLiteHubStore, _ hub: Hub.ID, devices: Int) async throws {
    let id = NotificationID(at: Self.now, random: .system)
    for number in 0..<devices {
      try await store.put(SampleDevice("i-\(number)"), hub: hub, at: Self.now)
    }
    try await store.accept(
      NotificationRecord(
        id: id, hub: hub, request: NotificationRequest(format: .native(.apns), body: [1]),
        state: .enqueued, enqueuedAt: Self.now))
    let query = AudienceQuery(
      hub: hub, kind: .native(.apns), expression: nil, asOf: Self.now)
    var page = Checkpoint(notification: id, hub: hub, at: Self.now)
    page.failures = try await store.targets(query, after: 0, limit: devices).targets.map {
      .init(registration: $0.registration, outcome: .expiredChannel, status: 410, reason: nil)
    }
    try await store.checkpoint(page)
  }

  private func count(_ store: SQLiteHubStore, _ hub: Hub.ID) async throws -> Int {
    try await store.feedbackHours(hub: hub).reduce(0) { $0 + $1.count }
  }

  @Test("one hub's flood pushes nothing of another's out, and each keeps its own limit")
  func perHub() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let path = directory.path("hub.sqlite")
    let store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
    var hubs: [Hub.ID] = []
    for name in ["quiet", "loud"] {
      hubs.append(
        try await store.createHub(
          named: name, registrationTTL: nil, policies: [], at: Self.now
        ).id)
    }
    var options = SQLiteConnection.Options()
    options.applicationID = Schema.applicationID
    let connection = try SQLiteConnection(path: path, options: options)
    try fill(connection, hub: hubs[0], rows: 5, firstID: 1)
    try fill(connection, hub: hubs[1], rows: HandleFeedback.limit, firstID: 6)
    try await report(store, hubs[0], devices: 1)
    #expect(try await count(store, hubs[0]) == 6)
    try await report(store, hubs[1], devices: 3)
    #expect(try await count(store, hubs[1]) == HandleFeedback.limit)
    #expect(try await count(store, hubs[0]) == 6)
    // What decides which rows go reads those rows alone.
    let plan = try connection.statement(
      """
      EXPLAIN QUERY PLAN DELETE FROM feedback WHERE hub = ?1
        AND number <= (SELECT MAX(number) FROM feedback WHERE hub = ?1) - ?2
      """)
    var lines: [String] = []
    while try plan.step() { lines.append(plan.text(3)) }
    #expect(lines.count { $0.contains("feedback_number") } == 2, "\(lines)")
    connection.close()
    try await store.close()
  }
}
