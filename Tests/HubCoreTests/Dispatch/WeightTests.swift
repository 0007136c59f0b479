import Foundation
import HubTesting
import NotificationHubs
import StoreContract
import Testing

@testable import HubCore

/// The dispatcher, the store that people run, and connections that are always full.
@Suite("Weights of hubs, from the store to the connections", .timeLimit(.minutes(5)))
struct WeightTests {
  private static let page = 10
  /// Batches that the connections carry: their capacity and two pages.
  private static let full = 12

  @Test("two hubs share the connections by their weights", arguments: [1.0, 3.0])
  func weights(weight: Double) async throws {
    try await withTemporaryStore { store in try await self.share(store, weight: weight) }
  }

  private func share(_ store: any HubStore, weight: Double) async throws {
    let clock = ManualClock()
    let gateway = FakeGateway(
      pool: GatewayPool(id: 1, capacity: (Self.full - 2) * Self.page))
    gateway.hold()
    var limits = DispatchLimits()
    limits.pageSize = Self.page
    limits.laneTargets = 4 * Self.page
    let heavy = try await hub("heavy", in: store, at: clock.now)
    let light = try await hub("light", in: store, at: clock.now)
    let dispatcher = Dispatcher(
      store: store, gateways: FakeGateways([.apns: gateway]), clock: clock.hubClock,
      random: .always(0),
      limits: limits)
    await dispatcher.setWeights([heavy: weight])
    try await dispatcher.start()
    for hub in [heavy, light] {
      let record = NotificationRecord(
        id: NotificationID(at: clock.now, random: .system), hub: hub,
        request: NotificationRequest(format: .native(.apns), body: Array(#"{"aps":{}}"#.utf8)),
        state: .enqueued, enqueuedAt: clock.now)
      try await store.accept(record)
      await dispatcher.submit(record)
    }
    // Each answer makes room for one batch; whose it is, is what the weights decide. The first
    // rounds give the later hub what it has missed.
    let (first, last) = (2 * Self.full, 12 * Self.full)
    for _ in 0..<last {
      while gateway.heldBatches < Self.full { await Task.yield() }
      gateway.answerOldest()
    }
    // Batches are answered in the order of their arrival.
    let answered = gateway.pushes[first * Self.page..<last * Self.page]
    let one = answered.count { $0.handle.hasPrefix("heavy") }
    let ratio = Double(one) / Double(max(1, answered.count - one))
    #expect(abs(ratio / weight - 1) < 0.2, "\(one) of \(answered.count)")
    gateway.release()
    await dispatcher.stop(within: .seconds(30))
  }

  /// A hub with more devices than the test gets to.
  private func hub(_ name: String, in store: any HubStore, at now: Date) async throws -> Hub.ID {
    let hub = try await store.createHub(
      named: name, registrationTTL: nil, policies: [], at: now
    ).id
    try await store.putCredential(
      PushCredential(platform: .apns, properties: [:], modifiedAt: now), hub: hub)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<14 * Self.full * Self.page {
        group.addTask {
          try await store.put(
            SampleDevice("\(name)-\(number)", handle: "\(name)-\(number)"), hub: hub, at: now)
        }
      }
      try await group.waitForAll()
    }
    return hub
  }
}
