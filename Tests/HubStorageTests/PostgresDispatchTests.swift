import Foundation
import HubCore
import HubTesting
import NotificationHubs
import StoreContract
import Synchronization
import Testing

@testable import HubStorage

/// Dispatchers of several nodes, each with a push service of its own to tell them apart.
@Suite(
  "Dispatchers on one PostgreSQL",
  .enabled(if: PostgresStores.areInstalled, "PostgreSQL's server is not installed"),
  .timeLimit(.minutes(5)))
struct PostgresDispatchTests {
  private static let devices = 2_500

  private struct Node {
    let store: PostgresHubStore
    let gateway = FakeGateway()
    let hook = StoreHook()
    let dispatcher: Dispatcher

    init(_ store: PostgresHubStore) {
      self.store = store
      var limits = DispatchLimits()
      limits.pageSize = 20
      limits.pagesPerNotification = 2
      dispatcher = Dispatcher(
        store: store.intercepted(by: hook), gateways: FakeGateways([.apns: gateway]),
        clock: store.clock, random: .system, limits: limits)
    }

    var handles: [String] { gateway.pushes.map(\.handle) }
  }

  /// Two nodes at work, and a broadcast that the first has accepted.
  private func scene(
    devices: Int = Self.devices, _ body: (Node, Node, NotificationRecord) async throws -> Void
  ) async throws {
    try await PostgresStores.withNodes(2) { stores in
      let hub = try await stores[0].createHub(
        named: "hub1", registrationTTL: nil, policies: [], at: Date())
      try await stores[0].putCredential(
        PushCredential(platform: .apns, properties: [:], modifiedAt: Date()), hub: hub.id)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<devices {
          group.addTask {
            try await stores[0].put(
              SampleDevice("i-\(number)", handle: "H\(number)"), hub: hub.id, at: Date())
          }
        }
        try await group.waitForAll()
      }
      let nodes = stores.map(Node.init)
      try await body(nodes[0], nodes[1], broadcast(in: hub.id))
      for node in nodes { await node.dispatcher.stop(within: .seconds(10)) }
    }
  }

  private func broadcast(in hub: Hub.ID) -> NotificationRecord {
    NotificationRecord(
      id: NotificationID(at: Date(), random: .system), hub: hub,
      request: NotificationRequest(format: .native(.apns), body: Array(#"{"aps":{}}"#.utf8)),
      state: .enqueued, enqueuedAt: Date())
  }

  private func expectEverybody(
    _ record: NotificationRecord, finishedBy node: Node, devices: Int = Self.devices
  ) async throws {
    let end = try await node.dispatcher.record(
      of: record.id, hub: record.hub, finishedWithin: .seconds(120))
    #expect(end?.state == .completed)
    let success = OutcomeKey(platform: .apns, isTemplate: false, outcome: .success)
    #expect(end?.counts == [success: devices])
  }

  @Test(
    "a node that believes its lease lost, or its store gone, between any two steps goes on",
    arguments: [StoreError.leaseLost, .noHub, .closed])
  func interrupted(by error: StoreError) async throws {
    let calls = [
      "claimWork(limit:)", "waitingRetries(_:part:hub:)", "nextSchedule()",
      "targets(_:after:limit:)", "directoryVersion()", "checkpoint(_:)",
    ]
    try await scene(devices: 60) { one, _, first in
      try await one.dispatcher.start()
      for call in calls {
        // The store itself remembers a claim whose answer was lost.
        for isMade in call == "claimWork(limit:)" ? [false] : [false, true] {
          let isDone = Mutex(false)
          one.hook.faults { name in
            let isFirst = isDone.withLock { isDone in
              defer { isDone = isDone || name == call }
              return name == call && !isDone
            }
            guard isFirst else { return nil }
            return isMade ? .unanswered(error) : .refused(error)
          }
          let record = broadcast(in: first.hub)
          try await one.store.accept(record)
          await one.dispatcher.submit(record)
          try await expectEverybody(record, finishedBy: one, devices: 60)
          #expect(isDone.withLock { $0 }, "\(call) was never made")
        }
      }
    }
  }

  @Test("two nodes share a broadcast, and each device gets it once")
  func share() async throws {
    try await scene { one, two, record in
      try await one.dispatcher.start()
      try await two.dispatcher.start()
      // Held until the other has its parts as well: neither could end it alone before.
      one.gateway.hold()
      two.gateway.hold()
      try await one.store.accept(record)
      await one.dispatcher.submit(record)
      await two.gateway.arrived(batches: 1)
      await one.gateway.arrived(batches: 1)
      one.gateway.release()
      two.gateway.release()
      try await expectEverybody(record, finishedBy: one)
      #expect(Set(one.handles + two.handles).count == Self.devices)
      #expect(one.handles.count + two.handles.count == Self.devices)
    }
  }

  @Test(
    "a node that was not heard of is replaced; what it wants to write afterwards is not written")
  func replaced() async throws {
    try await scene { one, two, record in
      try await one.dispatcher.start()
      one.gateway.hold()
      try await one.store.accept(record)
      await one.dispatcher.submit(record)
      await one.gateway.arrived(batches: 1)
      // As one that stands still: it claims nothing more.
      one.hook.refuse("claimWork(limit:)", with: .locked)
      let lost = try #require(one.store.heartbeat?.id)
      try await two.store.write { session in
        _ = try session.execute("UPDATE node SET is_dead = 1 WHERE id = ?1", lost)
      }
      try await two.dispatcher.start()
      try await expectEverybody(record, finishedBy: two)
      let before = try await two.store.notification(record.id, hub: record.hub)?.counts
      one.gateway.release()
      #expect(await one.dispatcher.waitUntilIdle(within: .seconds(120)))
      let after = try await two.store.notification(record.id, hub: record.hub)?.counts
      #expect(after == before)
      // Of each part two pages may have been under way, with the ids that the other has used.
      let again = one.gateway.pushes.count
      #expect(again <= 4 * 2 * 20)
      #expect(Set((one.gateway.pushes + two.gateway.pushes).map(\.id)).count == Self.devices)
    }
  }

  @Test("a node that ends hands its work to the other at once")
  func drained() async throws {
    try await scene { one, two, record in
      try await one.dispatcher.start()
      try await one.store.accept(record)
      await one.dispatcher.submit(record)
      await one.gateway.arrived(batches: 3)
      await one.dispatcher.stop(within: .seconds(30))
      try await two.dispatcher.start()
      try await expectEverybody(record, finishedBy: two)
      #expect(one.handles.count + two.handles.count == Self.devices, "nothing twice")
    }
  }
}
