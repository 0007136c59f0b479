package import Foundation
package import HTTPServer
package import HubCore
import NotificationHubs

#if canImport(Darwin)
  import Darwin
#endif

/// The content of `/metrics`, collected on request (`docs/reference/metrics.md` lists it).
package struct MetricsPage: Sendable {
  private let service: HubService
  private let health: HubHealth
  private let log: HubLog
  private let version: String
  private let startedAt: Date
  private let totals: StoreTotalsReader
  private let nodes: (@Sendable () async throws -> [Node])?

  /// A server that shares the database.
  package struct Node: Sendable {
    let id: Int64
    let name: String
    let address: String
    /// The seconds since the server was last heard of.
    let silence: Double

    package init(id: Int64, name: String, address: String, silence: Double) {
      self.id = id
      self.name = name
      self.address = address
      self.silence = silence
    }
  }

  /// - Parameter nodes: `nil` if there is a single server.
  package init(
    service: HubService, health: HubHealth, log: HubLog = .silent, version: String,
    startedAt: Date = Date(),
    nodes: (@Sendable () async throws -> [Node])? = nil
  ) {
    self.nodes = nodes
    self.service = service
    self.health = health
    self.log = log
    self.version = version
    self.startedAt = startedAt
    totals = StoreTotalsReader(store: service.store, clock: service.clock)
  }

  package func response() async -> HTTPResponse {
    var response = HTTPResponse(.ok, body: .bytes(Array(await text().utf8)))
    response.headers.add(WireName.contentType, PrometheusText.contentType)
    return response
  }

  package func text() async -> String {
    var page = PrometheusText()
    await addProcess(to: &page)
    let counted = service.dispatcher.metrics.snapshot
    addRequests(counted, to: &page)
    addSends(counted, to: &page)
    // Hubs are labeled with their names; one that was just deleted, with its number.
    let hubs = (try? await service.store.hubs()) ?? []
    let names = Dictionary(hubs.map { ($0.id, $0.name) }) { first, _ in first }
    await addDispatch(names, to: &page)
    addHandles(counted, names, to: &page)
    await addGateways(names, to: &page)
    await addCredentials(to: &page)
    await addTotals(to: &page)
    let store = await service.store.statistics()
    page.histogram(
      "belfry_store_commit_seconds",
      "Time from the start of a transaction until it is on the disk.",
      store.commits)
    page.histogram(
      "belfry_store_commit_batch_size", "Pieces of work that shared a transaction.", store.batches)
    page.single(
      "belfry_store_waiting", .gauge, "Pieces of work that wait for the store.",
      Double(store.waiting))
    let refused = "belfry_store_refused_total"
    page.begin(
      refused, .counter,
      "Requests answered 429 because too much was under way for their key or their hub already.")
    let all = store.refused.merging(service.callsUnderWay.refused, uniquingKeysWith: +)
    for (hub, count) in all.sorted(by: { $0.key < $1.key }) {
      page.sample(refused, [("hub", names[hub] ?? String(hub))], Double(count))
    }
    page.single(
      "belfry_store_dropped_total", .counter,
      "Pieces of work that were not done because their sender had left.", Double(store.dropped))
    if let nodes { addNodes((try? await nodes()) ?? [], to: &page) }
    return page.text
  }

  private func addProcess(to page: inout PrometheusText) async {
    page.begin("belfry_build_info", .gauge, "The version that runs.")
    page.sample("belfry_build_info", [("version", version)], 1)
    page.single(
      "belfry_process_start_time_seconds", .gauge, "When the server started, since 1970.",
      startedAt.timeIntervalSince1970)
    if let resident = ProcessMemory.resident {
      page.single(
        "belfry_process_resident_memory_bytes", .gauge, "Memory of the process.",
        Double(resident))
    }
    let report = await health.report()
    page.single(
      "belfry_ready", .gauge, "1 while /health/ready answers 200.", report.isReady ? 1 : 0)
    page.single(
      "belfry_health_warnings", .gauge, "Warnings of /health/ready.",
      Double(report.warnings.count))
    page.single(
      "belfry_log_lines_dropped_total", .counter,
      "Lines of the log that were dropped because nobody read them.", Double(log.state.dropped))
    page.single(
      "belfry_work_unclaimed", .gauge,
      "Notifications that are due for five seconds and that no node delivers.",
      Double(health.unclaimedWork))
  }

  private func addRequests(_ counted: HubMetrics.Snapshot, to page: inout PrometheusText) {
    let name = "belfry_http_requests_total"
    page.begin(name, .counter, "Requests by the class of their reply.")
    for digit in 2...5 {
      page.sample(name, [("class", "\(digit)xx")], Double(counted.requests[digit] ?? 0))
    }
    page.histogram(
      "belfry_http_request_duration_seconds", "Time until a request was answered.",
      counted.requestSeconds)
  }

  private func addSends(_ counted: HubMetrics.Snapshot, to page: inout PrometheusText) {
    page.begin("belfry_sends_accepted_total", .counter, "Notifications accepted.")
    for kind in SendKind.allCases {
      page.sample(
        "belfry_sends_accepted_total", [("kind", kind.rawValue)],
        Double(counted.accepted[kind.rawValue] ?? 0))
    }
    page.single(
      "belfry_sends_finished_total", .counter, "Notifications that have reached a final state.",
      Double(counted.finished))
    page.begin("belfry_outcomes_total", .counter, "Devices by platform and outcome.")
    let outcomes = counted.outcomes.sorted {
      ($0.key.platform.rawValue, $0.key.outcome.rawValue)
        < ($1.key.platform.rawValue, $1.key.outcome.rawValue)
    }
    for (key, count) in outcomes {
      page.sample(
        "belfry_outcomes_total",
        [("platform", key.platform.rawValue), ("outcome", key.outcome.name)], Double(count))
    }
    page.histogram(
      "belfry_delivery_seconds",
      "Time from a notification's acceptance until a device's outcome was recorded.",
      counted.delivery)
  }

  private func addDispatch(_ names: [Hub.ID: String], to page: inout PrometheusText) async {
    let status = await service.dispatcher.status()
    page.single(
      "belfry_notifications_unfinished", .gauge, "Notifications under way in this process.",
      Double(status.notifications))
    page.single(
      "belfry_targets_in_memory", .gauge, "Devices read and not recorded yet.",
      Double(status.targets))
    page.single(
      "belfry_retries_waiting", .gauge,
      "Devices that wait for another try, of what this process has under way.",
      Double(status.retries))
    func add(_ name: String, _ help: String, _ value: (DispatchStatus.Lane) -> Double) {
      page.begin(name, .gauge, help)
      for lane in status.lanes {
        page.sample(name, Self.labels(lane.hub, lane.platform, names), value(lane))
      }
    }
    add("belfry_lane_waiting", "Devices that wait for their push service.") { Double($0.waiting) }
    add("belfry_lane_in_flight", "Pushes under way to a push service.") { Double($0.inFlight) }
    add("belfry_lane_resting", "1 while nothing is sent to a push service.") {
      $0.restsUntil == nil ? 0 : 1
    }
    add("belfry_credential_refused", "1 while the push service refuses the credential.") {
      $0.isRefused ? 1 : 0
    }
    add("belfry_dead_handle_alarm", "1 while no handle is removed because too many are dead.") {
      $0.isAlarmed ? 1 : 0
    }
  }

  /// A wave of removals appears as a steep rise.
  private func addHandles(
    _ counted: HubMetrics.Snapshot, _ names: [Hub.ID: String], to page: inout PrometheusText
  ) {
    for (name, help, counts) in [
      (
        "belfry_handles_removed_total",
        "Handles removed or replaced on the word of a push service.", counted.removed
      ),
      (
        "belfry_handles_restored_total",
        "Registrations brought back because that word was in doubt.", counted.restored
      ),
    ] {
      page.begin(name, .counter, help)
      for lane in counts.keys.sorted(by: {
        ($0.hub, $0.platform.rawValue) < ($1.hub, $1.platform.rawValue)
      }) {
        page.sample(name, Self.labels(lane.hub, lane.platform, names), Double(counts[lane] ?? 0))
      }
    }
  }

  private func addGateways(_ names: [Hub.ID: String], to page: inout PrometheusText) async {
    let loads = await service.gateways?.loads() ?? []
    func add(_ name: String, _ help: String, _ value: (GatewayLoad) -> Double?) {
      page.begin(name, .gauge, help)
      for place in loads {
        guard let value = value(place.load) else { continue }
        page.sample(name, Self.labels(place.hub, place.platform, names), value)
      }
    }
    add("belfry_gateway_connections", "Connections to a push service under a credential.") {
      Double($0.connections)
    }
    add("belfry_gateway_streams", "Requests on these connections that wait for their answer.") {
      Double($0.streams)
    }
    add("belfry_gateway_stream_limit", "Requests that may be under way on them at once.") {
      $0.limit.map(Double.init)
    }
  }

  private func addCredentials(to page: inout PrometheusText) async {
    let name = "belfry_credential_expiry_timestamp_seconds"
    page.begin(name, .gauge, "When a credential ends, where it does.")
    for end in await health.credentials?.ends() ?? [] {
      page.sample(
        name, [("hub", end.hubName), ("platform", end.platform.rawValue)],
        end.at.timeIntervalSince1970)
    }
  }

  /// Adds the values that are the same for every process on the store.
  private func addTotals(to page: inout PrometheusText) async {
    page.single(
      "belfry_nodes", .gauge, "Processes that work on the store.",
      Double(service.dispatcher.nodes.value))
    // Values that cannot be read are left out.
    guard let totals = await totals.totals() else { return }
    let notifications = "belfry_store_notifications"
    page.begin(
      notifications, .gauge,
      "Notifications in the store that are under way or wait for their time, of all nodes.")
    page.sample(notifications, [("state", "unfinished")], Double(totals.unfinished))
    page.sample(notifications, [("state", "scheduled")], Double(totals.scheduled))
    page.single(
      "belfry_store_retries", .gauge, "Devices that wait for another try, of all nodes.",
      Double(totals.retries))
    page.single(
      "belfry_store_feedback", .gauge,
      "Handles called dead or replaced that feedback still tells of.", Double(totals.feedback))
    let registrations = "belfry_store_registrations"
    page.begin(registrations, .gauge, "Registrations of all hubs.")
    for (platform, count) in totals.registrations.sorted(by: { $0.key.rawValue < $1.key.rawValue })
    {
      page.sample(registrations, [("platform", platform.rawValue)], Double(count))
    }
  }

  private func addNodes(_ nodes: [Node], to page: inout PrometheusText) {
    let name = "belfry_node_silence_seconds"
    page.begin(name, .gauge, "Since when nothing was heard of a node of the database.")
    for node in nodes {
      page.sample(
        name, [("node", String(node.id)), ("name", node.name), ("address", node.address)],
        node.silence)
    }
  }

  private static func labels(
    _ hub: Hub.ID, _ platform: PushPlatform, _ names: [Hub.ID: String]
  ) -> [(String, String)] {
    [("hub", names[hub] ?? String(hub)), ("platform", platform.rawValue)]
  }
}

