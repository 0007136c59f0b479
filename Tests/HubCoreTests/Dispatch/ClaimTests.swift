import Foundation
import HubTesting
import NotificationHubs
import Synchronization
import Testing

@testable import HubCore
@testable import HubStorage

/// Things that could keep a node, where nodes share the work, from claiming more of it.
@Suite(
  "Claims of a node", .enabled(if: PostgresStores.areInstalled, "PostgreSQL is not installed"),
  .timeLimit(.minutes(5)))
struct ClaimTests {
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
    await gateway.arrived(batches: 1)
    await first.stop(within: .seconds(5))
    #expect(try await world.store.waitingRetries(damaged.id, hub: world.hub.id) == 1)

    let process = StoreHook()
    let isDamaged = Mutex(true)
    process.faults { name in
      isDamaged.withLock { isDamaged in
        // The next claim can read it.
        if name == "releaseWork(_:of:hub:)" { isDamaged = false }
        return isDamaged && name == call ? .refused(StoreError.corrupt("page 7")) : nil
      }
    }
    let dispatcher = world.dispatcher(process: process)
    try await dispatcher.start()
    await process.called(call, times: 2)
    // While the damaged part waits for its next try, as the clock stands still.
    if call != "retryLanes()" { isDamaged.withLock { $0 = false } }
    _ = try await world.send(world.native(.fcmv1), through: dispatcher)
    await other.arrived(batches: 1)

    isDamaged.withLock { $0 = true }
    try await world.runningClock(for: nil) { await process.called("releaseWork(_:of:hub:)") }
    let record = try await world.runningClock(for: dispatcher) {
      try await world.finished(damaged, by: dispatcher)
    }
    #expect(DispatchWorld.outcomes(record) == [.success: 1])
    await dispatcher.stop(within: .seconds(5))
  }

  @Test("notifications that wait for a push service that is down keep no other hub's from starting")
  func downService() async throws {
    let down = FakeGateway { _, _ in
      PushResult(outcome: .invalidCredentials, retry: .pauseCredential, status: 403)
    }
    let moving = FakeGateway()
    var world = try await DispatchWorld([.apns: down, .fcmv1: moving], on: .postgres)
    world.limits.claimedParts = 4
    try await world.addDevices(0..<1)
    let other = try await world.beside("other")
    try await other.putCredential(.fcmv1)
    try await other.addDevices(1..<2, platform: .fcmv1)
    let dispatcher = try await world.started()
    let refused = try await world.send(world.native(), through: dispatcher)
    _ = try await world.runningClock(for: dispatcher) { [world] in
      try await world.finished(refused, by: dispatcher)
    }
    for _ in 0..<8 { _ = try await world.send(world.native(), through: dispatcher) }
    _ = try await other.send(world.native(.fcmv1), through: dispatcher)
    // The clock stands still: nothing of the first hub's can end.
    await moving.arrived(batches: 1)
    await dispatcher.stop(within: .seconds(5))
  }

  @Test("retries of a notification that was aborted on another node are not sent")
  func abortedElsewhere() async throws {
    let gateway = FakeGateway { _, _ in
      PushResult(outcome: .pnsServerError, retry: .backoff, status: 500)
    }
    let world = try await DispatchWorld([.apns: gateway], on: .postgres)
    try await world.addDevices(0..<4)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    while try await world.store.waitingRetries(sent.id, hub: world.hub.id) < 4 {
      await Task.yield()
    }
    // The other node tells the store.
    _ = try await world.store.abort(sent.id, hub: world.hub.id, at: world.clock.now)
    let record = try await world.runningClock(for: dispatcher) {
      try await world.finished(sent, by: dispatcher)
    }
    #expect(DispatchWorld.outcomes(record) == [.aborted: 4])
    #expect(gateway.pushes.count == 4)
    await dispatcher.stop(within: .seconds(5))
  }

  @Test("a notification whose end the database has lost is delivered again, under the same ids")
  func lostEnd() async throws {
    let gateway = FakeGateway()
    let world = try await DispatchWorld([.apns: gateway], on: .postgres)
    let store = try #require(world.store as? PostgresHubStore)
    try await world.addDevices(0..<1)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    _ = try await world.runningClock(for: dispatcher) {
      try await world.finished(sent, by: dispatcher)
    }
    // As on a standby that has not received the last commit.
    _ = try await store.write { session in
      _ = try session.execute("DELETE FROM notification_count")
      _ = try session.execute("UPDATE work SET is_done = 0, position = 0, is_read = 0")
      _ = try session.execute("UPDATE notification SET state = 'Processing', ended_at = NULL")
    }
    world.clock.set(world.clock.now + 6)
    _ = try await dispatcher.unclaimedWork()
    let record = try await world.runningClock(for: dispatcher) {
      try await world.finished(sent, by: dispatcher)
    }
    #expect(record.state == .completed)
    #expect(Set(gateway.pushes.map(\.id)).count == 1 && gateway.pushes.count == 2)
    await dispatcher.stop(within: .seconds(5))
  }

  @Test("a device whose retry the database has lost is tried again all the same")
  func lostRetry() async throws {
    let gateway = FakeGateway { _, attempt in
      attempt > 1 ? .success : PushResult(outcome: .pnsServerError, retry: .backoff, status: 500)
    }
    let world = try await DispatchWorld([.apns: gateway], on: .postgres)
    let store = try #require(world.store as? PostgresHubStore)
    try await world.addDevices(0..<1)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    while try await store.waitingRetries(sent.id, hub: sent.hub) == 0 {
      try await Task.sleep(for: .milliseconds(1))
    }
    // As on a standby that has not received the last commit.
    _ = try await store.write { session in
      _ = try session.execute("DELETE FROM retry")
      _ = try session.execute("UPDATE work SET position = 0, is_read = 0, mark = NULL")
    }
    let record = try await world.runningClock(for: dispatcher) {
      try await world.finished(sent, by: dispatcher)
    }
    #expect(DispatchWorld.outcomes(record) == [.success: 1])
    #expect(Set(gateway.pushes.map(\.id)).count == 1 && gateway.pushes.count == 2)
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
    await process.called("targets(_:after:limit:)")
    process.refuse("targets(_:after:limit:)", with: nil)
    await store.heartbeat?.stop()
    // Well before the end of the notification's time, which would end it without a lease, too.
    let limit = world.clock.now + 60
    let isGivenUp = try await world.runningClock(for: nil, until: limit) {
      await dispatcher.waitUntilIdle(within: .seconds(86_400))
    }
    #expect(isGivenUp)
    #expect(world.gateways[.apns]?.pushes.isEmpty == true)
    #expect(
      world.events.all.contains { if case .leaseLost(_, sent.id, _) = $0 { true } else { false } },
      "\(world.events.all)")
    await dispatcher.stop(within: .seconds(5))
    #expect(try await store.notification(sent.id, hub: sent.hub)?.state.isFinal == false)
  }
}
