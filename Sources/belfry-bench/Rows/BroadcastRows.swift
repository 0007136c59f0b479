import Foundation

/// One template broadcast to the store's devices, measured once for the rows that read it.
actor Broadcast {
  static let shared = Broadcast()

  private var figures: BroadcastHub.Figures?

  func figures(isQuick: Bool) async throws -> BroadcastHub.Figures {
    if let figures { return figures }
    let file = try await StoreFixture.shared.file(
      devices: isQuick ? StoreFixture.quickDevices : StoreFixture.allDevices)
    let measured = try BroadcastHub.send(in: file, to: nil, times: 1)
    figures = measured
    return measured
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
      value: figures.cpuMicroseconds, notes: figures.notes)
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

/// What a broadcast adds to the memory of the hub's process.
struct BroadcastMemoryRow: BenchmarkRow {
  let name = "memory.broadcast_added_mb"
  let unit = "MB"
  let goal = BenchmarkGoal.atMost(64)

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let figures = try await Broadcast.shared.figures(isQuick: isQuick)
    return BenchmarkMeasurement(
      value: figures.peakMB - figures.beforeMB,
      notes: [
        "\(figures.devices) devices; resident before \(figures.beforeMB.shortest) MB, "
          + "at most \(figures.peakMB.shortest) MB during, \(figures.afterMB.shortest) MB after"
      ])
  }
}
