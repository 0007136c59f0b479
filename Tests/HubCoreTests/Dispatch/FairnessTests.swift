import Foundation
import HubTesting
import NotificationHubs
import StoreContract
import Testing

@testable import HubCore

/// Who goes before whom, with the schedule alone: pure and deterministic.
@Suite("Fairness")
struct FairnessTests {
  private func limits(_ change: (inout DispatchLimits) -> Void = { _ in }) -> DispatchLimits {
    var limits = DispatchLimits()
    limits.pageSize = 100
    limits.laneTargets = 400
    limits.laneBacklog = 200
    limits.targets = 6_400
    change(&limits)
    return limits
  }

  /// Hubs whose credentials are the same have one set of connections.
  private func shared(capacity: Int) -> (LaneKey) -> GatewayPool? {
    { _ in GatewayPool(id: 1, capacity: capacity) }
  }

  @Test(
    "a single push waits for no more than a page of the broadcasts around it",
    arguments: [1, 3, 20], [true, false])
  func singlePush(broadcasts: Int, isSameHub: Bool) throws {
    var world = ScheduleWorld(limits())
    world.pool = shared(capacity: 400)
    world.latency = { _ in 3 }
    for number in 0..<broadcasts { world.send(number, hub: 1, [.apns], targets: 100_000) }
    world.run(ticks: 40)
    world.send(100, hub: isSameHub ? 1 : 2, [.apns], targets: 1)
    let sent = world.tick
    world.run(ticks: 10)
    let arrival = try #require(world.deliveries.first { $0.notification == 100 }).tick
    // Started at once, beside what was under way.
    #expect(arrival - sent <= 4)
  }

  @Test("many single pushes pass a broadcast and do not stop it")
  func manySingles() {
    var world = ScheduleWorld(limits { $0.laneTargets = 200 })
    world.send(0, hub: 1, [.apns], targets: 1_000_000)
    world.run(ticks: 10)
    let before = world.delivered(hub: 1)
    for tick in 0..<30 {
      for number in 0..<300 { world.send(1 + tick * 300 + number, hub: 1, [.apns], targets: 1) }
      world.step()
    }
    #expect((world.jobs[0]?.delivered ?? 0) - before > 500)
    world.run(ticks: 60)
    #expect(world.jobs.filter { $0.key > 0 }.allSatisfy { $0.value.delivered == 1 })
  }

  @Test(
    "two hubs share evenly, whatever the number of their broadcasts",
    arguments: [(1, 1), (1, 10), (5, 40)], [true, false])
  func evenShares(counts: (Int, Int), isShared: Bool) {
    var world = ScheduleWorld(limits())
    if isShared { world.pool = shared(capacity: 400) }
    world.latency = { _ in 2 }
    for number in 0..<counts.0 { world.send(number, hub: 1, [.apns], targets: 1_000_000) }
    for number in 0..<counts.1 { world.send(1000 + number, hub: 2, [.apns], targets: 1_000_000) }
    world.run(ticks: 400)
    let (one, other) = (world.delivered(hub: 1), world.delivered(hub: 2))
    #expect(one > 10_000)
    #expect(abs(one - other) * 20 < one, "\(one) and \(other)")
  }

  @Test("shares follow the weights", arguments: [2.0, 4.0])
  func weights(weight: Double) {
    var world = ScheduleWorld(limits())
    world.pool = shared(capacity: 1_100)
    world.schedule.setWeights([1: weight])
    world.latency = { _ in 2 }
    for number in 0..<3 { world.send(number, hub: 1, [.apns], targets: 1_000_000) }
    for number in 10..<13 { world.send(number, hub: 2, [.apns], targets: 1_000_000) }
    world.run(ticks: 400)
    let ratio = Double(world.delivered(hub: 1)) / Double(world.delivered(hub: 2))
    #expect(abs(ratio / weight - 1) < 0.35, "\(ratio)")
  }

  @Test("random crowds of one weight get even shares, each notification its turn")
  func randomCrowds() {
    for seed in 1...20 {
      var generator = SeededGenerator(seed: UInt64(seed))
      var world = ScheduleWorld(limits())
      world.pool = shared(capacity: Int.random(in: 1...15, using: &generator) * 100)
      let hubs = Int.random(in: 2...6, using: &generator)
      let delay = Int.random(in: 1...4, using: &generator)
      world.latency = { _ in delay }
      var number = 0
      for hub in 1...hubs {
        for _ in 0..<Int.random(in: 1...8, using: &generator) {
          world.send(number, hub: Hub.ID(hub), [.apns], targets: 1_000_000)
          number += 1
        }
      }
      world.run(ticks: 300)
      let shares = (1...hubs).map { world.delivered(hub: Hub.ID($0)) }
      let (least, most) = (shares.min() ?? 0, shares.max() ?? 0)
      #expect(Double(least) > 0.8 * Double(most), "seed \(seed): \(shares)")
      for hub in 1...hubs {
        let own = world.jobs.values.filter { $0.hub == Hub.ID(hub) }.map(\.delivered)
        #expect((own.max() ?? 0) - (own.min() ?? 0) <= 1_500, "seed \(seed), hub \(hub): \(own)")
      }
      #expect(world.mostHeld <= world.limits.targets)
    }
  }

  @Test("hubs whose push service is stuck leave room for the others", arguments: [1, 2, 5])
  func stuckHubs(stuck: Int) {
    var world = ScheduleWorld(limits { $0.stall = 1_000_000 })
    world.latency = { $0.hub > 1 ? nil : 1 }
    for hub in 2...(1 + stuck) {
      for number in 0..<100 {
        world.send(hub * 1000 + number, hub: Hub.ID(hub), [.apns], targets: 100_000)
      }
    }
    world.run(ticks: 20)
    world.send(1, hub: 1, [.apns], targets: 20_000)
    world.run(ticks: 100)
    #expect(world.delivered(hub: 1) == 20_000)
    for hub in 2...(1 + stuck) { #expect(world.delivered(hub: Hub.ID(hub)) == 0) }
  }

  @Test("a stuck push service of a hub delays no other of the same hub")
  func stuckLane() {
    var world = ScheduleWorld(limits { $0.stall = 1_000_000 })
    world.latency = { $0.platform == .fcmv1 ? nil : 1 }
    for number in 0..<30 { world.send(number, hub: 1, [.fcmv1], targets: 100_000) }
    world.run(ticks: 20)
    world.send(100, hub: 1, [.apns], targets: 20_000)
    world.run(ticks: 100)
    #expect(world.jobs[100]?.delivered == 20_000)
  }

  @Test("one hub on many shared connections uses them all")
  func wideConnections() {
    var world = ScheduleWorld(limits())
    world.pool = shared(capacity: 1_600)
    world.latency = { _ in 10 }
    world.send(0, hub: 1, [.apns], targets: 1_000_000)
    world.run(ticks: 300)
    // 1 600 in each 10 ticks, and a page that is ready.
    #expect(world.delivered(hub: 1) > 1_600 * 27)
  }
}
