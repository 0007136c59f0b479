import Foundation
import HTTPServer
import HubCore
import HubServer
import HubTesting
import NotificationHubs
import Synchronization
import Testing

@Suite("Events of a notification", .timeLimit(.minutes(5)))
struct EventTests {
  private static let id = NotificationID(rawValue: "n-1")

  /// A hub with a direct notification under way.
  private func makeHub(_ hook: StoreHook = StoreHook(), due: Date? = nil) async throws -> TestHub {
    let hub = try await TestHub(
      store: try await temporaryStore(hook),
      now: Date(timeIntervalSince1970: Date().timeIntervalSince1970.rounded()))
    var request = NotificationRequest(format: .native(.apns), body: Array("{}".utf8))
    request.isDirect = true
    var record = NotificationRecord(
      id: Self.id, hub: 1, request: request, state: .enqueued, enqueuedAt: hub.clock.now)
    if let due {
      record.state = .scheduled
      record.scheduledFor = due
    }
    try await hub.store.accept(record)
    return hub
  }

  private func record(
    _ count: Int, _ hub: TestHub, state: NotificationState = .processing
  ) async throws {
    var page = Checkpoint(notification: Self.id, hub: 1, at: hub.clock.now)
    page.state = state
    page.counts = [OutcomeKey(platform: .apns, isTemplate: false, outcome: .success): count]
    try await hub.store.checkpoint(page)
  }

  /// Lets the hub look once more.
  private func look(_ hub: TestHub) async {
    await hub.clock.sleepers(1)
    hub.clock.advance(by: .milliseconds(500))
  }

  private func updates(_ hub: TestHub) async throws -> AsyncStream<NotificationProgress>.Iterator {
    let found = try #require(try await hub.store.hubs().first)
    return try await hub.service.notifications.progressUpdates(of: Self.id, hub: found)
      .makeAsyncIterator()
  }

  /// A client of the hub behind a listener, whose tokens count from the hub's clock.
  private func client(
    _ hub: TestHub, _ listener: HTTPListener, _ transport: any HTTPTransport
  ) throws -> NotificationHubClient {
    let text =
      "Endpoint=http://127.0.0.1:\(listener.port)/;SharedAccessKeyName=\(TestHub.fullName);"
      + "SharedAccessKey=\(TestHub.fullKey)"
    return NotificationHubClient(
      connectionString: try ConnectionString(text), hub: "hub1", transport: transport, retry: .none)
  }

  @Test("progress comes when it changes, comments while it does not, and the end ends the stream")
  func wire() async throws {
    let hub = try await makeHub()
    let listener = try HTTPListener(HubAPIConfiguration.listener, handler: hub.api)
    let port = listener.port
    let token = SharedAccessSignature(
      resource: "http://127.0.0.1:\(port)/hub1", keyName: TestHub.fullName, key: TestHub.fullKey,
      expiresAt: hub.clock.now.addingTimeInterval(1200)
    ).text
    let client = try await onThread { Shared(try RawClient(port: port)) }
    func chunk() async throws -> String? { try await onThread { try client.value.readChunk() } }
    let head = try await onThread {
      try client.value.send(
        "GET /hub1/messages/n-1/events?api-version=2020-06 HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n"
          + "Authorization: \(token)\r\n\r\n")
      return try client.value.readHead()
    }
    #expect(head.status == 200 && head.headers["content-type"] == "text/event-stream")
    #expect(head.headers["cache-control"] == "no-cache" && head.headers["trackingid"] != nil)
    let first = try #require(try await chunk())
    #expect(first.hasPrefix(#"event: progress\#ndata: {"notificationId":"n-1","state":"Enqueued""#))
    #expect(first.hasSuffix("}\n\n") && first.split(separator: "\n").count == 2)
    for _ in 0..<30 { await look(hub) }
    #expect(try await chunk() == ": \n\n", "fifteen seconds without a change")
    try await record(3, hub)
    await look(hub)
    let second = try #require(try await chunk())
    #expect(second.hasPrefix("event: progress\n") && second.contains(#""done":3"#))
    try await record(2, hub, state: .completed)
    await look(hub)
    let last = try #require(try await chunk())
    #expect(last.hasPrefix("event: end\n") && last.contains(#""state":"Completed","audience":5"#))
    #expect(try await chunk() == nil)
    // The connection lives on; of what is over there is only the end.
    let again = try await onThread {
      try client.value.exchange(
        "GET /hub1/messages/n-1/events HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n"
          + "Authorization: \(token)\r\n\r\n")
    }
    #expect(again.body == last)
    #expect(hub.service.progressFeeds.watchers(of: 1) == 0)
    await listener.stop()
  }

