import Foundation
import HubTesting
import NotificationHubs
import Testing

@testable import HubCore
@testable import HubStorage

/// Lets a question for a notification's retry rows be answered before a checkpoint with some is
/// written, and the answer come after it.
private final class LateCount: StoreInterceptor {
  let checkpoint = Gate()
  let counted = Gate()
  let answer = Gate()

  func intercept<Value: Sendable>(
    _ call: String, _ body: @Sendable () async throws -> Value
  ) async throws -> Value {
    switch call {
    case "checkpoint(_:)":
      checkpoint.open()
      await counted.wait()
      return try await body()
    case "waitingRetries(_:part:hub:)":
      let value = try await body()
      counted.open()
      await answer.wait()
      return value
    default: return try await body()
    }
  }
}

@Suite("Dispatcher retries", .timeLimit(.minutes(5)))
struct DispatcherRetryTests {
  private static let unreachable = PushResult(
    outcome: .pnsUnreachable, retry: .backoff, reason: "connect-or-timeout")

  @Test("what may pass is tried again with the same push id, and counted once")
  func retrySucceeds() async throws {
    let gateway = FakeGateway { push, attempt in
      push.handle == "3" && attempt < 4 ? Self.unreachable : .success
    }
    let world = try await DispatchWorld([.apns: gateway])
    try await world.addDevices(0..<5)
    let dispatcher = try await world.started()
    let record = try await world.runningClock(for: dispatcher) {
      let sent = try await world.send(world.native(), through: dispatcher)
      return try await world.finished(sent, by: dispatcher)
    }
    #expect(record.state == .completed)
    #expect(DispatchWorld.outcomes(record) == [.success: 5])
    let tries = gateway.pushes.filter { $0.handle == "3" }
    #expect(tries.count == 4)
    #expect(Set(tries.map(\.id)).count == 1)
    // 1, 2 and 4 seconds with no jitter; the clock may run ahead of a step by one look.
    let took = record.endedAt?.timeIntervalSince(record.enqueuedAt) ?? 0
    #expect((7...10).contains(took))
    #expect(try await world.store.waitingRetries(record.id, hub: world.hub.id) == 0)
  }

  @Test("rows that were counted before a checkpoint wrote some do not end their notification")
  func lateCount() async throws {
    let gateway = FakeGateway { _, attempt in
      attempt > 1 ? .success : PushResult(outcome: .pnsServerError, retry: .backoff, status: 500)
    }
    let world = try await DispatchWorld([.apns: gateway])
    try await world.addDevices(0..<5)
    let late = LateCount()
    let store = try #require(world.store as? SQLiteHubStore).intercepted(by: late)
    let dispatcher = Dispatcher(
      store: store, gateways: FakeGateways(world.gateways), clock: world.clock.hubClock,
      random: .always(0), limits: world.limits)
    try await dispatcher.start()
    let sent = try await world.send(world.native(), through: dispatcher)
    await late.checkpoint.wait()
    // As when a user is erased meanwhile.
    await dispatcher.recheck(hub: world.hub.id)
    // Until the first retry is due: the checkpoint is recorded.
    await world.clock.sleepers(1)
    late.answer.open()
    while await !dispatcher.isQuiet { await Task.yield() }
    #expect(try await world.store.waitingRetries(sent.id, hub: world.hub.id) == 5)
    let record = try await world.runningClock(for: dispatcher) {
      try await world.finished(sent, by: dispatcher)
    }
    #expect(DispatchWorld.outcomes(record) == [.success: 5])
  }

  @Test("a message is not tried again at a device that has moved to another push service")
  func otherService() async throws {
    let apple = FakeGateway { _, _ in Self.unreachable }
    let google = FakeGateway { _, _ in .success }
    let world = try await DispatchWorld([.apns: apple, .fcmv1: google])
    try await world.addDevices(0..<1)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    await world.clock.sleepers(1)
    let draft = RegistrationDraft(kind: .native, platform: .fcmv1, channel: .handle("token"))
    try await world.add("d0", [draft], .fcmv1)
    let record = try await world.runningClock(for: dispatcher) {
      try await world.finished(sent, by: dispatcher)
    }
    #expect(google.pushes.isEmpty)
    #expect(DispatchWorld.outcomes(record) == [.expiredChannel: 1])
  }

