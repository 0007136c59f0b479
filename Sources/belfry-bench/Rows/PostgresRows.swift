import Foundation
import HubCore
import HubStorage
import NotificationHubs
import SQLDatabase

/// A store on the PostgreSQL server that `--postgres ADDRESS` names, in a database that has nothing
/// of a hub yet, with the devices of ``StoreFixture``.
actor PostgresFixture {
  static let shared = PostgresFixture()

  struct Loaded: Sendable {
    let store: PostgresHubStore
    let hub: Hub.ID
    let devices: Int
    let address: String
  }

  private var loaded: Loaded?

  func store(isQuick: Bool) async throws -> Loaded {
    if let loaded { return loaded }
    guard let address = BenchmarkOption.postgres.text else {
      throw BenchmarkSkip("it needs --postgres ADDRESS, an empty database that may be filled")
    }
    let devices = isQuick ? StoreFixture.quickDevices : StoreFixture.allDevices
    let store = try await PostgresHubStore.open(address: address, sealing: NoSealing())
    var hub = try await store.hub(named: "devices")
    if hub == nil {
      let new = try await store.createHub(
        named: "devices", registrationTTL: nil, policies: [], at: StoreFixture.now)
      try await StoreFixture.put(0..<devices, to: store, hub: new.id, callers: 512)
      let connection = try PostgresConnection(address: address, component: "hub")
      try connection.execute("VACUUM ANALYZE")
      connection.close()
      hub = new
    }
    guard let hub else { throw BenchmarkError("there is no hub") }
    let result = Loaded(store: store, hub: hub.id, devices: devices, address: address)
    loaded = result
    return result
  }

  /// What the server's processes for this database have used, in seconds; 0 when they run
  /// elsewhere.
  static func serverSeconds(_ address: String) throws -> Double {
    let connection = try PostgresConnection(address: address, component: "hub")
    defer { connection.close() }
    let row = try connection.statement(
      "SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
    var ticks = 0.0
    while try row.step() {
      let text = try? String(contentsOfFile: "/proc/\(row.integer(0))/stat", encoding: .utf8)
      // Behind the name, which may hold anything: state is the third field, the times come 11
      // later.
      let fields = (text ?? "").split(separator: ")").last?.split(separator: " ") ?? []
      guard fields.count > 12 else { continue }
      ticks += (Double(fields[11]) ?? 0) + (Double(fields[12]) ?? 0)
    }
    return ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
  }
}

/// Durable writes of installations that are new, 512 callers at a time.
struct PostgresInstallationsRow: BenchmarkRow {
  let name = "postgres.installations_per_second"
  let unit = "1/s"
  let goal = BenchmarkGoal.atLeast(10_000)

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let fixture = try await PostgresFixture.shared.store(isQuick: isQuick)
    let beside = try await StoreFixture.shared.store(isQuick: isQuick)
    let count = isQuick ? 10_000 : 100_000
    let first = fixture.devices + Int.random(in: 1...1_000) * 1_000_000
    var notes = ["\(fixture.devices) devices were there"]
    var rates: [Double] = []
    for what in ["new", "unchanged"] {
      let (hubBefore, serverBefore) = (
        ProcessUsage.current().cpuSeconds, try PostgresFixture.serverSeconds(fixture.address)
      )
      let seconds = try await Self.put(
        first..<first + count, to: fixture.store, hub: fixture.hub)
      let hubCPU = (ProcessUsage.current().cpuSeconds - hubBefore) / Double(count) * 1e6
      let serverCPU =
        (try PostgresFixture.serverSeconds(fixture.address) - serverBefore) / Double(count) * 1e6
      let other = try await Self.put(first..<first + count, to: beside.store, hub: beside.hub)
      rates.append(Double(count) / seconds)
      notes.append(
        "\(what): \(Int(Double(count) / seconds)) per second, \(hubCPU.shortest) µs CPU of the hub and "
          + "\(serverCPU.shortest) µs of the database each; SQLite "
          + "\(Int(Double(count) / other)) per second, \((other / seconds).shortest) times as many")
    }
    return BenchmarkMeasurement(value: rates[0].rounded(), notes: notes)
  }

  private static func put(
    _ numbers: Range<Int>, to store: any InstallationStore, hub: Hub.ID
  ) async throws -> Double {
    let start = ContinuousClock.now
    try await StoreFixture.put(numbers, to: store, hub: hub, callers: 512)
    return (ContinuousClock.now - start) / .seconds(1)
  }
}

/// Reading all targets of a tag expression, a slot after the other, page by page, as the
/// dispatchers of all nodes do.
struct PostgresTargetsRow: BenchmarkRow {
  let name = "postgres.cpu_us_per_target"
  let unit = "µs CPU"
  let goal = BenchmarkGoal.atMost(4)

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let fixture = try await PostgresFixture.shared.store(isQuick: isQuick)
    var query = AudienceQuery(
      hub: fixture.hub, kind: .native(.apns),
      expression: .and(.or(.tag("group1"), .tag("even")), .not(.tag("city7"))),
      asOf: StoreFixture.now)
    let (hubBefore, serverBefore) = (
      ProcessUsage.current().cpuSeconds, try PostgresFixture.serverSeconds(fixture.address)
    )
    let start = ContinuousClock.now
    var (targets, pages) = (0, 0)
    for part in 1...16 {
      query.part = part
      var after: RegistrationID? = 0
      while let first = after {
        let page = try await fixture.store.targets(query, after: first, limit: 1_000)
        targets += page.targets.count
        pages += 1
        after = page.next
      }
    }
    let seconds = (ContinuousClock.now - start) / .seconds(1)
    let hub = (ProcessUsage.current().cpuSeconds - hubBefore) / Double(max(1, targets)) * 1e6
    let server =
      (try PostgresFixture.serverSeconds(fixture.address) - serverBefore)
      / Double(max(1, targets)) * 1e6
    query.part = 0
    let counting = ContinuousClock.now
    let count = try await fixture.store.count(query)
    let countSeconds = (ContinuousClock.now - counting) / .milliseconds(1)
    return BenchmarkMeasurement(
      value: hub + server,
      notes: [
        "\(targets) targets of \(fixture.devices) devices in \(pages) pages, "
          + "\((seconds * 1000 / Double(pages)).shortest) ms each, one after the other; "
          + "\(hub.shortest) µs CPU of the hub and \(server.shortest) µs of the database a target",
        "the count of \(count) took \(countSeconds.shortest) ms",
      ])
  }
}
