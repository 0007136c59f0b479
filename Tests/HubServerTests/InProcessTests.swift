import Foundation
import HTTPServer
import HubCore
import HubServer
import HubTesting
import NotificationHubs
import Synchronization
import Testing

@Suite("The API in the process that has opened the store")
struct InProcessTests {
  private static let nobody = ConnectionString(
    endpoint: ServiceEndpoint(host: "localhost"), keyName: "nobody", key: "none")

  private func namespace(
    _ hub: TestHub, unlogged: @escaping @Sendable (HubFailure) -> Void = { _ in }
  ) -> NamespaceClient {
    NamespaceClient(
      connectionString: Self.nobody,
      transport: InProcessTransport(
        hub.api, as: HubOwner(commandLine: "ann", unlogged: unlogged)), retry: .none)
  }

  private func client(_ hub: TestHub) -> NotificationHubClient {
    NotificationHubClient(
      connectionString: Self.nobody, hub: "hub1",
      transport: InProcessTransport(
        hub.api, as: HubOwner(commandLine: "ann", unlogged: { _ in })), retry: .none)
  }

  @Test("the owner of a store needs no key, and each change has its name")
  func owner() async throws {
    let hub = try await TestHub()
    let namespace = namespace(hub)
    let made = try await namespace.create(HubDescription(name: "news"))
    #expect(made.createdTime == TestHub.now && made.updatedTime == TestHub.now)
    #expect(try await namespace.hub("NEWS").name == "news")
    #expect(try await namespace.hubs().map(\.name) == ["hub1", "news"])
    #expect(try await namespace.hubs().allSatisfy { $0.createdTime == TestHub.now })
    await #expect(throws: NotificationHubError.self) {
      try await namespace.create(HubDescription(name: "news"))
    }
    try await namespace.delete(hub: "news")
    _ = try await client(hub).erase(user: "bob")
    let lines = try await namespace.activity().all()
    #expect(
      lines.map { "\($0.action) \($0.hub ?? "") \($0.status)" } == [
        "eraseUser hub1 200", "deleteHub news 200", "createHub news 409", "createHub news 201",
      ])
    #expect(
      lines.allSatisfy { $0.actor == "command-line/ann" && $0.via == .commandLine })
    #expect(lines.allSatisfy { $0.address.isEmpty })
  }

  @Test("what the owner writes of devices has no entry, as with a key")
  func devices() async throws {
    let hub = try await TestHub()
    let client = client(hub)
    try await client.createOrReplace(
      Installation(installationID: "i", platform: .apns, pushChannel: .handle("AB12")))
    #expect(try await client.installations().all().map(\.installationID) == ["i"])
    #expect(try await client.activity().all().isEmpty)
  }

  @Test("the owner sees a disabled hub, and changes nothing in it")
  func disabled() async throws {
    let hub = try await TestHub()
    _ = try await hub.service.updateHub(named: "hub1", HubChange(isDisabled: true))
    let client = client(hub)
    #expect(try await client.installations().all().isEmpty)
    await #expect(throws: NotificationHubError.self) { try await client.erase(user: "bob") }
  }

  @Test("a body that a listener refuses is refused to the owner as well")
  func size() async throws {
    let hub = try await TestHub()
    let reply = await hub.api.respond(
      to: HTTPRequest(
        method: .put, target: "/hub1/installations/i", headers: [:],
        body: [UInt8](repeating: 32, count: HubAPIConfiguration.defaultMaxBodyBytes + 1)),
      as: HubOwner(commandLine: "ann") { _ in })
    #expect(reply.status == .contentTooLarge)
  }

  @Test("what a listener is given asks for a token, whatever the request says of itself")
  func listener() async throws {
    let hub = try await TestHub()
    _ = try await namespace(hub).hubs()
    for headers in [
      [:], ["Host": "localhost"], ["Authorization": "command-line/ann"],
      ["Authorization": "SharedAccessSignature sr=x&sig=x&se=9&skn=command-line"],
    ] as [HTTPHeaders] {
      let reply = await (hub.api as any HTTPHandler).respond(
        to: HTTPRequest(
          method: .get, target: "/$Resources/NotificationHubs", headers: headers,
          remoteAddress: "127.0.0.1"))
      #expect(reply.status == .unauthorized)
    }
    let stranger = NamespaceClient(
      connectionString: Self.nobody, transport: InProcessTransport(handler: hub.api), retry: .none)
    await #expect(throws: NotificationHubError.self) { try await stranger.hubs() }
  }

  private struct Streaming: HTTPHandler {
    func respond(to request: HTTPRequest) async -> HTTPResponse {
      HTTPResponse(.ok, body: .stream { try await $0.write("piece") })
    }
  }

  @Test("a reply that comes in pieces is refused, and not taken for an empty one")
  func streams() async throws {
    let client = NotificationHubClient(
      connectionString: Self.nobody, hub: "hub1",
      transport: InProcessTransport(handler: Streaming()), retry: .none)
    let error = await #expect(throws: NotificationHubError.self) {
      try await client.installation("i")
    }
    #expect(error?.detail?.contains("in pieces") == true, "\(error as Any)")
  }

  @Test("a change that the activity log could not keep is done, and said")
  func unlogged() async throws {
    let hook = StoreHook()
    let hub = try await TestHub(store: try await temporaryStore(hook))
    hook.refuse("record(_:)", with: .diskFull)
    let reasons = Mutex<[String]>([])
    _ = try await namespace(hub) { failure in reasons.withLock { $0.append("\(failure)") } }
      .create(HubDescription(name: "news"))
    #expect(reasons.withLock { $0.count } == 1)
    #expect(try await hub.service.hubs().map(\.name) == ["hub1", "news"])
  }
}
