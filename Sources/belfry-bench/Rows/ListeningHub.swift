import Foundation
import HTTPServer
import HubCore
import HubServer
import HubStorage
import NotificationHubs
import PushGateways

/// An empty hub named `bench` in this process that listens on a free port.
struct ListeningHub {
  let port: UInt16
  /// Of the policy for devices.
  let keyName: String
  let key: String
  private let listener: HTTPListener
  private let store: SQLiteHubStore
  /// Of its own.
  private let directory: URL

  /// - Parameters:
  ///   - identity: Listens for HTTPS; without, for HTTP.
  ///   - file: A database that has other hubs; without, one of its own.
  init(_ identity: TLSIdentity? = nil, beside file: String? = nil) async throws {
    directory = FileManager.default.temporaryDirectory
      .appendingPathComponent("belfry-bench-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    store = try await SQLiteHubStore.open(
      at: file ?? directory.appendingPathComponent("hub.sqlite").path, sealing: NoSealing())
    let service = HubService(
      store: store, directory: HubDirectory(store: store, clock: .system),
      dispatcher: Dispatcher(store: store, gateways: PushGatewayDirectory(), clock: .system),
      clock: .system)
    _ = try await service.createHub(named: "bench")
    let policy = try await service.policy(named: AccessPolicy.defaultListenName, hub: "bench")
    (keyName, key) = (policy.name, policy.primaryKey)
    var configuration = HubAPIConfiguration.listener
    configuration.tls = identity
    listener = try HTTPListener(configuration, handler: HubAPI(service: service))
    port = listener.port
  }

  func stop() async throws {
    await listener.stop()
    try await store.close()
    try? FileManager.default.removeItem(at: directory)
  }
}
