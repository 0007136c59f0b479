import Foundation
import HTTPServer
import HubCore
import HubTesting
import NotificationHubs
import SQLDatabase
import StoreContract
import Testing

@testable import HubServer
@testable import HubStorage

@Suite(
  "Health and metrics of nodes on one PostgreSQL",
  .enabled(if: PostgresStores.areInstalled, "PostgreSQL's server is not installed"),
  .timeLimit(.minutes(5)))
struct NodeObservingTests {
  private struct Node {
    let hub: TestHub
    let api: HubAPI

    init(_ store: PostgresHubStore, hubs: [String]) async throws {
      hub = try await TestHub(hubs: hubs, store: store)
      let health = HubHealth(
        store: store, dispatcher: hub.service.dispatcher, gateways: nil, clock: .system,
        machine: .system)
      api = HubAPI(
        service: hub.service,
        observer: HubObserver(
          log: .silent, health: health,
          metrics: MetricsPage(service: hub.service, health: health, version: "1"),
          readers: .everybody))
      try await hub.service.dispatcher.start()
    }

    func get(_ path: String) async -> HTTPResponse {
      await api.respond(
        to: HTTPRequest(
          method: .get, target: HTTPTarget(path), headers: ["Host": TestHub.host], body: []))
    }

    /// The samples of what is in the store.
    func totals() async -> Set<String> {
      Set(
        await get("/metrics").text.split(separator: "\n").map(String.init)
          .filter { line in
            ["notifications", "retries", "feedback", "registrations"].contains {
              line.hasPrefix("belfry_store_\($0)")
            }
          })
    }
  }

  @Test("the metrics of every node have the same of what is in the store, counted now and then")
  func totals() async throws {
    try await PostgresStores.withNodes(2) { stores in
      let one = try await Node(stores[0], hubs: ["hub1"])
      let two = try await Node(stores[1], hubs: [])
      let empty: Set<String> = [
        #"belfry_store_notifications{state="unfinished"} 0"#,
        #"belfry_store_notifications{state="scheduled"} 0"#, "belfry_store_retries 0",
        "belfry_store_feedback 0",
      ]
      #expect(await one.totals() == empty)
      #expect(await two.totals() == empty)
      let hub = try #require(try await stores[0].hub(named: "hub1")).id
      try await stores[0].put(
        SampleDevice("i-1", templates: ["a": PushTemplate(body: "{}")]), hub: hub, at: TestHub.now)
      try await stores[1].put(SampleDevice("i-2"), hub: hub, at: TestHub.now)
      // As of nodes that have died: nobody takes it up.
      for (number, state) in ["Enqueued", "Scheduled"].enumerated() {
        _ = try await stores[number].write { session in
          try session.execute(
            """
            INSERT INTO notification (hub, public_id, format, body, headers, state, enqueued_at,
              is_direct, due_at) VALUES (?1, ?2, 1, ''::bytea, ''::bytea, ?3, 0, 0, ?4)
            """, hub, "n-\(number)", state, Int64.max / 2)
        }
      }
      _ = try await stores[0].write { session in
        try session.execute(
          """
          INSERT INTO retry (notification, part, registration, hub, platform, attempts, due)
          VALUES (99, 0, 1, ?1, 1, 1, 0), (99, 0, 2, ?1, 1, 1, 0)
          """, hub)
      }
      #expect(await one.totals() == empty, "what was counted a moment ago counts")
      let full: Set<String> = [
        #"belfry_store_notifications{state="unfinished"} 1"#,
        #"belfry_store_notifications{state="scheduled"} 1"#, "belfry_store_retries 2",
        "belfry_store_feedback 0", #"belfry_store_registrations{platform="apns"} 3"#,
      ]
      for node in [one, two] {
        node.hub.clock.advance(by: .seconds(61))
        #expect(await node.totals() == full)
      }
      for node in [one, two] { await node.hub.service.dispatcher.stop(within: .seconds(10)) }
    }
  }

  @Test("a node whose heartbeat does not get through is unready until it does")
  func leaseLost() async throws {
    try await PostgresStores.withNodes(2) { stores in
      let one = try await Node(stores[0], hubs: ["hub1"])
      let two = try await Node(stores[1], hubs: [])
      #expect(await one.get("/health/ready").status == .ok)
      let heartbeat = try #require(stores[0].heartbeat)
      let blocker = try PostgresConnection(
        address: stores[0].engine.shared.address, component: "test")
      try blocker.execute("BEGIN; SELECT 1 FROM node WHERE id = \(heartbeat.id) FOR UPDATE")
      // A beat that was under way counts once more.
      try await until("unready") {
        heartbeat.loseTime(.seconds(60))
        return await one.get("/health/ready").status == .serviceUnavailable
      }
      let reply = await one.get("/health/ready")
      #expect(reply.text.contains(#""code":"lease-lost""#) && reply.text.contains("leases"))
      #expect(try await stores[0].claimWork(limit: 1).isEmpty)
      #expect(await two.get("/health/ready").status == .ok)
      #expect(await one.get("/health/live").status == .ok)
      try blocker.execute("ROLLBACK")
      blocker.close()
      try await until("ready") { await one.get("/health/ready").status == .ok }
      for node in [one, two] { await node.hub.service.dispatcher.stop(within: .seconds(10)) }
    }
  }

  private func until(_ what: String, _ isSo: () async throws -> Bool) async throws {
    let limit = ContinuousClock.now + .seconds(120)
    while try await !isSo() {
      try #require(ContinuousClock.now < limit, "not \(what) within the limit")
      try await Task.sleep(for: .milliseconds(50))
    }
  }
}
