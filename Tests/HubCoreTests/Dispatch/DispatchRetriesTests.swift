import Foundation
import HubTesting
import NotificationHubs
import Testing

@testable import HubCore

/// Which retry rows are under way; which are read next is `RetryFairnessTests`.
@Suite("Retries under way")
struct DispatchRetriesTests {
  private static let now = Date(timeIntervalSince1970: 1_893_456_000)
  private static let lane = LaneKey(hub: 1, platform: .apns)
  private static let id = NotificationID(rawValue: "n")
  private var retries = DispatchRetries(limits: DispatchLimits())

  private func rows(_ gone: [RegistrationID]) -> DueRetries {
    DueRetries(
      notification: Self.id, hub: 1, page: TargetPage(),
      attempts: Dictionary(uniqueKeysWithValues: gone.map { ($0, 3) }), gone: gone)
  }

  /// Outside of the macros, which cannot call what changes a value.
  private func required<Value>(_ value: Value?) throws -> Value { try #require(value) }

  private mutating func start(
    _ gone: [RegistrationID], of notification: Int
  ) -> [RegistrationID: Int]? {
    retries.start(rows(gone), of: notification, Self.lane)?.1.attempts
  }

  private mutating func turn(at now: Date = now) -> RetryRotation.Turn? {
    retries.next(at: now) { _ in 100 }
  }

  @Test("a row that is under way is left out when the store offers it again")
  mutating func once() {
    let first = start([1, 2], of: 7)
    #expect(first == [1: 3, 2: 3])
    let second = start([1, 2, 3], of: 7)
    #expect(second == [3: 3])
    let third = start([1, 2, 3], of: 7)
    #expect(third == nil)
    let other = start([1], of: 8)
    #expect(other == [1: 3], "another notification's rows are others")
    retries.recorded([1, 2, 3], of: 7, Self.lane)
    #expect(!retries.isUnderWay(7) && retries.isUnderWay(8))
    let again = start([1], of: 7)
    #expect(again == [1: 3])
  }

  @Test("what is recorded while rows are read counts as under way until they have come")
  mutating func recordedMeanwhile() throws {
    _ = retries.start(rows([1]), of: 7, Self.lane)
    retries.add(Self.lane, due: Self.now)
    let turn = try required(self.turn())
    // Those under way on top of what the lane takes.
    #expect(turn.asked == 101)
    retries.recorded([1], of: 7, Self.lane)
    let again = start([1], of: 7)
    #expect(again == nil)
    retries.finish(turn, found: 1, started: 0, next: nil, at: Self.now)
    #expect(!retries.isUnderWay(7))
  }

  @Test("rows that were read before a part was taken up again are not sent a second time")
  mutating func addedMeanwhile() throws {
    retries.add(Self.lane, due: Self.now)
    let turn = try required(self.turn())
    // Its rows are read, settled and recorded; its lease is lost and claimed again: job 8.
    retries.remove(7)
    retries.add(8, end: Self.now + 60)
    let stale = start([1], of: 8)
    #expect(stale == nil)
    retries.finish(turn, found: 1, started: 0, next: Self.now, at: Self.now)
    _ = try required(self.turn(at: Self.now + 1))
    let current = start([2], of: 8)
    #expect(current == [2: 3], "the next read is of its own time")
  }

  @Test("one read at a time; the next look is at the next row, or a second later")
  mutating func looks() throws {
    retries.add(Self.lane, due: Self.now)
    let first = try required(turn())
    retries.add(Self.lane, due: Self.now)
    var none = turn()
    #expect(none == nil)
    retries.finish(first, found: 1, started: 0, next: Self.now, at: Self.now)
    // It was announced meanwhile.
    let second = try required(turn())
    retries.finish(second, found: 1, started: 0, next: Self.now, at: Self.now)
    none = turn()
    #expect(none == nil)
    #expect(retries.nextWake(after: Self.now) { _ in 100 } == Self.now + 1)
    let third = try required(turn(at: Self.now + 1))
    retries.finish(third, found: third.asked, started: 100, next: Self.now, at: Self.now + 1)
    let fourth = turn(at: Self.now + 1)
    #expect(fourth != nil)
  }

  @Test("a lane whose rows cannot be read has its next turn later and later, and no other waits")
  mutating func unreadable() throws {
    let other = LaneKey(hub: 2, platform: .apns)
    retries.add(Self.lane, due: Self.now)
    var now = Self.now
    for pause in [1.0, 2, 4, 8, 16, 30, 30] {
      let turn = try required(self.turn(at: now))
      #expect(turn.lane == Self.lane && turn.pause == pause)
      retries.fail(turn, at: now)
      // What is announced meanwhile does not shorten it.
      retries.add(Self.lane, due: now)
      retries.add(other, due: now)
      let next = try required(self.turn(at: now + 0.5))
      #expect(next.lane == other)
      retries.finish(next, found: 0, started: 0, next: nil, at: now)
      now += pause
      #expect(retries.nextWake(after: now - 0.1, most: { _ in 100 }) == now)
    }
    let turn = try required(self.turn(at: now))
    retries.finish(turn, found: 1, started: 1, next: now, at: now)
    #expect(self.turn(at: now + 1)?.pause == 1, "it can be read again")
  }

  @Test("retries of notifications whose time is over wait neither for those that cannot be read")
  mutating func unreadableEnds() throws {
    var jobs = DispatchJobs()
    let clock = ManualClock(now: Self.now)
    for hub in 1...3 as ClosedRange<Hub.ID> {
      let record = NotificationRecord(
        id: NotificationID(rawValue: "n-\(hub)"), hub: min(hub, 2),
        request: NotificationRequest(format: .native(.apns), body: []), state: .processing,
        enqueuedAt: Self.now)
      let context = DispatchContext(
        record, limits: DispatchLimits(), at: DispatchMoment(clock.hubClock))
      let number = try required(jobs.add(record, context, retryRows: 1, at: Self.now))
      retries.add(number, end: context.end)
    }
    var now = Self.now + DispatchLimits().window
    // Two of the second hub, which cannot be read, and one of the first.
    var seen: [Int] = []
    for pause in [1.0, 2, 4] {
      for _ in 0..<2 {
        guard let (turn, _, _, next) = retries.nextEnded(at: now, of: jobs) else { continue }
        seen.append(turn.notification)
        if turn.lane.hub == 2 {
          #expect(next == pause)
          retries.fail(turn, at: now)
        } else {
          retries.finish(turn, started: 0)
        }
      }
      #expect(retries.nextEnded(at: now, of: jobs) == nil)
      now += pause
      #expect(retries.nextWake(after: now - 0.1, most: { _ in 100 }) == now)
    }
    #expect(Set(seen) == [0, 1, 2] && seen.count == 4, "each has its turn: \(seen)")
  }

  @Test("a notification that goes, and rows that are released, free what they held")
  mutating func freed() {
    _ = retries.start(rows([1, 2]), of: 7, Self.lane)
    _ = retries.start(rows([3]), of: 8, Self.lane)
    retries.remove(7)
    #expect(!retries.isUnderWay(7))
    retries.recorded([1, 2], of: 7, Self.lane)
    retries.release([3], of: 8, Self.lane, at: Self.now)
    // Nothing is under way: no more rows are asked for than the lane takes, and it is due.
    let turn = self.turn()
    #expect(turn?.asked == 100)
  }
}