  @Test("after thirty minutes what is left is abandoned")
  func window() async throws {
    let gateway = FakeGateway { push, _ in push.handle == "0" ? .success : Self.unreachable }
    let world = try await DispatchWorld([.apns: gateway])
    try await world.addDevices(0..<3)
    let dispatcher = try await world.started()
    let record = try await world.runningClock(for: dispatcher) {
      let sent = try await world.send(world.native(), through: dispatcher)
      return try await world.finished(sent, by: dispatcher)
    }
    #expect(record.state == .completed)
    #expect(DispatchWorld.outcomes(record) == [.success: 1, .abandonedNotificationMessages: 2])
    #expect(record.endedAt.map { $0.timeIntervalSince(record.enqueuedAt) <= 1800 } == true)
    // 1 + 2 + 4 + … + 256 = 511 s, then 300 s each: 511, 811, 1111, 1411, 1711; then
    // shortly before the end.
    #expect(gateway.pushes.filter { $0.handle == "1" }.count == 15)
  }

  @Test("a pause that would be longer than what is left ends before the time is over")
  func lastTry() async throws {
    // Of a device: the lane does not rest.
    let throttled = PushResult(outcome: .channelThrottled, retry: .backoff, status: 429)
    // 10 + 20 + … + 160 = 310 s, then 300 s each: the tenth try is at 1510 s.
    let gateway = FakeGateway { push, attempt in
      push.handle == "0" && attempt > 10 ? .success : throttled
    }
    let world = try await DispatchWorld([.apns: gateway])
    try await world.addDevices(0..<2)
    let dispatcher = try await world.started()
    let record = try await world.runningClock(for: dispatcher) {
      let sent = try await world.send(world.native(), through: dispatcher)
      return try await world.finished(sent, by: dispatcher)
    }
    #expect(DispatchWorld.outcomes(record) == [.success: 1, .abandonedNotificationMessages: 1])
    let took = record.endedAt?.timeIntervalSince(record.enqueuedAt) ?? 0
    #expect((1785..<1800).contains(took), "nor is anybody given up long before the end")
  }

  @Test(
    "a Retry-After that ends just within the window is waited for in full",
    arguments: [1772, 1780, 1788, 1794] as [Int32])
  func closeRetryAfter(seconds: Int32) async throws {
    let gateway = FakeGateway { _, attempt in
      attempt > 1
        ? .success
        : PushResult(
          outcome: .channelThrottled, retry: .backoff, status: 429, reason: "TooManyRequests",
          retryAfter: seconds)
    }
    let world = try await DispatchWorld([.apns: gateway])
    try await world.addDevices(0..<1)
    let dispatcher = try await world.started()
    let record = try await world.runningClock(for: dispatcher) {
      let sent = try await world.send(world.native(), through: dispatcher)
      return try await world.finished(sent, by: dispatcher)
    }
    #expect(DispatchWorld.outcomes(record) == [.success: 1])
    let took = record.endedAt?.timeIntervalSince(record.enqueuedAt) ?? 0
    #expect((Double(seconds)..<1800).contains(took))
  }

  @Test("a notification that reached nobody before its time ran out is Abandoned")
  func abandoned() async throws {
    let world = try await DispatchWorld([.apns: FakeGateway { _, _ in Self.unreachable }])
    try await world.addDevices(0..<1)
    let dispatcher = try await world.started()
    let record = try await world.runningClock(for: dispatcher) {
      let sent = try await world.send(world.native(), through: dispatcher)
      return try await world.finished(sent, by: dispatcher)
    }
    #expect(record.state == .abandoned)
  }

  @Test(
    "a Retry-After beyond the window is tried again before its end, and ends with the last reply")
  func longRetryAfter() async throws {
    let gateway = FakeGateway { push, attempt in
      push.handle == "0" && attempt > 1
        ? .success
        : PushResult(
          outcome: .channelThrottled, retry: .backoff, status: 429, reason: "TooManyRequests",
          retryAfter: 7200)
    }
    let world = try await DispatchWorld([.apns: gateway])
    try await world.addDevices(0..<2)
    let dispatcher = try await world.started()
    let record = try await world.runningClock(for: dispatcher) {
      let sent = try await world.send(world.native(), through: dispatcher)
      return try await world.finished(sent, by: dispatcher)
    }
    #expect(DispatchWorld.outcomes(record) == [.success: 1, .channelThrottled: 1])
    let took = record.endedAt?.timeIntervalSince(record.enqueuedAt) ?? 0
    #expect((1790..<1800).contains(took))
    #expect(gateway.pushes.filter { $0.handle == "1" }.count <= 5)
  }

