import Foundation
import HTTPServer
import HubCore
import HubServer
import HubTesting
import NotificationHubs

/// Runs `body` on the API over a new store.
func withHub(
  hubs: [String] = ["hub1"], configuration: HubAPIConfiguration = HubAPIConfiguration(),
  on engine: TestedEngine = .file, _ body: (TestHub) async throws -> Void
) async throws {
  try await body(TestHub(hubs: hubs, configuration: configuration, on: engine))
}

/// The REST API over a store, with the keys of the token vectors of docs/protocol/sas.md,
/// section 3.
struct TestHub {
  static let host = "contoso-ns.servicebus.windows.net"
  static let listenName = "DefaultListenSharedAccessSignature"
  static let fullName = "DefaultFullSharedAccessSignature"
  static let fullKey = "xhJ+0Yb3/Vq9dK2mRz7LwT5uGc8NaPfE1sOiQe4Ht6U="
  static let listenKey = "3Zk8Qd1v+LrXo5/TbYpW7nMj0CsEfUgHi2KaNwR9x6A="
  static let rootKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
  /// 2030-01-05T10:00:00Z.
  static let now = Date(timeIntervalSince1970: 1_893_837_600)

  let store: any HubStore
  let clock: ManualClock
  let service: HubService
  let api: HubAPI

  /// - Parameters:
  ///   - hubs: Their names; each has the same keys.
  ///   - engine: Of a new store, unless there is one.
  init(
    hubs: [String] = ["hub1"], configuration: HubAPIConfiguration = HubAPIConfiguration(),
    store: (any HubStore)? = nil, on engine: TestedEngine = .file, now: Date = TestHub.now,
    gateways: (any GatewayDirectory)? = nil, limits: HubLimits = .extended
  ) async throws {
    self.clock = ManualClock(now: now)
    let clock = self.clock.hubClock
    let store: any HubStore =
      if let store { store } else { try await temporaryStore(on: engine) }
    self.store = store
    service = HubService(
      store: store, directory: HubDirectory(store: store, clock: clock),
      dispatcher: Dispatcher(store: store, gateways: NoGateways(), clock: clock, random: .system),
      clock: clock, random: .system, limits: limits, gateways: gateways)
    api = HubAPI(service: service, configuration: configuration)
    for hub in hubs {
      _ = try await store.createHub(
        named: hub, registrationTTL: nil,
        policies: [
          Self.policy(Self.listenName, .listen, Self.listenKey),
          Self.policy(Self.fullName, .all, Self.fullKey),
        ], at: Self.now)
    }
    try await store.putAccessPolicy(
      Self.policy("RootManageSharedAccessKey", .all, Self.rootKey), hub: nil)
  }

  private static func policy(
    _ name: String, _ rights: AccessRights, _ key: String
  ) -> AccessPolicy {
    AccessPolicy(
      name: name, rights: rights, primaryKey: key, secondaryKey: AccessPolicy.randomKey(.system),
      createdAt: now, modifiedAt: now)
  }

  /// A token of the full key for a hub, or what else is asked for.
  static func token(
    resource: String = "https://\(host)/hub1", name: String = fullName, key: String = fullKey,
    lifetime: TimeInterval = 1200
  ) -> String {
    SharedAccessSignature(
      resource: resource, keyName: name, key: key, expiresAt: now.addingTimeInterval(lifetime)
    ).text
  }

  /// Sends a request without a socket.
  ///
  /// - Parameter token: `nil` leaves the header out.
  func send(
    _ method: HTTPMethod, _ target: String, headers: HTTPHeaders = [:], body: String = "",
    token: String? = TestHub.token(), host: String = TestHub.host
  ) async -> HTTPResponse {
    var headers = headers
    headers["Host"] = host
    headers["Authorization"] = token
    return await api.respond(
      to: HTTPRequest(
        method: method, target: HTTPTarget(target), headers: headers, body: Array(body.utf8)))
  }
}

extension HTTPResponse {
  /// The body as text; empty if there is none.
  var text: String {
    guard case .bytes(let bytes) = body else { return "" }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The message of an error document, without tracking id and time.
  var message: String? {
    ErrorEnvelope(xml: Data(text.utf8))?.message
  }
}

/// No push service at all.
private struct NoGateways: GatewayDirectory {
  func gateway(for credential: PushCredential, hub: Hub.ID) async throws -> (any PushGateway)? {
    nil
  }
}
