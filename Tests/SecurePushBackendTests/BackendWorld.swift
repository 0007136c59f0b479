import Cryptography
import Foundation
import HTTPServer
import HubCore
import HubServer
import HubTesting
import NotificationHubs
import SQLDatabase
import SecurePushBackend
import Wire

/// A hub that nobody reaches.
struct UnreachableTransport: HTTPTransport {
  func send(_ request: TransportRequest) async throws -> TransportReply {
    throw URLError(.cannotConnectToHost)
  }
}

/// Holds the calls to a hub that have this method until it is opened.
actor HubGate {
  let method: String
  private var isOpen = false
  private var held: [CheckedContinuation<Void, Never>] = []
  private var watchers: [CheckedContinuation<Void, Never>] = []

  init(_ method: String) { self.method = method }

  /// Waits for the first call that is held.
  func holds() async {
    if held.isEmpty { await withCheckedContinuation { watchers.append($0) } }
  }

  func open() {
    isOpen = true
    for call in held { call.resume() }
    held = []
  }

  func pass() async {
    if isOpen { return }
    for watcher in watchers { watcher.resume() }
    watchers = []
    await withCheckedContinuation { held.append($0) }
  }
}

private struct GatedTransport: HTTPTransport {
  let gate: HubGate
  let next: any HTTPTransport

  func send(_ request: TransportRequest) async throws -> TransportReply {
    if request.method == gate.method { await gate.pass() }
    return try await next.send(request)
  }
}

/// A whole hub in memory with push services that only remember, and a backend before it whose
/// database is a file.
struct BackendWorld {
  static let host = "contoso-ns.servicebus.windows.net"

  /// Starts with the real time: the hub's client signs with it.
  let clock = ManualClock(now: Date())
  let apns = FakeGateway()
  let fcm = FakeGateway()
  let wns = FakeGateway()
  let hub: NotificationHubClient
  let dispatcher: Dispatcher
  private let hubTransport: any HTTPTransport
  private let signIn: SignIn
  let store: BackendStore
  let backend: BackendAPI
  /// Where a ``SecurePushClient`` finds the backend.
  let url = URL(string: "http://192.0.2.1:8090")!
  var transport: any HTTPTransport { InProcessTransport(handler: backend) }

  /// Runs a test in a world of its own.
  /// - Parameters:
  ///   - database: An address of PostgreSQL; `nil` takes an SQLite file.
  ///   - gate: Holds calls to the hub.
  ///   - before: Fills the database before the backend opens it.
  static func run(
    database: String? = nil, in given: TemporaryDirectory? = nil, givesHubTokens: Bool = false,
    signIn: SignIn = SignIn(passwords: DemoUsers()),
    configuration: BackendConfiguration = BackendConfiguration(), hubIsReachable: Bool = true,
    transport: any HTTPTransport = UnreachableTransport(),
    holding gate: HubGate? = nil,
    before: ((any SQLConnection, SecretSealer) throws -> Void)? = nil,
    _ body: (BackendWorld) async throws -> Void
  ) async throws {
    let directory = try given ?? TemporaryDirectory()
    defer { if given == nil { directory.remove() } }
    let world = try await BackendWorld(
      directory, database: database, givesHubTokens: givesHubTokens, signIn: signIn,
      configuration: configuration, hubIsReachable: hubIsReachable, transport: transport,
      gate: gate, before: before)
    do {
      try await body(world)
    } catch {
      await world.close()
      throw error
    }
    await world.close()
  }