  @Test("a sender that is asked for a longer pause than is left tries once more before the end")
  func longPause() async throws {
    let gateway = FakeGateway { _, attempt in
      attempt > 1
        ? .success
        : PushResult(
          outcome: .throttled, retry: .backoff, status: 429, reason: "Slow", retryAfter: 7200)
    }
    let world = try await DispatchWorld([.apns: gateway])
    try await world.addDevices(0..<1)
    let dispatcher = try await world.started()
    let record = try await world.runningClock(for: dispatcher) {
      let sent = try await world.send(world.native(), through: dispatcher)
      return try await world.finished(sent, by: dispatcher)
    }
    #expect(DispatchWorld.outcomes(record) == [.success: 1])
    let took = record.endedAt?.timeIntervalSince(record.enqueuedAt) ?? 0
    #expect((1740..<1800).contains(took))
  }

  @Test("a message that asks for a single try is not tried again")
  func singleTry() async throws {
    let world = try await DispatchWorld([.apns: FakeGateway { _, _ in Self.unreachable }])
    try await world.addDevices(0..<2)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(expiry: 0), through: dispatcher)
    let record = try await world.finished(sent, by: dispatcher)
    #expect(DispatchWorld.outcomes(record) == [.pnsUnreachable: 2])
  }

  @Test("a message's own expiry ends its retries")
  func ownExpiry() async throws {
    let gateway = FakeGateway { _, _ in Self.unreachable }
    let world = try await DispatchWorld([.apns: gateway])
    try await world.addDevices(0..<1)
    let dispatcher = try await world.started()
    let expiry = Int64(world.clock.now.timeIntervalSince1970) + 10
    let record = try await world.runningClock(for: dispatcher) {
      let sent = try await world.send(world.native(expiry: expiry), through: dispatcher)
      return try await world.finished(sent, by: dispatcher)
    }
    #expect(DispatchWorld.outcomes(record) == [.abandonedNotificationMessages: 1])
    // At 0, 1, 3 and 7 seconds.
    #expect(gateway.pushes.count == 4)
  }

  @Test("a throttled sender pauses its whole lane as long as it is asked to")
  func throttledLane() async throws {
    let gateway = FakeGateway { push, attempt in
      push.handle == "0" && attempt == 1
        ? PushResult(
          outcome: .throttled, retry: .backoff, status: 429, reason: "Slow", retryAfter: 100)
        : .success
    }
    let world = try await DispatchWorld([.apns: gateway], pageSize: 1)
    try await world.addDevices(0..<1)
    let dispatcher = try await world.started()
    let first = try await world.send(world.native(), through: dispatcher)
    _ = try await world.store.waitingRetries(first.id, hub: world.hub.id)
    let records = try await world.runningClock(for: dispatcher) {
      await gateway.arrived(batches: 1)
      let second = try await world.send(world.native(), through: dispatcher)
      return (
        try await world.finished(first, by: dispatcher),
        try await world.finished(second, by: dispatcher)
      )
    }
    #expect(DispatchWorld.outcomes(records.0) == [.success: 1])
    #expect(world.clock.now.timeIntervalSince(first.enqueuedAt) >= 100)
  }

  @Test("a registration that goes while its retry waits is ExpiredChannel")
  func goneMeanwhile() async throws {
    let world = try await DispatchWorld([.apns: FakeGateway { _, _ in Self.unreachable }])
    try await world.addDevices(0..<1)
    let dispatcher = try await world.started()
    let sent = try await world.send(world.native(), through: dispatcher)
    await world.clock.sleepers(1)
    _ = try await world.store.deleteInstallation("d0", hub: world.hub.id)
    let record = try await world.runningClock(for: dispatcher) {
      try await world.finished(sent, by: dispatcher)
    }
    #expect(DispatchWorld.outcomes(record) == [.expiredChannel: 1])
    #expect(record.state == .completed)
  }
}