/// Writes metrics in Prometheus' text format, version 0.0.4.
/// - SeeAlso: <https://prometheus.io/docs/instrumenting/exposition_formats/>
struct PrometheusText {
  static let contentType = "text/plain; version=0.0.4; charset=utf-8"

  enum Kind: String {
    case counter, gauge, histogram
  }

  private(set) var text = ""

  /// Begins a metric. Its samples follow, without those of other metrics in between.
  mutating func begin(_ name: String, _ kind: Kind, _ help: String) {
    let help = help.replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
  }

  mutating func sample(_ name: String, _ labels: [(String, String)], _ value: Double) {
    text += name
    if !labels.isEmpty {
      text += "{" + labels.map { "\($0)=\"\(Self.escaped($1))\"" }.joined(separator: ",") + "}"
    }
    text += " \(Self.number(value))\n"
  }

  /// A metric with one sample.
  mutating func single(_ name: String, _ kind: Kind, _ help: String, _ value: Double) {
    begin(name, kind, help)
    sample(name, [], value)
  }

  mutating func histogram(_ name: String, _ help: String, _ histogram: Histogram) {
    begin(name, .histogram, help)
    var total = 0
    for (bound, count) in zip(histogram.bounds, histogram.counts) {
      total += count
      sample(name + "_bucket", [("le", Self.number(bound))], Double(total))
    }
    sample(name + "_bucket", [("le", "+Inf")], Double(histogram.count))
    sample(name + "_sum", [], histogram.sum)
    sample(name + "_count", [], Double(histogram.count))
  }

  private static func escaped(_ value: String) -> String {
    value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
  }

  private static func number(_ value: Double) -> String {
    if value.isNaN { return "NaN" }
    if value.isInfinite { return value > 0 ? "+Inf" : "-Inf" }
    if value == value.rounded(), abs(value) < 1e15 { return String(Int64(value)) }
    return String(value)
  }
}

/// The resource usage of the process.
package enum ProcessMemory {
  /// The resident memory of the process in bytes; `nil` if the system does not report it.
  package static var resident: Int? {
    #if canImport(Darwin)
      var info = mach_task_basic_info()
      var count = mach_msg_type_number_t(
        MemoryLayout<mach_task_basic_info>.size / MemoryLayout<natural_t>.size)
      let result = withUnsafeMutablePointer(to: &info) { pointer in
        pointer.withMemoryRebound(to: integer_t.self, capacity: Int(count)) {
          task_info(mach_task_self_, task_flavor_t(MACH_TASK_BASIC_INFO), $0, &count)
        }
      }
      return result == KERN_SUCCESS ? Int(info.resident_size) : nil
    #else
      // The second number is the count of resident pages (proc(5)).
      guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8),
        let pages = text.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
      else { return nil }
      return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    #endif
  }
}
