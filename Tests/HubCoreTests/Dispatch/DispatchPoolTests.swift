import Foundation
import HubTesting
import NotificationHubs
import Testing

@testable import HubCore

@Suite("Pace of a credential")
struct DispatchPoolTests {
  private let now = Date(timeIntervalSince1970: 1_893_456_000)

  private func busyPool(_ parts: Int) -> DispatchPool {
    var pool = DispatchPool(ceiling: 4_000, page: 1_000)
    for _ in 0..<parts { pool.enter(1_000) }
    return pool
  }

  @Test("trouble halves the window once for all parts that were under way together")
  func halving() {
    var pool = busyPool(4)
    for _ in 0..<4 {
      pool.leave(1_000, sent: 0, AnswerSummary(answered: 900, failed: 100), jitter: 0, at: now)
    }
    #expect(pool.window == 2_000)
    #expect(!pool.isResting(at: now))
  }

  @Test("faults of one push in a hundred, or of a single one, change nothing")
  func fewFaults() {
    var pool = busyPool(2)
    pool.leave(1_000, sent: 0, AnswerSummary(answered: 990, failed: 10), jitter: 0, at: now)
    pool.leave(1_000, sent: 0, AnswerSummary(failed: 1), jitter: 0, at: now)
    #expect(pool.window == 4_000)
  }

  @Test("throttling without a word how long rests a second, then longer, and down to a few pushes")
  func throttling() {
    var pool = busyPool(0)
    var rests: [Double] = []
    var at = now
    for _ in 0..<12 {
      let epoch = pool.epoch
      pool.enter(1_000)
      pool.leave(
        1_000, sent: epoch, AnswerSummary(answered: 10, isThrottled: true), jitter: 0, at: at)
      let rested = pool.restsUntil ?? at
      rests.append(rested.timeIntervalSince(at))
      at = rested
    }
    #expect(rests.prefix(7) == [1, 2, 4, 8, 16, 32, 60])
    #expect(rests.max() == 60)
    #expect(pool.window == DispatchPool.least)
    #expect(pool.pace == DispatchPool.least)
  }

  @Test("Retry-After rests the credential as long as it says")
  func retryAfter() {
    var pool = busyPool(2)
    pool.leave(
      1_000, sent: 0, AnswerSummary(answered: 999, failed: 1, pause: 90), jitter: 1, at: now)
    pool.leave(
      1_000, sent: 0, AnswerSummary(answered: 999, failed: 1, pause: 30), jitter: 1, at: now)
    #expect(pool.restsUntil == now.addingTimeInterval(90))
  }

  @Test("after a rest it grows by an eighth of a page for each window that went well")
  func growth() {
    var pool = busyPool(1)
    pool.leave(1_000, sent: 0, AnswerSummary(answered: 1, isThrottled: true), jitter: 0, at: now)
    #expect(pool.window == 500)
    var windows: [Int] = []
    for _ in 0..<3 {
      let epoch = pool.epoch
      pool.enter(pool.window)
      let window = pool.window
      pool.leave(window, sent: epoch, AnswerSummary(answered: window), jitter: 0, at: now)
      windows.append(pool.window)
    }
    #expect(windows == [625, 750, 875])
    for _ in 0..<1_000 {
      pool.enter(1_000)
      pool.leave(1_000, sent: pool.epoch, AnswerSummary(answered: 1_000), jitter: 0, at: now)
    }
    #expect(pool.window == 4_000)
    #expect(pool.pace == nil)
  }

  @Test("the window follows the connections while nothing is amiss")
  func ceiling() {
    var pool = busyPool(0)
    pool.setCeiling(9_000)
    #expect(pool.window == 9_000)
    pool.setCeiling(2_000)
    #expect(pool.window == 2_000)
  }

  @Test("what is small goes ahead of a full window, up to a page of it")
  func small() {
    let pool = busyPool(4)
    #expect(!pool.hasRoom(for: 1_000))
    #expect(pool.hasRoom(for: 100))
    #expect(!busyPool(5).hasRoom(for: 1))
  }