  @Test(
    "a stream outlives its token, and ends soon after the key has gone or lost its right",
    arguments: ["deleted", "other keys", "another right"])
  func keyGone(what: String) async throws {
    let hub = try await makeHub()
    let listener = try HTTPListener(HubAPIConfiguration.listener, handler: hub.api)
    let port = listener.port
    let token = SharedAccessSignature(
      resource: "http://127.0.0.1:\(port)/hub1", keyName: TestHub.fullName, key: TestHub.fullKey,
      expiresAt: hub.clock.now.addingTimeInterval(20)
    ).text
    let client = try await onThread { Shared(try RawClient(port: port)) }
    func chunk() async throws -> String? { try await onThread { try client.value.readChunk() } }
    let head = try await onThread {
      try client.value.send(
        "GET /hub1/messages/n-1/events HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n"
          + "Authorization: \(token)\r\n\r\n")
      return try client.value.readHead()
    }
    #expect(head.status == 200)
    #expect(try await chunk()?.hasPrefix("event: progress") == true)
    for _ in 0..<2 {
      for _ in 0..<30 { await look(hub) }
      #expect(try await chunk() == ": \n\n", "ten seconds after the token's end")
    }
    var policy = try #require(
      try await hub.store.accessPolicies(hub: 1).first { $0.name == TestHub.fullName })
    switch what {
    case "deleted": _ = try await hub.store.deleteAccessPolicy(named: policy.name, hub: 1)
    case "other keys":
      (policy.primaryKey, policy.secondaryKey) = (
        AccessPolicy.randomKey(.system), AccessPolicy.randomKey(.system)
      )
      try await hub.store.putAccessPolicy(policy, hub: 1)
    default:
      policy.rights = .listen
      try await hub.store.putAccessPolicy(policy, hub: 1)
    }
    for _ in 0..<30 { await look(hub) }
    #expect(try await chunk() == nil)
    await listener.stop()
  }

  @Test("the client tells each change, over a transport that streams and over one that does not")
  func client() async throws {
    struct Plain: HTTPTransport {
      func send(_ request: TransportRequest) async throws -> TransportReply {
        try await URLSessionTransport.shared.send(request)
      }
    }
    for transport in [URLSessionTransport.shared, Plain()] as [any HTTPTransport] {
      let hub = try await makeHub()
      let listener = try HTTPListener(HubAPIConfiguration.listener, handler: hub.api)
      var client = try client(hub, listener, transport)
      if transport is Plain {
        let clock = hub.clock
        let text =
          "Endpoint=http://127.0.0.1:\(listener.port)/;SharedAccessKeyName=\(TestHub.fullName);"
          + "SharedAccessKey=\(TestHub.fullKey)"
        client = NotificationHubClient(
          connectionString: try ConnectionString(text), hub: "hub1", transport: transport,
          retry: RetryPolicy(retries: 0, sleep: { try await clock.hubClock.sleep($0) }))
      }
      var updates = client.updates(of: "n-1").makeAsyncIterator()
      #expect(try await updates.next()?.done == 0)
      for (count, state) in [(4, NotificationState.processing), (1, .completed)] {
        try await record(count, hub, state: state)
        await hub.clock.sleepers(1)
        hub.clock.advance(by: .seconds(1))
        let found = try await updates.next()
        #expect(found?.done == (state == .completed ? 5 : 4))
      }
      #expect(try await updates.next() == nil)
      await #expect(throws: NotificationHubError.self) {
        for try await _ in client.updates(of: "unknown") {}
      }
      await listener.stop()
    }
  }

  @Test("many who watch one notification cost one reading, and nobody none")
  func sharing() async throws {
    let hook = StoreHook()
    let hub = try await makeHub(hook)
    func readings() -> Int { hook.count(of: "notification(_:hub:)") }
    let before = readings()
    var watchers: [AsyncStream<NotificationProgress>.Iterator] = []
    for _ in 0..<50 { watchers.append(try await updates(hub)) }
    #expect(readings() == before + 1)
    for index in watchers.indices { #expect(await watchers[index].next()?.done == 0) }
    try await record(7, hub)
    await look(hub)
    for index in watchers.indices { #expect(await watchers[index].next()?.done == 7) }
    #expect(readings() == before + 2)
    watchers = []
    #expect(hub.service.progressFeeds.watchers(of: 1) == 0)
  }

  @Test("a hub has a hundred streams at most, and the next is told so until one is closed")
  func limit() async throws {
    let hub = try await makeHub()
    var watchers: [AsyncStream<NotificationProgress>.Iterator] = []
    for _ in 0..<ProgressFeeds.limit { watchers.append(try await updates(hub)) }
    let refused = await hub.send(
      .get, "/hub1/messages/n-1/events", token: TestHub.token(lifetime: 1e9))
    #expect(refused.status == .tooManyRequests)
    #expect(refused.headers["Retry-After"] == "10")
    #expect(refused.message?.contains("close some") == true)
    // What is refused for another reason takes no place.
    for _ in 0..<3 {
      #expect(
        await hub.send(
          .get, "/hub1/messages/unknown/events", token: TestHub.token(lifetime: 1e9)
        ).status == .tooManyRequests)
    }
    watchers.removeLast()
    #expect(
      await hub.send(
        .get, "/hub1/messages/unknown/events", token: TestHub.token(lifetime: 1e9)
      ).status == .notFound)
    watchers.append(try await updates(hub))
    #expect(hub.service.progressFeeds.watchers(of: 1) == ProgressFeeds.limit)
  }

  @Test("the deletion of the hub ends its streams; one that waits for its time is looked at seldom")
  func deletion() async throws {
    let hook = StoreHook()
    let hub = try await makeHub(hook, due: Date().addingTimeInterval(3_600))
    var watcher = try await updates(hub)
    #expect(await watcher.next()?.state == .scheduled)
    let before = hook.count(of: "notification(_:hub:)")
    for _ in 0..<10 { await look(hub) }
    await hub.clock.sleepers(1)
    #expect(hook.count(of: "notification(_:hub:)") == before + 1)
    #expect(try await hub.store.deleteHub(named: "hub1"))
    hub.clock.advance(by: .seconds(5))
    #expect(await watcher.next() == nil)
    #expect(hub.service.progressFeeds.watchers(of: 1) == 0)
  }

  @Test("a store that cannot answer for a while ends no stream")
  func trouble() async throws {
    let hook = StoreHook()
    let hub = try await makeHub(hook)
    var watcher = try await updates(hub)
    #expect(await watcher.next()?.done == 0)
    hook.fail(with: .locked)
    for _ in 0..<3 { await look(hub) }
    await hub.clock.sleepers(1)
    hook.fail(with: nil)
    try await record(1, hub)
    await look(hub)
    #expect(await watcher.next()?.done == 1)
  }

  @Test("a server that stops ends its streams")
  func stop() async throws {
    let hub = try await makeHub()
    let listener = try HTTPListener(HubAPIConfiguration.listener, handler: hub.api)
    var updates = try client(hub, listener, URLSessionTransport.shared).updates(of: "n-1")
      .makeAsyncIterator()
    #expect(try await updates.next()?.done == 0)
    await listener.stop()
    await #expect(throws: (any Error).self) { _ = try await updates.next() }
  }
}
