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
  /// The name of the key of the policy for devices.
  let keyName: String
  let key: String
  private let listener: HTTPListener
  private let store: any HubStore
  /// The directory of its own database; `nil` if the store is shared.
  private let directory: URL?

  /// - Parameters:
  ///   - identity: The identity for HTTPS; `nil` for HTTP.
  ///   - file: A database with other hubs; `nil` for its own.
  init(_ identity: TLSIdentity? = nil, beside file: String? = nil) async throws {
    let directory = FileManager.default.temporaryDirectory
      .appendingPathComponent("belfry-bench-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let store = try await SQLiteHubStore.open(
      at: file ?? directory.appendingPathComponent("hub.sqlite").path, sealing: NoSealing())
    try await self.init(identity, store: store, directory: directory)
  }

  /// - Parameter store: A store that stays open; a hub left from an earlier run is deleted.
  init(on store: any HubStore) async throws {
    _ = try await store.deleteHub(named: "bench")
    try await self.init(nil, store: store, directory: nil)
  }

  private init(_ identity: TLSIdentity?, store: any HubStore, directory: URL?) async throws {
    (self.store, self.directory) = (store, directory)
    let service = HubService(
      store: store, directory: HubDirectory(store: store, clock: .system),
      dispatcher: Dispatcher(
        store: store, gateways: PushGatewayDirectory(clock: .system, random: .system),
        clock: .system, random: .system),
      clock: .system, random: .system)
    _ = try await service.createHub(named: "bench")
    let policy = try await service.policies.get(named: AccessPolicy.defaultListenName, hub: "bench")
    (keyName, key) = (policy.name, policy.primaryKey)
    var configuration = HubAPIConfiguration.listener
    configuration.tls = identity
    listener = try HTTPListener(configuration, handler: HubAPI(service: service))
    port = listener.port
  }

  func stop() async throws {
    await listener.stop()
    guard let directory else { return }
    try await store.close()
    try? FileManager.default.removeItem(at: directory)
  }
}

/// Durable PUTs of new installations over HTTP with keep-alive, with separate tokens to check on
/// each connection. The clients are a child process on the same cores.
struct PutInstallationRow: BenchmarkRow {
  /// The store of the installations.
  enum Place {
    case file
    /// A file in which another hub has a million devices.
    case besideOthers
    /// The database of ``PostgresFixture``, in which another hub has a million devices.
    case postgres
  }

  let place: Place
  var name: String {
    switch place {
    case .file: "put_installation.per_s"
    case .besideOthers: "put_installation.beside_1m.per_s"
    case .postgres: "postgres.put_installation.per_s"
    }
  }
  let unit = "1/s"
  var goal: BenchmarkGoal { .atLeast(place == .postgres ? 12_000 : 15_000) }

  init(_ place: Place = .file) { self.place = place }

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let devices = isQuick ? StoreFixture.quickDevices : StoreFixture.allDevices
    let database =
      place == .postgres ? try await PostgresFixture.shared.store(isQuick: isQuick) : nil
    let file =
      place == .besideOthers ? try await StoreFixture.shared.file(devices: devices) : nil
    let hub =
      if let database { try await ListeningHub(on: database.store) } else {
        try await ListeningHub(beside: file)
      }
    let serverBefore = database?.server.cpuSeconds ?? 0
    let count = BenchmarkOption.puts.value ?? (isQuick ? 10_000 : 100_000)
    let before = ProcessUsage.current().cpuSeconds
    let clients = try ChildProcess<Bool, HTTPLoad.Figures>([
      HTTPLoad.word, "\(hub.port)", "\(count)", hub.keyName, hub.key,
      BenchmarkOption.connections.rawValue, "\(HTTPLoad.width)",
    ])
    let figures = try clients.goodbye()
    let cpu = ProcessUsage.current().cpuSeconds - before
    let serverCPU = (database?.server.cpuSeconds ?? 0) - serverBefore
    try await hub.stop()
    guard figures.failures == 0 else {
      throw BenchmarkError("\(figures.failures) of \(count) PUTs were refused")
    }
    return BenchmarkMeasurement(
      value: (Double(count) / figures.seconds).rounded(),
      notes: [
        "\(count) new installations of 400 bytes, \(HTTPLoad.width) connections",
        "the hub used \((cpu / Double(count) * 1e6).shortest) µs of CPU each, the clients "
          + "\((figures.cpuSeconds / Double(count) * 1e6).shortest) µs",
      ]
        + (figures.bySecond.count < 3
          ? []
          : ["by the second: median \(figures.medianSecond), slowest \(figures.slowestSecond)"])
        + (place == .file ? [] : ["\(devices) devices were there"])
        + (place == .postgres
          ? ["the database used \((serverCPU / Double(count) * 1e6).shortest) µs of CPU each"] : [])
    )
  }
}
