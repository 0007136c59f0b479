import Foundation
import HTTPServer
import HubCore
import HubTesting
import NotificationHubs
import Testing

@testable import HubServer

@Suite("The log of looks at texts")
struct TextLookTests {
  /// The API with operators, and a message to a device that hub1 has.
  private func world(
    _ body: String = #"{"aps":{"alert":"Oslo leads"}}"#, format: String = "apple"
  ) async throws -> (OperatorWorld, id: String) {
    let world = try await OperatorWorld()
    let put = await world.hub.send(
      .put, "/hub1/installations/i",
      body: #"{"installationId":"i","platform":"apns","pushChannel":"0a1b"}"#)
    #expect(put.status == .ok, "\(put.text)")
    let sent = await world.hub.send(
      .post, "/hub1/messages", headers: ["ServiceBusNotification-Format": format], body: body)
    #expect(sent.status == .created, "\(sent.text)")
    return (world, try #require(URL(string: sent.headers["Location"] ?? "")?.lastPathComponent))
  }

  private func lines(_ world: OperatorWorld) async throws -> [HubActivity] {
    let page = try await world.hub.service.activity(
      ActivityQuery(action: "readText"), hub: nil, after: nil, limit: 100)
    return page.lines
  }

  private static let ways = [
    "messages", "messages?q=oslo", "schedulednotifications", "messages/ID", "messages/$batch/ID",
    "messages/ID/explain?installation=i",
  ]

  @Test(
    "each way to read what messages say has its line, once an hour for an operator",
    arguments: ways)
  func reading(way: String) async throws {
    let (world, id) = try await world()
    let scheduled = await world.hub.send(
      .post, "/hub1/schedulednotifications",
      headers: [
        "ServiceBusNotification-Format": "template",
        "ServiceBusNotification-ScheduleTime": "2030-01-06T10:00:00",
      ], body: #"{"title":"Oslo wins"}"#)
    #expect(scheduled.status == .created, "\(scheduled.text)")
    let path = "/hub1/" + way.replacing("ID", with: id)
    let ann = try await world.cookie(of: "ann")
    // A program's looks have none.
    #expect(await world.hub.send(.get, path).status == .ok)
    #expect(try await lines(world).isEmpty)
    for _ in 1...2 {
      let reply = await world.send(.get, path, cookie: ann)
      #expect(reply.status == .ok && reply.text.contains("Oslo"), "\(reply.text)")
    }
    #expect(
      try await lines(world) == [
        HubActivity(
          time: TestHub.now, hub: "hub1", actor: "user/ann", via: .portal, action: "readText",
          object: way.contains("ID") ? id : nil, address: "192.0.2.7", status: 200)
      ])
    world.hub.clock.advance(by: .seconds(3599))
    _ = await world.send(.get, path, cookie: ann)
    #expect(try await lines(world).count == 1)
    world.hub.clock.advance(by: .seconds(1))
    _ = await world.send(.get, path, cookie: ann)
    #expect(try await lines(world).count == 2)
  }

  @Test("each operator, hub and message has lines of its own")
  func apart() async throws {
    let (world, id) = try await world()
    let (ann, bob) = (try await world.cookie(of: "ann"), try await world.cookie(of: "bob"))
    for (cookie, path) in [(ann, "messages/\(id)"), (ann, "messages"), (bob, "messages/\(id)")] {
      #expect(await world.send(.get, "/hub1/\(path)", cookie: cookie).status == .ok)
    }
    // The page of a message reads more than its text.
    for path in ["progress", "devices", "errors"] {
      #expect(
        await world.send(.get, "/hub1/messages/\(id)/\(path)", cookie: bob).status == .ok)
    }
    let told = try await lines(world).map { "\($0.actor) \($0.object ?? "-")" }
    #expect(told.sorted() == ["user/ann -", "user/ann \(id)", "user/bob \(id)"])
  }

  @Test("a look that was refused, or that found nothing, has none")
  func refused() async throws {
    let (world, id) = try await world()
    let eve = try await world.cookie(of: "eve")
    for (path, status) in [
      ("hub2/messages", HTTPStatus.forbidden), ("hub1/messages/\(id)x", .notFound),
      ("hub1/messages/\(id)/explain", .badRequest), ("hub1/messages?q=", .badRequest),
      ("hub1/messages?q=bergen", .ok), ("hub1/installations", .ok),
    ] {
      let reply = await world.send(.get, "/\(path)", cookie: eve)
      #expect(reply.status == status, "\(path): \(reply.text)")
    }
    #expect(try await lines(world).isEmpty)
  }

  @Test(
    "a reply without text has none",
    arguments: [
      ("apple", #"{"aps":{"alert":"New"},"sealed":"Oslo"}"#, false),
      ("apple", #"{"aps":{"alert":"Oslo leads"}}"#, true),
    ])
  func noText(format: String, body: String, isHidden: Bool) async throws {
    let (world, id) = try await world(body, format: format)
    var handler = world.handler
    if isHidden {
      var limits = HubLimits.extended
      limits.keptText = 0
      let strict = try await TestHub(hubs: [], store: world.hub.store, limits: limits)
      handler = try OperatorWorld.handler(strict, world.path, world.clock)
    }
    let ann = try await world.cookie(of: "ann")
    for way in Self.ways {
      let path = "/hub1/" + way.replacing("ID", with: id)
      #expect(await world.send(.get, path, cookie: ann, through: handler).status == .ok, "\(way)")
    }
    #expect(try await lines(world).isEmpty)
  }

  @Test("an operator writes a bounded number of lines an hour, and takes none from others")
  func bound() {
    let looks = TextLooks()
    func isNew(_ number: Int?, by name: String = "user/ann", after seconds: Double = 0) -> Bool {
      looks.isNew(
        of: number.map { NotificationID(rawValue: "n\($0)") }, in: 1, by: name,
        at: TestHub.now.addingTimeInterval(seconds))
    }
    for number in 0..<256 { #expect(isNew(number)) }
    #expect(!isNew(256) && !isNew(0))
    // A list still says that they read, and another operator is not affected.
    #expect(isNew(nil) && !isNew(nil))
    #expect(isNew(256, by: "user/bob"))
    #expect(isNew(256, after: 3601) && isNew(0, after: 3601))
  }

  @Test("a look whose line was lost is logged the next time")
  func lost() {
    let looks = TextLooks()
    func isNew() -> Bool { looks.isNew(of: nil, in: 1, by: "user/ann", at: TestHub.now) }
    #expect(isNew() && !isNew())
    looks.forget(of: "user/ann", in: 1)
    #expect(isNew())
  }
}
