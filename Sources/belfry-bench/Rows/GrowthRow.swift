import NotificationHubs

/// How the cost of a send grows with the hub: linear in the devices it reaches, independent of those it
/// does not reach. The largest hub's broadcast is ``BroadcastCostRow``.
struct GrowthRow: BenchmarkRow {
  enum Audience { case everyone, crew }

  let audience: Audience
  /// In the hub.
  let devices: Int
  let unit = "µs CPU"

  init(_ audience: Audience, devices: Int) {
    self.audience = audience
    self.devices = devices
  }

  /// A send to a thousand also pays for itself: one acceptance, one end.
  var goal: BenchmarkGoal { .atMost(audience == .everyone ? 8 : 20) }

  var name: String {
    let size = devices >= 1_000_000 ? "\(devices / 1_000_000)m" : "\(devices / 1000)k"
    return switch audience {
    case .everyone: "growth.broadcast_\(size).cpu_us_per_device"
    case .crew: "growth.reach_1000_of_\(size).cpu_us_per_device"
    }
  }

  var isPartOfQuickRun: Bool { devices <= StoreFixture.quickDevices }

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let file = try await StoreFixture.shared.file(devices: devices)
    let figures =
      switch audience {
      case .everyone: try BroadcastHub.send(in: file, to: nil, times: 300_000 / devices)
      case .crew: try BroadcastHub.send(in: file, to: StoreFixture.crew.rawValue, times: 100)
      }
    return BenchmarkMeasurement(
      value: figures.cpuMicroseconds,
      notes: [
        "\(figures.sends) sends to \(figures.devices / figures.sends) of \(devices) devices, "
          + "\((figures.seconds / Double(figures.sends) * 1000).shortest) ms each"
      ])
  }
}