  private init(
    _ directory: TemporaryDirectory, database: String?, givesHubTokens: Bool, signIn: SignIn,
    configuration given: BackendConfiguration,
    hubIsReachable: Bool, transport: any HTTPTransport, gate: HubGate?,
    before: ((any SQLConnection, SecretSealer) throws -> Void)?
  ) async throws {
    let hubStore = try await temporaryStore()
    let clock = clock
    dispatcher = Dispatcher(
      store: hubStore,
      gateways: FakeGateways([.apns: apns, .fcmv1: fcm, .wns: wns]), clock: clock.hubClock,
      random: .system)
    let service = HubService(
      store: hubStore, directory: HubDirectory(store: hubStore, clock: clock.hubClock),
      dispatcher: dispatcher, clock: clock.hubClock, random: .system)
    let key = AccessPolicy.randomKey(.system)
    let listenKey = AccessPolicy.randomKey(.system)
    let made = try await hubStore.createHub(
      named: "app", registrationTTL: nil,
      policies: [
        AccessPolicy(
          name: "Full", rights: .all, primaryKey: key,
          secondaryKey: AccessPolicy.randomKey(.system),
          createdAt: clock.now, modifiedAt: clock.now),
        AccessPolicy(
          name: "Listen", rights: .listen, primaryKey: listenKey,
          secondaryKey: AccessPolicy.randomKey(.system), createdAt: clock.now, modifiedAt: clock.now
        ),
      ], at: clock.now)
    for platform in [PushPlatform.apns, .fcmv1, .wns] {
      try await hubStore.putCredential(
        PushCredential(platform: platform, properties: [:], modifiedAt: clock.now), hub: made.id)
    }
    try await dispatcher.start()
    let way: any HTTPTransport =
      hubIsReachable
      ? InProcessTransport(handler: HubAPI(service: service)) : UnreachableTransport()
    if let gate { hubTransport = GatedTransport(gate: gate, next: way) } else { hubTransport = way }
    hub = NotificationHubClient(
      connectionString: try ConnectionString(
        "Endpoint=sb://\(Self.host)/;SharedAccessKeyName=Full;SharedAccessKey=\(key)"),
      hub: "app",
      transport: hubTransport, retry: .none)
    var configuration = given
    if givesHubTokens {
      configuration.listening = BackendConfiguration.HubAccess(
        connectionString: try ConnectionString(
          "Endpoint=sb://\(Self.host)/;SharedAccessKeyName=Listen;SharedAccessKey=\(listenKey)"),
        hub: "app")
    }
    let path = directory.path("backend.db")
    let open = { @Sendable () throws -> any SQLConnection in
      if let database {
        try PostgresConnection(address: database, component: "backend")
      } else {
        try SQLiteConnection(path: path)
      }
    }
    let masterKey = try MasterKey.loadOrCreate(file: directory.path("backend.key")).key
    if let before {
      let connection = try open()
      try before(connection, SecretSealer(key: masterKey))
      connection.close()
    }
    store = try await BackendStore(key: masterKey, open: open)
    backend = BackendAPI(
      hub: hub, store: store, signIn: signIn, configuration: configuration, transport: transport,
      now: { clock.now })
    self.signIn = signIn
  }

  /// Another backend on the same store.
  func restarted() -> BackendAPI {
    let clock = clock
    return BackendAPI(hub: hub, store: store, signIn: signIn, now: { clock.now })
  }

  /// A client of the hub with other tokens.
  func hubClient(tokens: TokenProvider) -> NotificationHubClient {
    NotificationHubClient(
      endpoint: ServiceEndpoint(host: Self.host), hub: "app", tokens: tokens,
      transport: hubTransport, retry: .none)
  }

  private func close() async {
    await dispatcher.stop(within: .seconds(10))
    await store.close()
  }

  /// Asks the backend.
  /// - Parameter user: Signs in by the demo rule; `nil` leaves the header out.
  func ask(
    _ method: HTTPMethod, _ path: String, as user: String? = "alice", body: String = "",
    authorization: String? = nil, headers: HTTPHeaders = HTTPHeaders(),
    from address: String = "192.0.2.1"
  ) async -> HTTPResponse {
    var headers = headers
    headers["Authorization"] =
      authorization ?? user.map { "Basic " + Base64.encode(Array("\($0):\($0)".utf8)) }
    return await backend.respond(
      to: HTTPRequest(
        method: method, target: HTTPTarget(path), headers: headers, body: Array(body.utf8),
        remoteAddress: address))
  }

  /// Everything that has been accepted has its outcome.
  func delivered() async throws {
    guard await dispatcher.waitUntilIdle(within: .seconds(20)) else { throw Late() }
  }

  struct Late: Error {}
}

extension HTTPResponse {
  var text: String {
    guard case .bytes(let bytes) = body else { return "" }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The body as JSON.
  var json: JSONValue { (try? JSONValue.parse(text.utf8)) ?? .null }
}
