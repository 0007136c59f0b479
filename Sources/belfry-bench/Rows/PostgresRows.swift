import Foundation
import HubCore
import HubStorage
import NotificationHubs
import SQLDatabase

/// A store on the PostgreSQL server given by `--postgres ADDRESS`, in a database without a hub,
/// with the devices of ``StoreFixture``.
actor PostgresFixture {
  static let shared = PostgresFixture()

  struct Loaded: Sendable {
    let store: PostgresHubStore
    let hub: Hub.ID
    let devices: Int
    let address: String
    let server: PostgresServer
  }

  private var loaded: Loaded?

  func store(isQuick: Bool) async throws -> Loaded {
    if let loaded { return loaded }
    guard let address = BenchmarkOption.postgres.text else {
      throw BenchmarkSkip("it needs --postgres ADDRESS, an empty database that may be filled")
    }
    let devices = isQuick ? StoreFixture.quickDevices : StoreFixture.allDevices
    let store = try await PostgresHubStore.open(address: address, sealing: NoSealing())
    let result = Loaded(
      store: store, hub: try await Self.hub(StoreFixture.hubName, of: devices, store, address),
      devices: devices, address: address, server: try PostgresServer(address))
    loaded = result
    return result
  }

  /// Opens the database for a dispatcher.
  static func node(_ address: String) async throws -> PostgresHubStore {
    let store = try await PostgresHubStore.open(address: address, sealing: NoSealing())
    try await store.join(as: StoreNode(name: "bench", version: "0"))
    return store
  }

  /// A further hub in the database with this number of devices.
  func place(devices: Int, isQuick: Bool) async throws -> BroadcastHub.Place {
    let all = try await store(isQuick: isQuick)
    var place = BroadcastHub.Place(store: all.address)
    if devices != all.devices {
      place.hub += "-\(devices)"
      _ = try await Self.hub(place.hub, of: devices, all.store, all.address)
    }
    return place
  }

  private static func hub(
    _ name: String, of devices: Int, _ store: PostgresHubStore, _ address: String
  ) async throws -> Hub.ID {
    if let hub = try await store.hub(named: name) { return hub.id }
    let new = try await store.createHub(
      named: name, registrationTTL: nil, policies: [], at: StoreFixture.now)
    try await StoreFixture.put(0..<devices, to: store, hub: new.id, callers: 512)
    let connection = try PostgresConnection(address: address, component: "hub")
    try connection.execute("VACUUM ANALYZE")
    connection.close()
    return new.id
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
      let (hubBefore, serverBefore) = (ProcessUsage.current().cpuSeconds, fixture.server.cpuSeconds)
      let seconds = try await Self.put(
        first..<first + count, to: fixture.store, hub: fixture.hub)
      let hubCPU = (ProcessUsage.current().cpuSeconds - hubBefore) / Double(count) * 1e6
      let serverCPU =
        (fixture.server.cpuSeconds - serverBefore) / Double(count) * 1e6
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

/// Reads all targets of a tag expression, slot by slot and page by page, like the dispatchers of
/// all nodes.
struct PostgresTargetsRow: BenchmarkRow {
  let name = "postgres.cpu_us_per_target"
  let unit = "µs CPU"
  let goal = BenchmarkGoal.atMost(4)

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let fixture = try await PostgresFixture.shared.store(isQuick: isQuick)
    var query = StoreAudience.query(fixture.hub)
    let (hubBefore, serverBefore) = (ProcessUsage.current().cpuSeconds, fixture.server.cpuSeconds)
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
      (fixture.server.cpuSeconds - serverBefore)
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

/// A template broadcast to all devices over several nodes, and over SQLite in the same run.
struct PostgresBroadcastRow: BenchmarkRow {
  let nodes: Int
  var name: String { "postgres.send_\(nodes)_nodes.cpu_us_per_device" }
  let unit = "µs CPU"
  /// For the CPU of hub and database together.
  let goal = BenchmarkGoal.atMost(10)

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let fixture = try await PostgresFixture.shared.store(isQuick: isQuick)
    let figures = try BroadcastHub.send(
      in: .init(store: fixture.address, nodes: nodes), to: nil, times: 1)
    let file = try await Broadcast.broadcast.figures(isQuick: isQuick)
    let value = figures.cpuMicroseconds + figures.databaseMicroseconds
    let percent = { (share: Double) in "\((share * 100).shortest) %" }
    return BenchmarkMeasurement(
      value: value,
      notes: figures.notes + [
        "\(figures.cpuMicroseconds.shortest) µs of the hub and "
          + "\(figures.databaseMicroseconds.shortest) µs of the database a device; SQLite "
          + "\(file.cpuMicroseconds.shortest) µs, "
          + "\((file.cpuMicroseconds / value).shortest) of it",
        "statements waited for locks \(percent(figures.lockWaits)) of their time, for disk and "
          + "latches \(percent(figures.otherWaits))",
      ])
  }
}
