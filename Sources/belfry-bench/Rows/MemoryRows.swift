import Foundation
import HubCore
import HubStorage
import NotificationHubs

/// The memory of a process that has opened the store and counted an expression once, so that the
/// bitmaps of its tags are loaded. Measured in a child process, since this process has written all
/// those devices.
struct IdleMemoryRow: BenchmarkRow {
  let name = "memory.idle_mb"
  let unit = "MB"
  let goal = BenchmarkGoal.atMost(150)

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let devices = isQuick ? StoreFixture.quickDevices : StoreFixture.allDevices
    let file = try await StoreFixture.shared.file(devices: devices)
    let child = try ChildProcess<IdleStore.Figures, Bool>([IdleStore.word, file])
    _ = try child.stop()
    return BenchmarkMeasurement(
      value: child.greeting.peakMB,
      notes: ["\(devices) devices, \(child.greeting.count) of them counted"])
  }
}

/// The child of ``IdleMemoryRow``.
enum IdleStore {
  static let word = "idle-store"

  struct Figures: Codable, Sendable {
    let peakMB: Double
    let count: Int
  }

  /// - Parameter words: The path of the database.
  static func run(_ words: [String]) async throws {
    guard let path = words.first else { throw BenchmarkError("\(word) wants a path") }
    let store = try await SQLiteHubStore.open(at: path, sealing: NoSealing())
    guard let hub = try await store.hubs().first else { throw BenchmarkError("no hub in \(path)") }
    let count = try await store.count(
      AudienceQuery(
        hub: hub.id, kind: .native(.apns), expression: .tag("even"), asOf: StoreFixture.now))
    try say(Figures(peakMB: ProcessUsage.current().peakMB, count: count))
    _ = FileHandle.standardInput.readDataToEndOfFile()
    try await store.close()
    try say(true)
  }
}

/// The growth of the cost of a send with the hub: linear in the devices that it reaches,
/// independent of the others. The largest hub's broadcast is ``Broadcast/cost``.
struct GrowthRow: BenchmarkRow {
  enum Audience { case everyone, crew }

  let audience: Audience
  /// The number of devices in the hub.
  let devices: Int
  let isPostgres: Bool
  let unit = "µs CPU"

  init(_ audience: Audience, devices: Int, isPostgres: Bool = false) {
    (self.audience, self.devices, self.isPostgres) = (audience, devices, isPostgres)
  }

  /// A send to a thousand includes its fixed cost: acceptance and completion.
  var goal: BenchmarkGoal { .atMost(audience == .everyone ? 8 : 20) }

  var name: String {
    let size = devices >= 1_000_000 ? "\(devices / 1_000_000)m" : "\(devices / 1000)k"
    let what = audience == .everyone ? "broadcast" : "reach_1000_of"
    return (isPostgres ? "postgres." : "") + "growth.\(what)_\(size).cpu_us_per_device"
  }

  var isPartOfQuickRun: Bool { devices <= StoreFixture.quickDevices }

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let place =
      if isPostgres {
        try await PostgresFixture.shared.place(devices: devices, isQuick: isQuick)
      } else {
        BroadcastHub.Place(store: try await StoreFixture.shared.file(devices: devices))
      }
    let figures =
      switch audience {
      case .everyone: try BroadcastHub.send(in: place, to: nil, times: 300_000 / devices)
      case .crew: try BroadcastHub.send(in: place, to: StoreFixture.crew.rawValue, times: 100)
      }
    return BenchmarkMeasurement(
      value: figures.cpuMicroseconds,
      notes: (isPostgres
        ? ["and \(figures.databaseMicroseconds.shortest) µs of the database a device"] : []) + [
          "\(figures.sends) sends to \(figures.devices / figures.sends) of \(devices) devices, "
            + "\((figures.seconds / Double(figures.sends) * 1000).shortest) ms each"
        ])
  }
}
