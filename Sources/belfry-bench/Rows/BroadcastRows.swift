import Cryptography
import Foundation
import HubCore
import HubStorage
import NotificationHubs
import PushGateways

/// One template broadcast to many devices, from the accepted send to the last outcome in the store:
/// audience, template, APNs over TLS, outcomes, checkpoints. The push service is a sink in a child
/// process. Two rows read it.
actor Broadcast {
  static let shared = Broadcast()

  struct Figures: Sendable {
    let devices: Int
    let cpuSeconds: Double
    let seconds: Double
    let sinkCPUSeconds: Double
    let addedMiB: Double

    var notes: [String] {
      [
        "\(devices) devices in \(seconds.shortest) s; peak memory rose by \(addedMiB.shortest) MiB",
        "the sink used \(sinkCPUSeconds.shortest) s of CPU of its own core",
      ]
    }
  }

  private var figures: Figures?

  func figures(isQuick: Bool) async throws -> Figures {
    if let figures { return figures }
    let measured = try await Self.measure(devices: isQuick ? 20_000 : 100_000)
    figures = measured
    return measured
  }

  private static func measure(devices: Int) async throws -> Figures {
    let directory = FileManager.default.temporaryDirectory
      .appendingPathComponent("belfry-bench-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let store = try await SQLiteHubStore.open(
      at: directory.appendingPathComponent("hub.sqlite").path, sealing: NoSealing())
    let hub = try await store.createHub(
      named: "bench", registrationTTL: nil, policies: [], at: StoreFixture.now)
    try await StoreFixture.put(0..<devices, to: store, hub: hub.id, callers: 512)

    let sink = try TransportSinkProcess()
    var services = PushGatewaysConfiguration()
    services.extraAnchorsPEM = sink.authorityPEM
    let gateways = PushGatewayDirectory(services)
    let dispatcher = Dispatcher(store: store, gateways: gateways, clock: .system)
    let service = HubService(
      store: store, directory: HubDirectory(store: store, clock: .system), dispatcher: dispatcher,
      clock: .system)
    try await service.setCredential(
      PushCredential(
        platform: .apns,
        properties: [
          "Token": try P256PrivateKey().pem(), "KeyId": "ABC123DEFG", "AppId": "DEF123GHIJ",
          "AppName": "com.example.app", "Endpoint": "https://127.0.0.1:\(sink.port)",
        ], modifiedAt: Date()), hub: "bench", checkedBy: gateways)
    try await dispatcher.start()
    // One device first: connection, token and statements are ready then, as in a running hub.
    try await send(to: "city7 && group7", expecting: nil, service, hub)

    let before = ProcessUsage.current()
    let start = ContinuousClock.now
    try await send(to: nil, expecting: devices, service, hub)
    let seconds = (ContinuousClock.now - start) / .seconds(1)
    let after = ProcessUsage.current()
    await dispatcher.stop(within: .seconds(5))
    await gateways.close()
    try await store.close()
    return Figures(
      devices: devices, cpuSeconds: after.cpuSeconds - before.cpuSeconds, seconds: seconds,
      sinkCPUSeconds: try sink.stop(), addedMiB: after.peakMiB - before.peakMiB)
  }

  private static func send(
    to tags: String?, expecting devices: Int?, _ service: HubService, _ hub: Hub
  ) async throws {
    var headers = [("ServiceBusNotification-Format", "template")]
    if let tags { headers.append(("ServiceBusNotification-Tags", tags)) }
    let sent = try await service.send(
      hub: hub, headers: headers, body: Array(#"{"message":"Hello from Postman!"}"#.utf8))
    let record = try await service.dispatcher.record(
      of: sent.id, hub: hub.id, finishedWithin: .seconds(600))
    guard let record, record.state == .completed else {
      throw BenchmarkError("the broadcast did not complete")
    }
    let successes = record.counts.filter { $0.key.outcome == .success }.values.reduce(0, +)
    if let devices, successes != devices {
      throw BenchmarkError("\(successes) of \(devices) devices got the broadcast")
    }
  }
}

/// What one device of a broadcast costs the hub.
struct BroadcastCostRow: BenchmarkRow {
  let name = "send.cpu_us_per_device"
  let unit = "µs CPU"
  let goal = BenchmarkGoal.atMost(8)

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let figures = try await Broadcast.shared.figures(isQuick: isQuick)
    return BenchmarkMeasurement(
      value: figures.cpuSeconds / Double(figures.devices) * 1e6, notes: figures.notes)
  }
}

/// How fast a broadcast goes.
struct BroadcastRateRow: BenchmarkRow {
  let name = "send.per_s"
  let unit = "1/s"
  let goal = BenchmarkGoal.atLeast(100_000)

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let figures = try await Broadcast.shared.figures(isQuick: isQuick)
    return BenchmarkMeasurement(
      value: (Double(figures.devices) / figures.seconds).rounded(), notes: figures.notes)
  }
}
