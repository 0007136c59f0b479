import Foundation
import HTTPServer
import HubCore
import HubTesting
import NotificationHubs
import Testing
import Wire

@Suite("The text of messages")
struct MessageTextTests {
  private static let bodies = [
    ("template", #"{"title":"Goal!","message":"Oslo leads"}"#),
    ("apple", #"{"aps":{"content-available":1}}"#),
    ("fcmv1", #"{"message":{"data":{"sealed":"Oslo"}}}"#),
  ]

  /// A hub with a message of each kind that has ended, and with one that is still scheduled.
  private func world(on engine: TestedEngine) async throws -> TestHub {
    let hub = try await TestHub(on: engine)
    for (format, body) in Self.bodies {
      let sent = await hub.send(
        .post, "/hub1/messages",
        headers: ["ServiceBusNotification-Format": format, "ServiceBusNotification-Tags": "x"],
        body: body)
      #expect(sent.status == .created, "\(sent.text)")
      var end = Checkpoint(
        notification: try #require(try await ids(of: hub).first.map(NotificationID.init)),
        hub: try #require(try await hub.store.hub(named: "hub1")).id, at: hub.clock.now)
      end.state = .noTargetFound
      try await hub.store.checkpoint(end)
      hub.clock.advance(by: .seconds(1))
    }
    let scheduled = await hub.send(
      .post, "/hub1/schedulednotifications",
      headers: [
        "ServiceBusNotification-Format": "template",
        "ServiceBusNotification-ScheduleTime": "2030-01-06T10:00:00",
      ], body: #"{"title":"Oslo wins"}"#)
    #expect(scheduled.status == .created, "\(scheduled.text)")
    return hub
  }

  private func ids(of hub: TestHub) async throws -> [String] {
    try await list(hub, "messages").map(\.notificationID)
  }

  private func list(_ hub: TestHub, _ path: String) async throws -> [NotificationSummary] {
    let reply = await hub.send(.get, "/hub1/\(path)")
    #expect(reply.status == .ok, "\(reply.text)")
    return try NotificationList.decode(Array(reply.text.utf8)).notifications
  }

  /// All that the API tells of the notifications.
  private func all(_ hub: TestHub) async throws -> String {
    var told = ""
    for path in ["messages", "schedulednotifications", "messages?q=o"] {
      told += await hub.send(.get, "/hub1/\(path)").text
    }
    for id in try await ids(of: hub) {
      let extended: HTTPHeaders = ["Belfry-Extensions": "true"]
      told += await hub.send(.get, "/hub1/messages/\(id)", headers: extended).text
      told += await hub.send(.get, "/hub1/messages/\(id)/explain?installation=i").text
    }
    return told
  }

  @Test(
    "is listed with its state, and of a sealed message never",
    arguments: TestedEngine.installed)
  func states(on engine: TestedEngine) async throws {
    let hub = try await world(on: engine)
    let found = try await list(hub, "messages")
    #expect(found.map(\.textState) == [.kept, .sealed, .silent, .kept])
    #expect(found.map(\.title) == ["Oslo wins", nil, nil, "Goal!"])
    #expect(try await list(hub, "messages?q=oslo").map(\.title) == ["Oslo wins", "Goal!"])
    #expect(!(await hub.send(.get, "/hub1/messages?q=oslo").text.contains("unsearched")))

    while try await hub.store.clearTexts(endedBefore: .distantFuture) {}
    #expect(try await list(hub, "messages").map(\.textState) == [.kept, .off, .off, .off])
    let search = await hub.send(.get, "/hub1/messages?q=oslo").text
    #expect(search.contains(#""unsearched":3"#) && search.contains("Oslo wins"), "\(search)")
    let told = try await all(hub)
    #expect(!told.contains("leads") && !told.contains("sealed") && told.contains("Oslo wins"))
    let oldest = try #require(try await ids(of: hub).last)
    let telemetry = await hub.send(.get, "/hub1/messages/\(oldest)").text
    #expect(!telemetry.contains("NotificationBody"), "\(telemetry)")
    #expect(telemetry.contains("<Tags>x</Tags>"))
  }

  @Test(
    "is hidden before the end, too, where the operator keeps none",
    arguments: TestedEngine.installed)
  func off(on engine: TestedEngine) async throws {
    let hub = try await world(on: engine)
    // Seen with the other setting: the words that must not be told are there.
    #expect(try await all(hub).contains("Oslo wins"))
    var limits = HubLimits.extended
    limits.keptText = 0
    let strict = try await TestHub(hubs: [], store: hub.store, limits: limits)
    #expect(try await list(strict, "messages").map(\.textState) == [.off, .off, .off, .off])
    let told = try await all(strict)
    for word in ["Oslo", "Goal", "sealed", "content-available", "NotificationBody"] {
      #expect(!told.contains(word), "\(word) is told: \(told)")
    }
    let search = await strict.send(.get, "/hub1/messages?q=oslo").text
    #expect(search == #"{"notifications":[],"unsearched":4}"#)
    let byTag = await strict.send(.get, "/hub1/messages?q=X").text
    #expect(byTag.contains(#""tags":"x""#) && byTag.contains(#""unsearched":1"#), "\(byTag)")
  }

  @Test("of a device's payload an explanation says that it is not kept")
  func explanation() async throws {
    let hub = try await TestHub()
    let put = await hub.send(
      .put, "/hub1/installations/i",
      body: #"{"installationId":"i","platform":"apns","pushChannel":"0a1b"}"#)
    #expect(put.status == .ok, "\(put.text)")
    let sent = await hub.send(
      .post, "/hub1/messages", headers: ["ServiceBusNotification-Format": "apple"],
      body: #"{"aps":{"alert":"Oslo"}}"#)
    #expect(sent.status == .created, "\(sent.text)")
    let id = try #require(try await ids(of: hub).first)
    let path = "/hub1/messages/\(id)/explain?installation=i"
    #expect(await hub.send(.get, path).text.contains("Oslo"))
    var limits = HubLimits.extended
    limits.keptText = 0
    let strict = try await TestHub(hubs: [], store: hub.store, limits: limits)
    let told = await strict.send(.get, path).text
    #expect(!told.contains("Oslo") && !told.contains("rendering"), "\(told)")
    #expect(told.contains("The text of the message is not kept"), "\(told)")
  }
}
