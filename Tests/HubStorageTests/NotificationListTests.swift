import Foundation
import HubCore
import HubTesting
import NotificationHubs
import SQLDatabase
import Testing

@testable import HubStorage

@Suite("Lists of notifications")
struct NotificationListTests {
  @Test(
    "are read along an index, without sorting",
    arguments: [
      (NotificationFilter(), NotificationOrder.newestFirst, "notification_list"),
      (NotificationFilter(states: [.completed, .processing]), .newestFirst, "notification_list"),
      (
        NotificationFilter(states: [.enqueued, .processing]), .newestFirst,
        "notification_list_unfinished"
      ),
      (NotificationFilter(), .scheduled, "notification_list_scheduled"),
    ])
  func plan(filter: NotificationFilter, order: NotificationOrder, index: String) throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let connection = try SQLiteConnection(path: directory.path("hub.sqlite"))
    defer { connection.close() }
    try connection.migrate(with: Schema.migrations)
    let row = try connection.statement(
      "EXPLAIN QUERY PLAN " + filter.listing(in: order))
    var plan: [String] = []
    while try row.step() { plan.append(row.text(3)) }
    #expect(plan.count == 1 && plan.first?.contains("USING INDEX \(index) (hub=?") == true)
    #expect(plan.first?.contains("_at>? AND ") == true, "\(plan): the times bound what is read")
  }

  @Test("end where a stretch ends, and go on from there")
  func stretches() async throws {
    try await withTemporaryStore { store in
      let now = MigrationTests.now
      let hub = try await store.createHub(named: "h", registrationTTL: nil, policies: [], at: now)
        .id
      await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<5_003 {
          group.addTask {
            try await store.accept(
              NotificationRecord(
                id: NotificationID(rawValue: "n\(number)"), hub: hub,
                request: NotificationRequest(
                  format: .template, body: [], tags: number == 0 ? "rare" : "x",
                  expression: .tag(number == 0 ? "rare" : "x")),
                state: .enqueued, enqueuedAt: now.addingTimeInterval(Double(number))))
          }
        }
      }
      let filter = NotificationFilter(tag: "rare")
      let first = try await store.notifications(
        filter, in: .newestFirst, hub: hub, after: nil, limit: 10)
      #expect(first.notifications.isEmpty)
      let next = try #require(first.next)
      let rest = try await store.notifications(
        filter, in: .newestFirst, hub: hub, after: next, limit: 10)
      #expect(rest.notifications.map(\.notificationID) == ["n0"] && rest.next == nil)
    }
  }
}
