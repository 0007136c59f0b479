import Foundation
import HTTPServer
import HubCore
import HubTesting
import NotificationHubs
import Testing
import Wire

@Suite("Statistics over time")
struct StatisticsTests {
  private func statistics(_ query: String, _ hub: TestHub) async throws -> HubStatistics {
    let reply = await hub.send(.get, "/hub1/statistics?\(query)")
    #expect(reply.status == .ok, "\(reply.text)")
    #expect(reply.headers["Content-Type"] == "application/json;charset=utf-8")
    return try HubStatistics(json: Array(reply.text.utf8))
  }

  @Test("without a question the last hour has a point for each minute")
  func lastHour() async throws {
    try await withHub { hub in
      let written = await hub.send(
        .put, "/hub1/installations/phone",
        body: #"{"installationId":"phone","platform":"apns","pushChannel":"0a1b"}"#)
      #expect(written.status == .ok)
      try await hub.store.noteRegistrations(at: TestHub.now.addingTimeInterval(-90))
      let found = try await statistics("to=2030-01-05T10:00:01Z", hub)
      // 10:00:00 is the present; the minute that begins now has not begun for it.
      #expect(found.points.count == 60 && found.step == 60)
      #expect(found.accepted == 0)
      #expect(found.to == TestHub.now)
      #expect(found.points[57].registrations.isEmpty)
      #expect(found.points[58].registrations == ["apns": 1])
      #expect(found.points[59].registrations == ["apns": 1])
    }
  }

  @Test("outcomes are folded as telemetry folds them, and what stands in for another is no failure")
  func folded() async throws {
    let start = TestHub.now.addingTimeInterval(-30)
    let hub = try await TestHub()
    let id = try await hub.store.hubs()[0].id
    let request = NotificationRequest(format: .template, body: Array("{}".utf8))
    let notification = NotificationID(rawValue: "n-1")
    try await hub.store.accept(
      NotificationRecord(
        id: notification, hub: id, request: request, state: .enqueued, enqueuedAt: start))
    var page = Checkpoint(notification: notification, hub: id, at: start)
    for (outcome, count) in [
      (NotificationOutcome.success, 4), (.refreshToken, 1), (.skipped, 2), (.badChannel, 1),
      (.wrongChannel, 2),
    ] { page.counts[OutcomeKey(platform: .apns, isTemplate: true, outcome: outcome)] = count }
    try await hub.store.checkpoint(page)
    let reply = await hub.send(.get, "/hub1/statistics?from=2030-01-05T09:59:10Z")
    #expect(
      reply.text
        == #"{"from":"2030-01-05T09:59:00.000Z","to":"2030-01-05T10:00:00.000Z","step":60,"#
        + #""points":[{"time":"2030-01-05T09:59:00.000Z","accepted":1,"delivered":{"apns":5},"#
        + #""failed":{"apns":{"BadChannel":3}},"registrations":{}}]}"#)
    // The same, as the hour has it.
    let hour = try await statistics("from=2030-01-05T09:20:00Z&step=3600", hub)
    #expect(hour.points.count == 1 && hour.accepted == 1 && hour.delivered == ["apns": 5])
    #expect(hour.failed == ["apns": ["BadChannel": 3]])
    // Telemetry of the same notification.
    let telemetry = await hub.send(.get, "/hub1/messages/n-1")
    let counts = try NotificationTelemetry(xml: Data(telemetry.text.utf8)).outcomes[.apns]
    #expect(counts?["Success"] == 5 && counts?["BadChannel"] == 3, "\(telemetry.text)")
  }

  @Test("a day of minutes and a year of days are one answer each")
  func spans() async throws {
    let hub = try await TestHub()
    #expect(try await statistics("from=2030-01-04T10:00:00Z", hub).points.count == 1_440)
    let year = try await statistics("from=2029-01-05T10:00:00Z&step=86400", hub)
    #expect(year.points.count == 365)
    // Nothing is kept of before, and time has no end.
    let ever = try await statistics(
      "from=0001-01-01T00:00:00Z&to=9999-12-31T00:00:00Z&step=86400", hub)
    #expect(ever.points.count == 366)
    #expect(ever.to >= TestHub.now)
  }

  @Test(
    "an invalid question is 400 and says what to ask",
    arguments: [
      ("step=0", "multiple of 60"), ("step=61", "multiple of 60"), ("step=-60", "multiple of 60"),
      ("step=9223372036854775800", "multiple of 60"), ("step=31622460", "multiple of 60"),
      ("step=99999999999999999999", "multiple of 60"), ("step=", "multiple of 60"),
      ("from=noon", "a time such as"), ("to=", "a time such as"),
      ("from=2030-01-05T10:00:00Z", "before the present"),
      ("from=2030-01-05T09:00:00Z&to=2030-01-05T08:00:00Z", "before to"),
      ("to=1970-01-01T00:00:00Z", "before to"),
      ("from=2030-01-03T09:00:00Z", "multiple of 3600"),
      ("from=2029-10-01T00:00:00Z&step=3600", "1500 are the most"),
    ])
  func nonsense(query: String, words: String) async throws {
    let hub = try await TestHub()
    let reply = await hub.send(.get, "/hub1/statistics?\(query)")
    #expect(reply.status == .badRequest)
    #expect(reply.message?.contains(words) == true, "\(reply.text)")
  }
}
