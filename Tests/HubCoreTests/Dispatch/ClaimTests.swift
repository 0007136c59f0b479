import Foundation
import HubTesting
import NotificationHubs
import Synchronization
import Testing

@testable import HubCore
@testable import HubStorage

/// What keeps a node, where nodes share the work, from taking up more of it.
@Suite(
  "Claims of a node", .enabled(if: PostgresStores.areInstalled, "PostgreSQL is not installed"),
  .timeLimit(.minutes(5)))
struct ClaimTests {
  /// Whether something holds within a minute. It gives the store's calls some time, and then moves
  /// the clock from one sleeper to the next unless that is to stand still.
  private func wait(
    _ world: DispatchWorld, isRunning: Bool = true, until isDone: () async throws -> Bool
  ) async throws -> Bool {
    let limit = ContinuousClock.now + .seconds(60)
    while try await !isDone() {
      guard ContinuousClock.now < limit else { return false }
      if isRunning, let next = world.clock.nextDeadline {
        world.clock.set(max(next, world.clock.now))
      }
      try await Task.sleep(for: .milliseconds(3))
    }
    return true
  }

  private func isFinal(_ record: NotificationRecord, _ world: DispatchWorld) async throws -> Bool {
    try await world.store.notification(record.id, hub: record.hub)?.state.isFinal == true
  }

  @Test(
    "a part whose retries the store does not tell keeps no other from being taken up, and is given back",
    arguments: ["waitingRetries(_:part:hub:)", "retryLanes()"])
  func untoldRetries(call: String) async throws {
    let gateway = FakeGateway { _, attempt in
      attempt > 1 ? .success : PushResult(outcome: .pnsServerError, retry: .backoff, status: 500)
    }
    let other = FakeGateway()
    let world = try await DispatchWorld([.apns: gateway, .fcmv1: other], on: .postgres)
    try await world.addDevices(0..<1)
    try await world.addDevices(1..<2, platform: .fcmv1)
    let first = try await world.started()
    let damaged = try await world.send(world.native(), through: first)
    let hasRow = try await wait(world) {
      try await world.store.waitingRetries(damaged.id, hub: world.hub.id) == 1
    }
    #expect(hasRow)
    await first.stop(within: .seconds(5))

    let process = StoreHook()
    let isDamaged = Mutex(true)
    process.faults { name in
      name == call && isDamaged.withLock { $0 } ? .refused(StoreError.corrupt("page 7")) : nil
    }
    let dispatcher = world.dispatcher(process: process)
    try await dispatcher.start()
    let isTriedAgain = try await wait(world, isRunning: false) { process.count(of: call) > 1 }
    #expect(isTriedAgain)
    // While the damaged part waits for its next try, as the clock stands still.
    if call != "retryLanes()" { isDamaged.withLock { $0 = false } }
    let sent = try await world.send(world.native(.fcmv1), through: dispatcher)
    let isSent = try await wait(world, isRunning: false) { try await isFinal(sent, world) }
    #expect(isSent, "it waits for the part that cannot be read")

    isDamaged.withLock { $0 = true }
    let isGivenBack = try await wait(world) { process.count(of: "releaseWork(_:of:hub:)") > 0 }
    #expect(isGivenBack)
    isDamaged.withLock { $0 = false }
    let isMended = try await wait(world) { try await isFinal(damaged, world) }
    #expect(isMended)
    let record = try await world.store.notification(damaged.id, hub: world.hub.id)
    #expect(record.map(DispatchWorld.outcomes) == [.success: 1])
    await dispatcher.stop(within: .seconds(5))
  }

  @Test("notifications that wait for a push service that is down keep no other hub's from starting")
  func downService() async throws {
    let down = FakeGateway { _, _ in
      PushResult(outcome: .invalidCredentials, retry: .pauseCredential, status: 403)
    }
    var world = try await DispatchWorld([.apns: down, .fcmv1: FakeGateway()], on: .postgres)
    world.limits.claimedParts = 4
    try await world.addDevices(0..<1)
    let other = try await world.beside("other")
    try await other.putCredential(.fcmv1)
    try await other.addDevices(1..<2, platform: .fcmv1)
    let dispatcher = try await world.started()
    let refused = try await world.send(world.native(), through: dispatcher)
    let isRefused = try await wait(world) { try await isFinal(refused, world) }
    #expect(isRefused)
    for _ in 0..<8 { _ = try await world.send(world.native(), through: dispatcher) }
    let sent = try await other.send(world.native(.fcmv1), through: dispatcher)
    // The clock stands still: nothing of the first hub's can end.
    let isSent = try await wait(world, isRunning: false) { try await isFinal(sent, world) }
    #expect(isSent, "it waits for another hub's push service")
    await dispatcher.stop(within: .seconds(5))
  }

  @Test("a part that was read before the node's lease ended is not sent")
  func endedLease() async throws {
    let world = try await DispatchWorld(on: .postgres)
    let store = try #require(world.store as? PostgresHubStore)
    try await world.addDevices(0..<1)
    let process = StoreHook()
    let dispatcher = world.dispatcher(process: process)
    try await dispatcher.start()
    process.refuse("targets(_:after:limit:)", with: .locked)
    let sent = try await world.send(world.native(), through: dispatcher)
    while process.count(of: "targets(_:after:limit:)") == 0 { await Task.yield() }
    process.refuse("targets(_:after:limit:)", with: nil)
    await store.heart?.stop()
    let isGivenUp = try await wait(world) { await dispatcher.isIdle }
    #expect(isGivenUp)
    #expect(world.gateways[.apns]?.pushes.isEmpty == true)
    #expect(
      world.events.all.contains { if case .leaseLost(_, sent.id, _) = $0 { true } else { false } })
    await dispatcher.stop(within: .seconds(5))
    #expect(try await store.notification(sent.id, hub: sent.hub)?.state.isFinal == false)
  }
}
