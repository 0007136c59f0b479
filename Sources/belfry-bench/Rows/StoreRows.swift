import Foundation
import HubCore
import HubStorage
import NotificationHubs

/// Durable writes of new installations, with 64 concurrent callers.
struct StoreInstallationsRow: BenchmarkRow {
  let name = "store.installations_per_second"
  let unit = "1/s"
  let goal = BenchmarkGoal.atLeast(15_000)

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let fixture = try await StoreFixture.shared.store(isQuick: isQuick)
    let count = isQuick ? 10_000 : 100_000
    let first = fixture.devices
    var notes = [
      "\(fixture.devices) devices were there; the store with them opened in "
        + "\((fixture.openSeconds * 1000).shortest) ms"
    ]
    var rates: [Double] = []
    // The same ones again: the cost of an app's start for the hub.
    for what in ["new", "unchanged"] {
      let before = ProcessUsage.current().cpuSeconds
      let start = ContinuousClock.now
      try await StoreFixture.put(
        first..<first + count, to: fixture.store, hub: fixture.hub, callers: 64)
      let seconds = (ContinuousClock.now - start) / .seconds(1)
      let cpu = (ProcessUsage.current().cpuSeconds - before) / Double(count) * 1e6
      rates.append(Double(count) / seconds)
      notes.append(
        "\(what): \(Int(Double(count) / seconds)) per second, \(cpu.shortest) µs CPU each")
    }
    let size = try FileManager.default.attributesOfItem(atPath: fixture.path)[.size] as? Int ?? 0
    notes.append("the file has \(size / 1_000_000) MB")
    return BenchmarkMeasurement(value: rates[0].rounded(), notes: notes)
  }
}

/// Reads all targets of a tag expression, page by page, like the dispatcher.
struct StoreTargetsRow: BenchmarkRow {
  let name = "store.cpu_us_per_target"
  let unit = "µs CPU"
  let goal = BenchmarkGoal.atMost(2)

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let fixture = try await StoreFixture.shared.store(isQuick: isQuick)
    let query = StoreAudience.query(fixture.hub)
    _ = try await fixture.store.count(query)
    let before = ProcessUsage.current().cpuSeconds
    var targets = 0
    var after: RegistrationID? = 0
    while let start = after {
      let page = try await fixture.store.targets(query, after: start, limit: 1_000)
      targets += page.targets.count
      after = page.next
    }
    let cpu = ProcessUsage.current().cpuSeconds - before
    return BenchmarkMeasurement(
      value: cpu / Double(max(1, targets)) * 1e6,
      notes: ["\(targets) targets of \(fixture.devices) devices in pages of 1000"])
  }
}

/// The cost of an expression whose tags are in memory.
enum StoreAudience {
  static let firstPage = FigureRow("audience.first_page_ms", "ms", .atMost(10)) { isQuick in
    let fixture = try await StoreFixture.shared.store(isQuick: isQuick)
    let query = StoreAudience.query(fixture.hub)
    return try await measure {
      _ = try await fixture.store.targets(query, after: 0, limit: 1_000)
    }
  }

  /// For one part, as a node reads it.
  static let postgresFirstPage = FigureRow("postgres.first_page_ms", "ms", .atMost(10)) { isQuick in
    let fixture = try await PostgresFixture.shared.store(isQuick: isQuick)
    var query = StoreAudience.query(fixture.hub)
    query.part = 1
    return try await measure {
      _ = try await fixture.store.targets(query, after: 0, limit: 1_000)
    }
  }

  static let postgresCount = FigureRow("postgres.count_ms", "ms", .atMost(1_000)) { isQuick in
    let fixture = try await PostgresFixture.shared.store(isQuick: isQuick)
    let query = StoreAudience.query(fixture.hub)
    return try await measure(runs: 11) { _ = try await fixture.store.count(query) }
  }

  static let count = FigureRow("audience.count_ms", "ms", .atMost(2)) { isQuick in
    let fixture = try await StoreFixture.shared.store(isQuick: isQuick)
    let query = StoreAudience.query(fixture.hub)
    return try await measure { _ = try await fixture.store.count(query) }
  }

  /// The count over all kinds of sends, as in `GET /{hub}/audience`: half of all devices, and all.
  static let allKinds = FigureRow("audience.all_kinds_ms", "ms", .atMost(100)) { isQuick in
    let fixture = try await StoreFixture.shared.store(isQuick: isQuick)
    func count(_ expression: TagExpression?) async throws -> BenchmarkMeasurement {
      try await measure {
        _ = try await fixture.store.counts(
          of: expression, hub: fixture.hub, asOf: StoreFixture.now)
      }
    }
    let half = try await count(.tag("even"))
    let everyone = try await count(nil)
    return BenchmarkMeasurement(
      value: max(half.value, everyone.value),
      notes: ["half: \(half.value.shortest) ms"] + half.notes
        + ["everyone: \(everyone.value.shortest) ms"] + everyone.notes)
  }

  /// A page of the installations with a tag of one device in 1000.
  static let rareTag = FigureRow("installations.rare_tag_ms", "ms", .atMost(100)) { isQuick in
    let fixture = try await StoreFixture.shared.store(isQuick: isQuick)
    let filter = InstallationFilter(tag: "city7", asOf: StoreFixture.now)
    return try await measure {
      _ = try await fixture.store.installations(filter, hub: fixture.hub, after: nil, limit: 100)
    }
  }

  /// About 60 % of all devices.
  static func query(_ hub: Hub.ID) -> AudienceQuery {
    AudienceQuery(
      hub: hub, kind: .native(.apns),
      expression: .and(.or(.tag("group1"), .tag("even")), .not(.tag("city7"))),
      asOf: StoreFixture.now)
  }

  /// The median of many runs, after a first one that loads everything into memory.
  private static func measure(
    runs count: Int = 101, _ body: () async throws -> Void
  ) async throws -> BenchmarkMeasurement {
    func once() async throws -> Double {
      let start = ContinuousClock.now
      try await body()
      return (ContinuousClock.now - start) / .milliseconds(1)
    }
    let cold = try await once()
    var runs: [Double] = []
    for _ in 0..<count { runs.append(try await once()) }
    runs.sort()
    return BenchmarkMeasurement(
      value: runs[count / 2],
      notes: ["first \(cold.shortest) ms, slowest of \(count) \(runs[count - 1].shortest) ms"])
  }
}