  @Test("a rest without a lane's fault stops every hub with the same credential, and no other")
  func sharedRest() {
    var schedule = DispatchSchedule(limits: DispatchLimits())
    let lanes = (1...3).map { LaneKey(hub: Hub.ID($0), platform: .apns) }
    for (number, lane) in lanes.enumerated() {
      schedule.add(
        number, hub: lane.hub, lane: lane, deadline: now.addingTimeInterval(1800), hasPages: true)
      schedule.lanes.assign(
        lane, to: GatewayPool(id: number < 2 ? 1 : 2, capacity: 1000))
    }
    _ = schedule.next(at: now)
    let parts = lanes.indices.map { PartKey(page: $0, index: 0) }
    for number in lanes.indices {
      let part = DispatchSchedule.Part(key: parts[number], lane: lanes[number], targets: 1000)
      schedule.pageRead(number, parts: [part], targets: 1000, isLast: false)
    }
    _ = schedule.next(at: now)
    schedule.lanes.finish(
      parts[0], of: lanes[0], AnswerSummary(answered: 999, isThrottled: true, pause: 10), at: now)
    for number in lanes.indices {
      let next = PartKey(page: 10 + number, index: 0)
      let part = DispatchSchedule.Part(key: next, lane: lanes[number], targets: 1000)
      schedule.retriesRead(number, parts: [part])
    }
    let started = schedule.next(at: now).filter { if case .deliver = $0 { true } else { false } }
    #expect(started == [.deliver(PartKey(page: 12, index: 0), isProbe: false)])
    #expect(schedule.nextWake(after: now) == now.addingTimeInterval(10))
    let rested = schedule.next(at: now.addingTimeInterval(10))
    #expect(rested.contains(.deliver(PartKey(page: 10, index: 0), isProbe: false)))
    // The second hub has a page under way, and the window is small now.
    #expect(!rested.contains(.deliver(PartKey(page: 11, index: 0), isProbe: false)))
  }

  @Test("a slowed part goes in steps that grow, and stops at the next trouble")
  func steps() async {
    let gateway = FakeGateway { push, _ in
      push.handle == "600"
        ? PushResult(outcome: .throttled, retry: .backoff, status: 429, reason: "Slow") : .success
    }
    var part = PagePart(
      lane: LaneKey(hub: 1, platform: .apns), gateway: gateway, credential: now,
      batch: PushBatch(bodies: [PushBody(bytes: [])]), registrations: [])
    for number in 0..<1_000 {
      let start = part.batch.handles.count
      part.batch.handles += "\(number)".utf8
      part.batch.requests.append(
        PushRequest(
          id: PushID(high: 0, low: UInt64(number)), handle: start..<part.batch.handles.count,
          body: 0, confirmedAt: 0))
      part.registrations.append(RegistrationID(number))
    }
    let context = DispatchContext(
      NotificationRecord(
        id: NotificationID(rawValue: "n"), hub: 1,
        request: NotificationRequest(format: .native(.apns), body: []), state: .processing,
        enqueuedAt: now),
      limits: DispatchLimits(), at: DispatchMoment(ManualClock(now: now).hubClock))
    func delivery(_ holdsLeases: @escaping @Sendable () -> Bool) -> PartDelivery {
      PartDelivery(
        part, of: context, isProbe: true, pace: 16, page: 1_000, holdsLeases: holdsLeases)
    }
    let (results, pace) = await delivery { true }.run()
    #expect(gateway.batches == [1, 16, 141, 266, 391])
    #expect(results.count == 815)
    #expect(pace == 391)
    // A node that has lost its leases meanwhile takes no further step.
    let early = await delivery { gateway.batches.count < 7 }.run()
    #expect(gateway.batches.suffix(2) == [1, 16] && early.results.count == 17)
  }
}
