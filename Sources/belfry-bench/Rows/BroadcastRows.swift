/// One template broadcast to the store's devices.
enum Broadcast {
  static let broadcast = MeasuredOnce { isQuick in
    let file = try await StoreFixture.shared.file(
      devices: isQuick ? StoreFixture.quickDevices : StoreFixture.allDevices)
    return try BroadcastHub.send(in: .init(store: file), to: nil, times: 1)
  }

  /// What one device of a broadcast costs the hub.
  static let cost = FigureRow("send.cpu_us_per_device", "µs CPU", .atMost(8)) { isQuick in
    let figures = try await broadcast.figures(isQuick: isQuick)
    return BenchmarkMeasurement(value: figures.cpuMicroseconds, notes: figures.notes)
  }

  /// How fast a broadcast goes.
  static let rate = FigureRow("send.per_s", "1/s", .atLeast(100_000)) { isQuick in
    let figures = try await broadcast.figures(isQuick: isQuick)
    return BenchmarkMeasurement(
      value: (Double(figures.devices) / figures.seconds).rounded(), notes: figures.notes)
  }

  /// What a broadcast adds to the memory of the hub's process.
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
