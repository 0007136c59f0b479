/// One template broadcast to the store's devices.
enum Broadcast {
  static let broadcast = MeasuredOnce { isQuick in
    let file = try await StoreFixture.shared.file(
      devices: isQuick ? StoreFixture.quickDevices : StoreFixture.allDevices)
    return try BroadcastHub.send(in: .init(store: file), to: nil, times: 1)
  }

  /// The hub's cost of one device of a broadcast.
  static let cost = FigureRow("send.cpu_us_per_device", "µs CPU", .atMost(2.5)) { isQuick in
    let figures = try await broadcast.figures(isQuick: isQuick)
    return BenchmarkMeasurement(value: figures.cpuMicroseconds, notes: figures.notes)
  }

  /// The rate of a broadcast. Our own sink takes more CPU for a push than the hub and keeps the rate
  /// below the goal; `script/bench-peers broadcast` takes another one.
  static let rate = FigureRow("send.per_s", "1/s", .atLeast(300_000)) { isQuick in
    let figures = try await broadcast.figures(isQuick: isQuick)
    return BenchmarkMeasurement(
      value: (Double(figures.devices) / figures.seconds).rounded(), notes: figures.notes)
  }

  /// The memory that a broadcast adds to the hub's process.
  static let memory = FigureRow("memory.broadcast_added_mb", "MB", .atMost(64)) { isQuick in
    let figures = try await broadcast.figures(isQuick: isQuick)
    return BenchmarkMeasurement(
      value: figures.peakMB - figures.beforeMB,
      notes: [
        "\(figures.devices) devices; resident before \(figures.beforeMB.shortest) MB, "
          + "at most \(figures.peakMB.shortest) MB during, \(figures.afterMB.shortest) MB after"
      ])
  }
}
