import Foundation
import HTTPServer
import HubCore
import HubTesting
import NotificationHubs
import Synchronization
import Testing

/// Broadcast channels as a client sees them.
@Suite struct ChannelTests {
  private static let id = "+/9tZUNoYW5uZWw="
  private static let encoded = "%2B%2F9tZUNoYW5uZWw%3D"
  private static let channel = BroadcastChannel(id: id, storage: .latestMessage)

  /// APNs of a test's own making: answers with what it was given, and remembers what it got.
  private final class FakeBroadcasts: BroadcastGateway, GatewayDirectory {
    let refusal: BroadcastRefusal?
    private let log = Mutex<[String]>([])

    init(refusing refusal: BroadcastRefusal? = nil) { self.refusal = refusal }

    var calls: [String] { log.withLock { $0 } }

    private func note(_ call: String) throws(BroadcastRefusal) {
      log.withLock { $0.append(call) }
      if let refusal { throw refusal }
    }

    func createChannel(
      _ storage: BroadcastChannel.Storage
    ) async throws(BroadcastRefusal) -> BroadcastChannel {
      try note("create \(storage.rawValue)")
      return BroadcastChannel(id: ChannelTests.id, storage: storage)
    }

    func channel(_ id: String) async throws(BroadcastRefusal) -> BroadcastChannel {
      try note("read \(id)")
      return ChannelTests.channel
    }

    func channels() async throws(BroadcastRefusal) -> [String] {
      try note("list")
      return [ChannelTests.id]
    }

    func deleteChannel(_ id: String) async throws(BroadcastRefusal) { try note("delete \(id)") }

    func send(
      _ message: BroadcastMessage, to channel: String
    ) async throws(BroadcastRefusal) -> BroadcastReceipt {
      try note(
        "send \(channel) \(message.expiration) \(message.priority) "
          + String(decoding: message.payload, as: UTF8.self))
      return BroadcastReceipt(requestID: "r-1", uniqueID: nil)
    }

    func close() async {}

    func gateway(for credential: PushCredential, hub: Hub.ID) async throws -> (any PushGateway)? {
      nil
    }

    func broadcasts(
      with credential: PushCredential, hub: Hub.ID
    ) async throws -> (any BroadcastGateway)? { self }
  }

  private func hub(
    _ apns: any GatewayDirectory, hasCredential: Bool = true
  ) async throws -> TestHub {
    let hub = try await TestHub(hubs: ["hub1", "a/b"], gateways: apns)
    guard hasCredential else { return hub }
    for name in ["hub1", "a/b"] {
      let found = try #require(try await hub.store.hub(named: name))
      try await hub.store.putCredential(
        PushCredential(
          platform: .apns, properties: ["AppName": "com.example.app"], modifiedAt: TestHub.now),
        hub: found.id)
    }
    return hub
  }

  @Test func `a channel is made, read, listed and deleted`() async throws {
    let apns = FakeBroadcasts()
    let hub = try await hub(apns)
    let made = await hub.send(
      .post, "/hub1/channels?api-version=2020-06", body: #"{"storage":"latest"}"#)
    #expect(made.status == .created)
    #expect(made.headers["Content-Type"] == "application/json;charset=utf-8")
    #expect(
      made.headers["Location"]
        == "http://\(TestHub.host)/hub1/channels/\(Self.encoded)?api-version=2020-06")
    #expect(try BroadcastChannel(json: Array(made.text.utf8)) == Self.channel)
    let read = await hub.send(.get, "/hub1/channels/\(Self.encoded)")
    #expect(read.status == .ok)
    #expect(try BroadcastChannel(json: Array(read.text.utf8)) == Self.channel)
    let list = await hub.send(.get, "/hub1/channels")
    #expect(try BroadcastChannel.ids(json: Array(list.text.utf8)) == [Self.id])
    let deleted = await hub.send(.delete, "/hub1/channels/\(Self.encoded)")
    #expect(deleted.status == .noContent)
    #expect(apns.calls == ["create latest", "read \(Self.id)", "list", "delete \(Self.id)"])
  }

  @Test(arguments: ["hub1", "a/b"])
  func `a broadcast is handed on with its expiration and priority`(name: String) async throws {
    let apns = FakeBroadcasts()
    let hub = try await hub(apns)
    let token = TestHub.token(resource: "https://\(TestHub.host)/\(name)")
    let plain = await hub.send(
      .post, "/\(name)/channels/\(Self.encoded)/messages", body: #"{"aps":{}}"#, token: token)
    #expect(plain.status == .ok, "\(plain.text)")
    #expect(try BroadcastReceipt(json: Array(plain.text.utf8)).requestID == "r-1")
    let late = await hub.send(
      .post, "/\(name)/channels/\(Self.encoded)/messages",
      headers: ["apns-expiration": " 1900000000", "apns-priority": "5"], body: #"{"aps":{}}"#,
      token: token)
    #expect(late.status == .ok)
    #expect(
      apns.calls == [
        #"send \#(Self.id) 0 10 {"aps":{}}"#, #"send \#(Self.id) 1900000000 5 {"aps":{}}"#,
      ])
  }

