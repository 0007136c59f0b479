import Foundation
import HubCore
import HubStorage
import NotificationHubs
import Synchronization

/// A broadcast to the store's devices while its push service first replies 503 to everything, and
/// later accepts everything.
enum Outage {
  struct Figures: Sendable {
    let devices: Int
    /// The duration of the outage, in seconds.
    let seconds: Double
    /// The CPU usage as a share of one core.
    let cpuShare: Double
    /// The amount written to disk, in megabytes (10⁶ bytes); 0 if the system does not report it.
    let writtenMB: Double
    /// The number of pushes attempted during the outage.
    let tried: Int
    /// The number of retry rows at its end.
    let rows: Int
    /// The time from the service's return to the last outcome on disk, in seconds.
    let drainSeconds: Double

    var notes: [String] {
      [
        "\(devices) devices; the service down for \(seconds.shortest) s: \(tried) pushes tried, "
          + "\(rows) retry rows, \(writtenMB.shortest) MB written",
        "from its return to the last outcome \(drainSeconds.shortest) s; every device has one",
      ]
    }
  }

  private static let outage = MeasuredOnce { isQuick in
    let devices = isQuick ? StoreFixture.quickDevices : StoreFixture.allDevices
    let file = try await StoreFixture.shared.file(devices: devices)
    return try await measure(file, devices: devices, seconds: isQuick ? 10 : 60)
  }

  /// The CPU usage of a hub while a push service is down and a broadcast waits for it.
  static let cpu = FigureRow("outage.cpu_percent", "% of a core", .atMost(5)) { isQuick in
    let figures = try await outage.figures(isQuick: isQuick)
    return BenchmarkMeasurement(value: figures.cpuShare * 100, notes: figures.notes)
  }

  /// The amount written to disk during the outage.
  static let disk = FigureRow("outage.mb_written_per_s", "MB/s", .atMost(1)) { isQuick in
    let figures = try await outage.figures(isQuick: isQuick)
    return BenchmarkMeasurement(
      value: figures.writtenMB / figures.seconds, notes: figures.notes)
  }

  /// The time from the service's return until everything has arrived: a minute until the hub is
  /// back at full speed, and ten seconds for a million devices.
  static let drain = FigureRow("outage.drain_s", "s", .atMost(70)) { isQuick in
    let figures = try await outage.figures(isQuick: isQuick)
    return BenchmarkMeasurement(value: figures.drainSeconds, notes: figures.notes)
  }

  private static func measure(_ file: String, devices: Int, seconds: Int) async throws -> Figures {
    let store = try await SQLiteHubStore.open(at: file, sealing: NoSealing())
    guard let hub = try await store.hubs().first else { throw BenchmarkError("no hub in \(file)") }
    try await store.putCredential(
      PushCredential(platform: .apns, properties: [:], modifiedAt: Date()), hub: hub.id)
    let service = FailingService()
    let dispatcher = Dispatcher(store: store, gateways: service, clock: .system, random: .system)
    try await dispatcher.start()
    let now = Date()
    let record = NotificationRecord(
      id: NotificationID(at: now, random: .system), hub: hub.id,
      request: NotificationRequest(format: .template, body: Array(#"{"message":"Hi"}"#.utf8)),
      state: .enqueued, enqueuedAt: now)
    try await store.accept(record)
    let before = ProcessUsage.current().cpuSeconds
    let writtenBefore = written
    let started = ContinuousClock.now
    await dispatcher.submit(record)
    try await Task.sleep(for: .seconds(seconds))
    let elapsed = (ContinuousClock.now - started) / .seconds(1)
    let cpu = ProcessUsage.current().cpuSeconds - before
    let megabytes = Double(written - writtenBefore) / 1e6
    let rows = try await store.waitingRetries(record.id, hub: hub.id)
    let tried = service.tried
    service.comeBack()
    let returned = ContinuousClock.now
    let end = try await dispatcher.record(
      of: record.id, hub: hub.id, finishedWithin: .seconds(600))
    let drain = (ContinuousClock.now - returned) / .seconds(1)
    await dispatcher.stop(within: .seconds(5))
    try await store.close()
    let successes = end?.counts.filter { $0.key.outcome == .success }.values.reduce(0, +)
    guard end?.state == .completed, successes == devices else {
      throw BenchmarkError("outage: \(successes ?? 0) of \(devices) devices were reached")
    }
    return Figures(
      devices: devices, seconds: elapsed, cpuShare: cpu / elapsed, writtenMB: megabytes,
      tried: tried, rows: rows, drainSeconds: drain)
  }

  /// The number of bytes that this process has written to disk.
  private static var written: Int {
    let text = (try? String(contentsOfFile: "/proc/self/io", encoding: .utf8)) ?? ""
    let line = text.split(separator: "\n").first { $0.hasPrefix("write_bytes:") }
    return line?.split(separator: " ").last.flatMap { Int($0) } ?? 0
  }
}

/// A push service that is down until told otherwise.
private final class FailingService: GatewayDirectory, PushGateway {
  private let state = Mutex((isDown: true, tried: 0))

  var tried: Int { state.withLock { $0.tried } }
  func comeBack() { state.withLock { $0.isDown = false } }

  func gateway(for credential: PushCredential, hub: Hub.ID) -> (any PushGateway)? { self }
  func deliver(_ batch: PushBatch) async -> [PushResult] {
    let isDown = state.withLock { state in
      state.tried += batch.requests.count
      return state.isDown
    }
    let answer =
      isDown
      ? PushResult(
        outcome: .pnsUnavailable, retry: .backoff, status: 503, reason: "ServiceUnavailable")
      : .success
    return Array(repeating: answer, count: batch.requests.count)
  }
  func close() async {}
}
