import Cryptography
import Foundation
import HubCore
import NotificationHubs
import PushGateways

/// The number of pushes per second that reach a push service 50 ms away. The concurrency of a
/// single connection limits it, so the pool must grow. Uses the real dispatcher and APNs gateway
/// over TLS, with an audience and a store that cost nothing.
struct PoolRow: BenchmarkRow {
  let name = "pool.latency50_per_s"
  let unit = "1/s"
  /// Twice the capacity of one connection, which is 1000 streams in 50 ms; from a cold start.
  let goal = BenchmarkGoal.atLeast(40_000)

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let seconds = isQuick ? 2 : 8  // so that all counts are whole pages
    var notes: [String] = []
    var rates: [Double] = []
    for (latency, connections) in [(50, 8), (50, 1), (200, 8), (200, 1)] {
      // As many as one connection carries in half the time, or eight in slightly more.
      let count = 1_000 * 1_000 / latency * seconds * (connections > 1 ? 4 : 1) / 2
      let rate = try await Self.rate(devices: count, latency: latency, connections: connections)
      rates.append(rate)
      notes.append(
        "\(latency) ms, at most \(connections) connection\(connections > 1 ? "s" : ""): "
          + "\(Int(rate))/s over \(count) devices")
    }
    return BenchmarkMeasurement(
      value: rates[0].rounded(), notes: notes + ["all figures from the first push on, one growing"])
  }

  private static func rate(devices: Int, latency: Int, connections: Int) async throws -> Double {
    let sink = try TransportSinkProcess(latency: latency)
    var configuration = PushGatewaysConfiguration.forStandIns
    configuration.extraAnchorsPEM = sink.authorityPEM
    configuration.apns.maxConnections = connections
    let gateways = PushGatewayDirectory(configuration, clock: .system, random: .system)
    let store = EndlessAudience(
      devices: devices,
      credential: PushCredential(
        platform: .apns,
        properties: [
          "Token": try P256PrivateKey().pem(), "KeyId": "ABC123DEFG", "AppId": "DEF123GHIJ",
          "AppName": "com.example.app", "Endpoint": "https://127.0.0.1:\(sink.port)",
        ], modifiedAt: Date()))
    let dispatcher = Dispatcher(store: store, gateways: gateways, clock: .system, random: .system)
    try await dispatcher.start()
    let started = ContinuousClock.now
    let request = NotificationRequest(format: .template, body: Array(#"{"message":"Hi"}"#.utf8))
    await dispatcher.submit(
      NotificationRecord(
        id: NotificationID(at: Date(), random: .system), hub: 1, request: request, state: .enqueued,
        enqueuedAt: Date()))
    guard await dispatcher.waitUntilIdle(within: .seconds(300)) else {
      throw BenchmarkError("the broadcast did not end within 300 s")
    }
    let elapsed = (ContinuousClock.now - started) / .seconds(1)
    await dispatcher.stop(within: .seconds(1))
    await gateways.close()
    _ = try sink.stop()
    guard await store.successes == devices else { throw BenchmarkError("pushes failed") }
    return Double(devices) / elapsed
  }
}
