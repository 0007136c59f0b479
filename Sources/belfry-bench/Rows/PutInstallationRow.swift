import Foundation
import HTTPServer
import HubCore
import HubServer
import HubStorage
import NotificationHubs
import PushGateways

/// Durable PUTs of new installations over HTTP with keep-alive, 64 connections, each with a token of
/// its own to check. The clients are a child process on the same cores.
struct PutInstallationRow: BenchmarkRow {
  let name = "put_installation.per_s"
  let unit = "1/s"
  let goal = BenchmarkGoal.atLeast(15_000)

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let directory = FileManager.default.temporaryDirectory
      .appendingPathComponent("belfry-bench-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let store = try await SQLiteHubStore.open(
      at: directory.appendingPathComponent("hub.sqlite").path, sealing: NoSealing())
    let service = HubService(
      store: store, directory: HubDirectory(store: store, clock: .system),
      dispatcher: Dispatcher(store: store, gateways: PushGatewayDirectory(), clock: .system),
      clock: .system)
    _ = try await service.createHub(named: "bench")
    let policy = try await service.policy(named: AccessPolicy.defaultListenName, hub: "bench")
    let listener = try HTTPListener(HubAPIConfiguration.listener, handler: HubAPI(service: service))

    let count = isQuick ? 10_000 : 100_000
    let before = ProcessUsage.current().cpuSeconds
    let clients = try ChildProcess<Bool, HTTPLoad.Figures>([
      HTTPLoad.word, "\(listener.port)", "\(count)", policy.name, policy.primaryKey,
    ])
    let figures = try clients.goodbye()
    let cpu = ProcessUsage.current().cpuSeconds - before
    await listener.stop()
    try await store.close()
    guard figures.failures == 0 else {
      throw BenchmarkError("\(figures.failures) of \(count) PUTs were refused")
    }
    return BenchmarkMeasurement(
      value: (Double(count) / figures.seconds).rounded(),
      notes: [
        "\(count) new installations of 400 bytes, 64 connections",
        "the hub used \((cpu / Double(count) * 1e6).shortest) µs of CPU each, the clients "
          + "\((figures.cpuSeconds / Double(count) * 1e6).shortest) µs",
      ])
  }
}
