import Foundation
import HTTPServer
import HubCore
import HubTesting
import NotificationHubs
import Testing

@Suite("Activity log")
struct ActivityTests {
  private let apple: HTTPHeaders = [
    "ServiceBusNotification-Format": "apple", "Content-Type": "application/json",
  ]
  private let payload = #"{"aps":{"alert":"hi"}}"#

  /// The lines of a list, the newest first.
  private func lines(
    _ hub: TestHub, _ path: String = "/hub1/activity", token: String = TestHub.token()
  ) async throws -> [HubActivity] {
    let reply = await hub.send(.get, path, token: token)
    #expect(reply.status == .ok, "\(reply.text)")
    return try ActivityList.decode(Array(reply.text.utf8))
  }

  private static var root: String {
    TestHub.token(
      resource: "https://\(TestHub.host)/", name: "RootManageSharedAccessKey", key: TestHub.rootKey)
  }

  @Test("the page of the log names every action")
  func page() throws {
    let named = try DocPage("docs/extensions.md")
      .words(below: "Who has changed or sent what: the activity log")
    #expect(ActivityAction.allCases.map(\.rawValue).filter { !named.contains($0) } == [])
  }

  @Test("a send and its line are one transaction")
  func send() async throws {
    let hook = StoreHook()
    let hub = try await TestHub(store: try await temporaryStore(hook))
    let reply = await hub.send(.post, "/hub1/messages", headers: apple, body: payload)
    #expect(reply.status == .created)
    let id = try #require(
      reply.headers["Location"]?.split(separator: "/").last?.prefix { $0 != "?" })
    #expect(hook.count(of: "record(_:)") == 0)
    let found = try await lines(hub)
    #expect(
      found == [
        HubActivity(
          time: TestHub.now, hub: "hub1", actor: "policy/\(TestHub.fullName)", via: .key,
          action: "send", object: String(id), status: 201)
      ])
  }

  @Test("what devices do is not logged, whichever key does it, and costs no write")
  func devices() async throws {
    let hook = StoreHook()
    let hub = try await TestHub(store: try await temporaryStore(hook))
    let body = #"{"installationId":"i1","platform":"apns","pushChannel":"0a1b"}"#
    let listen = TestHub.token(name: TestHub.listenName, key: TestHub.listenKey)
    for token in [listen, TestHub.token()] {
      #expect(
        await hub.send(.put, "/hub1/installations/i1", body: body, token: token).status == .ok)
    }
    // Nor does the key that every device has fill the log with what it was refused.
    let refused = await hub.send(
      .post, "/hub1/messages", headers: apple, body: payload, token: listen)
    #expect(refused.status == .forbidden)
    #expect(
      await hub.send(.delete, "/hub1/messages/n1", token: listen).status == .forbidden)
    #expect(hook.count(of: "record(_:)") == 0)
    #expect(try await lines(hub).isEmpty)
  }

  @Test("every change has its line with its result, and a look has none")
  func changes() async throws {
    let hub = try await TestHub()
    _ = await hub.send(.post, "/hub1/messages?dry-run", headers: apple, body: payload)
    _ = await hub.send(.post, "/hub1/messages?test", headers: apple, body: payload)
    _ = await hub.send(.post, "/hub1/messages", headers: apple, body: "no JSON")
    _ = await hub.send(.delete, "/hub1/messages/n1")
    _ = await hub.send(.delete, "/hub1/schedulednotifications/s1")
    _ = await hub.send(.delete, "/hub1/users/ann")
    _ = await hub.send(.get, "/hub1/installations")
    let found = try await lines(hub).reversed().map {
      "\($0.action) \($0.object ?? "-") \($0.status)"
    }
    #expect(
      found == [
        "testSend - 201", "send - 400", "abortNotification n1 404", "cancelScheduled s1 404",
        // Who was erased is not written down again.
        "eraseUser - 200",
      ])
  }

  @Test("the namespace's log has the lines of hubs that are gone, and only its own key opens it")
  func namespace() async throws {
    let hub = try await TestHub(hubs: ["hub1", "hub2"])
    let entry =
      #"<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">"#
      + #"<NotificationHubDescription "#
      + #"xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"/>"#
      + "</content></entry>"
    let made = await hub.send(.put, "/hub3", body: entry, token: Self.root)
    #expect(made.status == .created)
    _ = await hub.send(
      .post, "/hub2/messages", headers: apple, body: payload,
      token: TestHub.token(resource: "https://\(TestHub.host)/hub2"))
    #expect(await hub.send(.delete, "/hub2", token: Self.root).status == .ok)
    let all = try await lines(hub, "/$activity", token: Self.root)
    #expect(
      all.map { "\($0.hub ?? "-") \($0.action)" }
        == ["hub2 deleteHub", "hub2 send", "hub3 createHub"])
    let own = try await lines(hub, "/hub3/activity", token: Self.root)
    #expect(own.map(\.action) == ["createHub"])
    #expect(await hub.send(.get, "/$activity").status == .unauthorized)
    // A hub made again under the name does not see what another had there.
    #expect(await hub.send(.put, "/hub2", body: entry, token: Self.root).status == .created)
    #expect(try await lines(hub, "/hub2/activity", token: Self.root).map(\.action) == ["createHub"])
  }

  @Test("it takes Manage, is paged, and narrowed by time, actor and action")
  func list() async throws {
    let hub = try await TestHub()
    for number in 0..<7 {
      _ = await hub.send(.delete, "/hub1/schedulednotifications/s\(number)")
    }
    _ = await hub.send(.post, "/hub1/messages", headers: apple, body: payload)
    var objects: [String?] = []
    var token = ""
    repeat {
      let reply = await hub.send(.get, "/hub1/activity?$top=3&action=cancelScheduled\(token)")
      objects += try ActivityList.decode(Array(reply.text.utf8)).map(\.object)
      token = reply.headers["x-ms-continuationtoken"].map { "&continuationtoken=\($0)" } ?? ""
    } while !token.isEmpty
    #expect(objects == (0..<7).reversed().map { "s\($0)" })
    #expect(try await lines(hub, "/hub1/activity?actor=policy/\(TestHub.fullName)").count == 8)
    #expect(try await lines(hub, "/hub1/activity?actor=policy/other").isEmpty)
    #expect(try await lines(hub, "/hub1/activity?until=2030-01-05T10:00:00Z").isEmpty)
    #expect(try await lines(hub, "/hub1/activity?from=2030-01-05T10:00:00Z").count == 8)
    for query in ["from=yesterday", "continuationtoken=AAAA", "$top=0"] {
      #expect(await hub.send(.get, "/hub1/activity?\(query)").status == .badRequest)
    }
    let listen = TestHub.token(name: TestHub.listenName, key: TestHub.listenKey)
    #expect(await hub.send(.get, "/hub1/activity", token: listen).status == .forbidden)
  }

  @Test("a store that cannot take the line does not undo what was done")
  func lost() async throws {
    let hook = StoreHook()
    let hub = try await TestHub(store: try await temporaryStore(hook))
    hook.refuse("record(_:)", with: .diskFull)
    #expect(await hub.send(.delete, "/hub1/users/ann").status == .ok)
    #expect(hook.count(of: "record(_:)") == 1)
  }
}