  @Test func `who may only listen does neither, who may send does not manage`() async throws {
    let apns = FakeBroadcasts()
    let hub = try await hub(apns)
    let listen = TestHub.token(name: TestHub.listenName, key: TestHub.listenKey)
    let calls: [(HTTPMethod, String)] = [
      (.post, ""), (.get, ""), (.get, "/\(Self.encoded)"), (.delete, "/\(Self.encoded)"),
      (.post, "/\(Self.encoded)/messages"),
    ]
    for (method, path) in calls {
      let reply = await hub.send(method, "/hub1/channels\(path)", body: "{}", token: listen)
      #expect(reply.status == .forbidden, "\(method) \(path)")
      let nobody = await hub.send(method, "/hub1/channels\(path)", body: "{}", token: nil)
      #expect(nobody.status == .unauthorized, "\(method) \(path)")
    }
    let found = try #require(try await hub.store.hub(named: "hub1"))
    let key = AccessPolicy.randomKey(.system)
    try await hub.store.putAccessPolicy(
      AccessPolicy(
        name: "sender", rights: .send, primaryKey: key, secondaryKey: key,
        createdAt: TestHub.now, modifiedAt: TestHub.now), hub: found.id)
    let sender = TestHub.token(name: "sender", key: key)
    for (method, path) in calls.dropLast() {
      let reply = await hub.send(method, "/hub1/channels\(path)", body: "{}", token: sender)
      #expect(reply.status == .forbidden, "\(method) \(path)")
    }
    let sent = await hub.send(
      .post, "/hub1/channels/\(Self.encoded)/messages", body: "{}", token: sender)
    #expect(sent.status == .ok)
    #expect(apns.calls.count == 1)
  }

  @Test(arguments: [
    (BroadcastRefusal.Kind.unknownChannel, 404), (.badRequest, 400), (.tooLarge, 413),
    (.limitReached, 409), (.notAllowed, 409), (.throttled, 429), (.unavailable, 503),
  ])
  func `what APNs refuses comes in the protocol's envelope, with APNs' own word`(
    kind: BroadcastRefusal.Kind, status: Int
  ) async throws {
    let hub = try await hub(
      FakeBroadcasts(refusing: BroadcastRefusal(kind, reason: "SomeWord", retryAfter: 7)))
    let reply = await hub.send(.get, "/hub1/channels/\(Self.encoded)")
    #expect(reply.status.rawValue == status)
    #expect(reply.message?.contains("SomeWord") == true, "\(reply.text)")
    #expect(reply.headers["Retry-After"] == ([429, 503].contains(status) ? "7" : nil))
  }

  struct Bad: Sendable {
    var method = HTTPMethod.post
    let path: String
    var headers: HTTPHeaders = [:]
    var body = #"{"aps":{}}"#
    let status: HTTPStatus
    let says: String
  }

  @Test(arguments: [
    Bad(path: "", body: "", status: .badRequest, says: #"{"storage":"none"}"#),
    Bad(path: "", body: #"{"storage":"all"}"#, status: .badRequest, says: "what it stores"),
    Bad(method: .get, path: "/no-base-64!", status: .badRequest, says: "percent-encoded"),
    Bad(method: .get, path: "/%zz", status: .badRequest, says: "percent-encoded"),
    Bad(
      method: .delete, path: "/" + String(repeating: "A", count: 68), status: .badRequest,
      says: "no channel's"),
    Bad(path: "/AAAA/messages", body: "hi", status: .badRequest, says: "JSON object"),
    Bad(path: "/AAAA/messages", body: "[]", status: .badRequest, says: "JSON object"),
    Bad(
      path: "/AAAA/messages", body: "{}" + String(repeating: " ", count: 5119),
      status: .contentTooLarge, says: "5120"),
    Bad(
      path: "/AAAA/messages", headers: ["apns-expiration": "soon"], status: .badRequest,
      says: "apns-expiration"),
    Bad(
      path: "/AAAA/messages", headers: ["apns-expiration": "-1"], status: .badRequest,
      says: "apns-expiration"),
    Bad(
      path: "/AAAA/messages", headers: ["apns-priority": "9"], status: .badRequest,
      says: "apns-priority"),
  ])
  func `a request that makes no sense is refused before APNs is asked`(bad: Bad) async throws {
    let apns = FakeBroadcasts()
    let hub = try await hub(apns)
    let reply = await hub.send(
      bad.method, "/hub1/channels\(bad.path)", headers: bad.headers, body: bad.body)
    #expect(reply.status == bad.status)
    #expect(reply.message?.contains(bad.says) == true, "\(reply.text)")
    #expect(apns.calls.isEmpty)
  }

  @Test func `a hub without an Apple credential, or with a broken one, says so`() async throws {
    let bare = try await hub(FakeBroadcasts(), hasCredential: false)
    let reply = await bare.send(.get, "/hub1/channels")
    #expect(reply.status == .conflict)
    #expect(reply.message?.contains("no apns credential") == true)

    struct Broken: GatewayDirectory {
      func gateway(for credential: PushCredential, hub: Hub.ID) async throws
        -> (any PushGateway)?
      { nil }
      func broadcasts(with credential: PushCredential, hub: Hub.ID) async throws
        -> (any BroadcastGateway)?
      { throw CredentialError("BroadcastEndpoint is missing") }
    }
    let broken = await (try hub(Broken())).send(.get, "/hub1/channels")
    #expect(broken.status == .conflict)
    #expect(broken.message?.contains("BroadcastEndpoint is missing") == true)
  }

  @Test func `other methods are 405`() async throws {
    let hub = try await hub(FakeBroadcasts())
    let list = await hub.send(.delete, "/hub1/channels")
    #expect(list.status == .methodNotAllowed)
    let one = await hub.send(.put, "/hub1/channels/AAAA")
    #expect(one.status == .methodNotAllowed)
  }
}
