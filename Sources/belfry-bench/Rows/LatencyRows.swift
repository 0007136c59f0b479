import Foundation
import HTTPServer
import HubCore
import HubServer
import HubStorage
import NotificationHubs
import PushEmulator
import PushGateways

/// The latency from the client's call to the virtual phone on an idle hub: HTTP, acceptance on
/// disk, audience, template, APNs over TLS. Hub and emulator are in this process. Two rows read it.
enum Latency {
  /// The latencies in milliseconds, sorted.
  private static let sends = MeasuredOnce { isQuick in
    try await measure(sends: isQuick ? 50 : 500, on: nil).sorted()
  }
  /// The same with the database of ``PostgresFixture``, next to its devices.
  private static let postgresSends = MeasuredOnce { isQuick in
    let fixture = try await PostgresFixture.shared.store(isQuick: isQuick)
    return try await measure(sends: isQuick ? 50 : 500, on: fixture.address).sorted()
  }

  static let median = half("latency.p50_ms", 3, sends)
  /// The 99th percentile.
  static let tail = hundredth("latency.p99_ms", 10, sends)
  static let postgresMedian = half("postgres.latency.p50_ms", 20, postgresSends)
  static let postgresTail = hundredth("postgres.latency.p99_ms", 50, postgresSends)

  private static func half(
    _ name: String, _ goal: Double, _ sends: MeasuredOnce<[Double]>
  ) -> FigureRow {
    FigureRow(name, "ms", .atMost(goal)) { isQuick in
      let times = try await sends.figures(isQuick: isQuick)
      return BenchmarkMeasurement(
        value: times[times.count / 2],
        notes: [
          "\(times.count) sends over HTTP, one after the other, with Foundation's HTTP client"
        ])
    }
  }

  private static func hundredth(
    _ name: String, _ goal: Double, _ sends: MeasuredOnce<[Double]>
  ) -> FigureRow {
    FigureRow(name, "ms", .atMost(goal)) { isQuick in
      let times = try await sends.figures(isQuick: isQuick)
      return BenchmarkMeasurement(
        value: times[min(times.count - 1, times.count * 99 / 100)],
        notes: ["slowest \((times.last ?? 0).shortest) ms"])
    }
  }

  /// - Parameter database: An address; `nil` uses a temporary file.
  private static func measure(sends: Int, on database: String?) async throws -> [Double] {
    let directory = FileManager.default.temporaryDirectory
      .appendingPathComponent("belfry-bench-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let emulator = EmulatorServer(.onFreePorts)
    let addresses = try await emulator.start()
    let app = try emulator.app()
    let store: any HubStore =
      if let database {
        try await PostgresFixture.node(database)
      } else {
        try await SQLiteHubStore.open(
          at: directory.appendingPathComponent("hub.sqlite").path, sealing: NoSealing())
      }
    // A leftover of an earlier run.
    _ = try await store.deleteHub(named: "bench")
    var services = PushGatewaysConfiguration.forStandIns
    services.extraAnchorsPEM = Array(addresses.authorityPEM.utf8)
    let gateways = PushGatewayDirectory(services, clock: .system, random: .system)
    let dispatcher = Dispatcher(store: store, gateways: gateways, clock: .system, random: .system)
    let service = HubService(
      store: store, directory: HubDirectory(store: store, clock: .system), dispatcher: dispatcher,
      clock: .system, random: .system)
    _ = try await service.createHub(named: "bench")
    try await service.credentials.set(
      PushCredential(
        platform: .apns,
        properties: [
          "Token": app.p8, "KeyId": app.keyID, "AppId": app.teamID, "AppName": app.bundleID,
          "Endpoint": addresses.apnsProduction,
        ], modifiedAt: Date()), hub: "bench", checkedBy: gateways)
    try await dispatcher.start()
    let policy = try await service.policies.get(named: AccessPolicy.defaultFullName, hub: "bench")
    let listener = try HTTPListener(HubAPIConfiguration.listener, handler: HubAPI(service: service))
    let client = NotificationHubClient(
      connectionString: ConnectionString(
        endpoint: ServiceEndpoint(host: "127.0.0.1", port: Int(listener.port), usesTLS: false),
        keyName: policy.name, key: policy.primaryKey),
      hub: "bench")
    guard let phone = try emulator.makeDevices(app: app).first else {
      throw BenchmarkError("the emulator made no device")
    }
    try await client.createOrReplace(
      Installation(
        installationID: "phone", platform: .apns, pushChannel: .handle(phone.token),
        templates: ["main": PushTemplate(body: #"{"aps":{"alert":"$(message)"}}"#)]))

    var times: [Double] = []
    for number in 0...sends {
      let start = ContinuousClock.now
      try await client.send(.template(["message": "Hello"]), to: .installation("phone"))
      while try emulator.pushes(shownOn: phone).count <= min(number, 900) {
        guard ContinuousClock.now - start < .seconds(10) else {
          throw BenchmarkError("push \(number) did not arrive within 10 s")
        }
        try await Task.sleep(for: .microseconds(100))
      }
      // The first send opens the connection and makes the token, so it is not counted.
      if number > 0 { times.append((ContinuousClock.now - start) / .milliseconds(1)) }
    }
    await listener.stop()
    await dispatcher.stop(within: .seconds(5))
    await gateways.close()
    await emulator.stop()
    try await store.close()
    return times
  }
}
