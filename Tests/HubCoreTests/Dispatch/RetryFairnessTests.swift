import Foundation
import HubTesting
import NotificationHubs
import Testing

@testable import HubCore

@Suite("Retries share what may be under way", .timeLimit(.minutes(5)))
struct RetryFairnessTests {
  private static let now = Date(timeIntervalSince1970: 1_893_456_000)

  private static func lane(_ hub: Hub.ID, _ platform: PushPlatform = .apns) -> LaneKey {
    LaneKey(hub: hub, platform: platform)
  }

  private func turns(_ hubs: ClosedRange<Hub.ID>, targets: Int) -> RetryRotation {
    var limits = DispatchLimits()
    limits.retryTargets = targets
    var turns = RetryRotation(limits: limits)
    for hub in hubs { turns.add(Self.lane(hub), due: Self.now) }
    return turns
  }

  /// Starts what may be started while every lane has more that is due and nothing ends.
  private func fill(_ turns: inout RetryRotation) -> [Hub.ID: Int] {
    var held: [Hub.ID: Int] = [:]
    while let turn = turns.next(at: Self.now) {
      let count = turn.asked - held[turn.lane.hub, default: 0]
      turns.started(turn.lane, count)
      held[turn.lane.hub, default: 0] += count
      turns.add(turn.lane, due: Self.now)
    }
    return held
  }

  @Test("one lane takes no more than half, and each that comes later finds room")
  func oneAfterAnother() {
    var turns = turns(1...1, targets: 8_000)
    #expect(fill(&turns) == [1: 4_000])
    turns.add(Self.lane(2), due: Self.now)
    #expect(fill(&turns) == [2: 2_000])
    turns.add(Self.lane(3), due: Self.now)
    #expect(fill(&turns) == [3: 1_000])
    for hub in 4...40 as ClosedRange<Hub.ID> {
      turns.add(Self.lane(hub), due: Self.now)
      let count = fill(&turns)[hub] ?? 0
      #expect(count >= RetryRotation.least, "\(hub)")
    }
  }

  @Test("lanes that come together share evenly")
  func together() {
    var turns = turns(1...4, targets: 8_000)
    let held = fill(&turns)
    #expect(held.count == 4)
    let (least, most) = (held.values.min() ?? 0, held.values.max() ?? 0)
    #expect(most - least <= 1_000, "\(held)")
    #expect(turns.held <= 8_000)
  }

  @Test("what has ended gives its room back")
  func ended() {
    var turns = turns(1...1, targets: 8_000)
    _ = fill(&turns)
    #expect(turns.next(at: Self.now) == nil)
    turns.ended(Self.lane(1), 4_000)
    #expect(turns.held == 0)
    #expect(turns.next(at: Self.now)?.asked == 1_000)
  }

  @Test("what is not due yet waits for its time")
  func early() {
    var turns = RetryRotation(limits: DispatchLimits())
    let due = Self.now.addingTimeInterval(10)
    turns.add(Self.lane(1), due: due)
    turns.add(Self.lane(1), due: due.addingTimeInterval(5))
    #expect(turns.next(at: Self.now) == nil)
    #expect(turns.nextWake(after: Self.now) == due)
    #expect(turns.next(at: due) != nil)
    #expect(turns.nextWake(after: Self.now) == nil)
  }

  /// Refuses each push once for reasons of its own, and takes it when it comes again.
  private static func busyOnce() -> FakeGateway {
    FakeGateway { _, attempt in
      attempt == 1
        ? PushResult(outcome: .channelThrottled, retry: .backoff, status: 429) : .success
    }
  }

  @Test(
    "a push service that answers no retry keeps no other lane's retries waiting",
    arguments: [true, false])
  func stuckLane(isSameHub: Bool) async throws {
    let (stuck, moving) = (Self.busyOnce(), Self.busyOnce())
    var world = try await DispatchWorld([.fcmv1: stuck, .apns: moving])
    world.limits.retryTargets = 40
    var other = world
    if !isSameHub {
      other.hub = try await world.store.createHub(
        named: "other", registrationTTL: nil, policies: [], at: world.clock.now)
      try await other.putCredential(.apns)
    }
    try await world.addDevices(0..<200, platform: .fcmv1)
    try await other.addDevices(200..<205)
    let dispatcher = try await world.started()
    let first = try await world.send(world.native(.fcmv1), through: dispatcher)
    try await waiting(200, of: first, in: world)
    stuck.hold()
    await world.clock.sleepers(1)
    world.clock.advance(by: .seconds(1))
    let second = try await other.send(other.native(), through: dispatcher)
    try await waiting(5, of: second, in: other)
    // Ten seconds after each first try: those of the first come due alone and fill their share.
    world.clock.advance(by: .milliseconds(9_500))
    await stuck.arrived(batches: 22)
    await world.clock.sleepers(1)
    world.clock.advance(by: .seconds(1))
    let done = try await other.finished(second, by: dispatcher)
    #expect(DispatchWorld.outcomes(done) == [.success: 5])
    #expect(stuck.batches.count == 22)
    stuck.release()
  }

  /// Returns once so many targets have their retry rows.
  private func waiting(
    _ count: Int, of record: NotificationRecord, in world: DispatchWorld
  ) async throws {
    while try await world.store.waitingRetries(record.id, hub: world.hub.id) < count {
      await Task.yield()
    }
  }
}
