package import Foundation
package import HTTPServer
package import HubCore
import NotificationHubs

/// Everything that `/metrics` says, gathered when it is asked (`docs/operations.md` lists it).
package struct MetricsPage: Sendable {
  private let service: HubService
  private let health: HubHealth
  private let version: String
  private let startedAt: Date

  package init(
    service: HubService, health: HubHealth, version: String, startedAt: Date = Date()
  ) {
    self.service = service
    self.health = health
    self.version = version
    self.startedAt = startedAt
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
    // A hub's name stands for it; one that has just been deleted goes by its number.
    let hubs = (try? await service.store.hubs()) ?? []
    let names = Dictionary(hubs.map { ($0.id, $0.name) }) { first, _ in first }
    await addDispatch(names, to: &page)
    addHandles(counted, names, to: &page)
    await addGateways(names, to: &page)
    await addCredentials(to: &page)
    let store = await service.store.statistics()
    page.histogram(
      "belfry_store_commit_seconds",
      "Time from the start of a transaction until it is on the disk.",
      store.commits)
    page.histogram(
      "belfry_store_commit_batch_size", "Pieces of work that shared a transaction.", store.batches)
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
      "belfry_notifications_unfinished", .gauge, "Notifications under way.",
      Double(status.notifications))
    page.single(
      "belfry_targets_in_memory", .gauge, "Devices read and not recorded yet.",
      Double(status.targets))
    page.single(
      "belfry_retries_waiting", .gauge, "Devices that wait for another try.",
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

  /// A wave shows as a steep rise.
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

  private static func labels(
    _ hub: Hub.ID, _ platform: PushPlatform, _ names: [Hub.ID: String]
  ) -> [(String, String)] {
    [("hub", names[hub] ?? String(hub)), ("platform", platform.rawValue)]
  }
}

/// How a notification came in, as metrics and logs name it.
enum SendKind: String, CaseIterable {
  case audience, direct, batch, scheduled
}
