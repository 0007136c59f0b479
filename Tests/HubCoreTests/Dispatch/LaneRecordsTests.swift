import Foundation
import NotificationHubs
import Testing

@testable import HubCore

/// What is remembered of a lane; the rule for dead handles is `DeadHandleGuardTests`.
@Suite("What push services have said, lane by lane")
struct LaneRecordsTests {
  private static let now = Date(timeIntervalSince1970: 1_893_456_000)
  private static let lane = LaneKey(hub: 1, platform: .apns)

  @Test("another credential ends a refusal, the same one does not")
  func credential() {
    var records = LaneRecords(deadHandleShare: 0.3)
    let isFirst = records.use(Self.now, for: Self.lane)
    records.refuse(Self.lane, PushResult(outcome: .invalidToken, reason: "no"))
    let isSame = !records.use(Self.now, for: Self.lane)
    #expect(isFirst && isSame)
    #expect(records.refusal(of: Self.lane)?.reason == "no" && records.hasRefusals)
    #expect(records.reason(of: Self.lane) == "no")
    let isOther = records.use(Self.now + 1, for: Self.lane)
    #expect(isOther && !records.hasRefusals)
    #expect(!records.isCurrent(Self.now, of: Self.lane))
    let none = [records.use(nil, for: Self.lane), records.use(nil, for: Self.lane)]
    #expect(none == [true, false])
  }

  @Test("an outage is told from its second failure on, every ten minutes, and then its end")
  func outage() {
    var records = LaneRecords(deadHandleShare: 0.3)
    func told(_ failures: Int, _ seconds: Double) -> Bool {
      records.noteOutage(
        Self.lane, failures: failures, reason: "\(failures)", at: Self.now + seconds)
    }
    let first = [told(1, 0), records.noteRecovery(Self.lane), told(1, 10)]
    #expect(first == [false, false, false])
    #expect(records.isDown(Self.lane) && records.reason(of: Self.lane) == "1")
    let then = [told(2, 11), told(3, 20), told(9, 610), told(10, 611)]
    #expect(then == [true, false, false, true])
    #expect(records.reason(of: Self.lane) == "10")
    let isBack = records.noteRecovery(Self.lane)
    #expect(isBack && !records.isDown(Self.lane))
  }

  @Test("what another node says counts for the same credential, unless a push has just succeeded")
  func believed() {
    var records = LaneRecords(deadHandleShare: 0.3)
    func word(_ kind: LaneWord.Kind, _ credential: Date = Self.now) -> LaneWord {
      LaneWord(Self.lane, kind, credential: credential, time: Self.now + 60, count: 20, judged: 30)
    }
    // Nothing has been sent yet: whose credential it is shows later.
    let early = records.believes(word(.refused), at: Self.now)
    let isKnown = !records.use(Self.now, for: Self.lane)
    #expect(early && isKnown)
    let other = records.believes(word(.refused, Self.now - 9), at: Self.now)
    #expect(!other)
    records.noteSuccess(Self.lane, at: Self.now)
    let doubted = records.believes(word(.refused), at: Self.now + 59)
    let pause = records.believes(word(.pause), at: Self.now + 59)
    let late = records.believes(word(.refused), at: Self.now + 60)
    #expect(!doubted && pause && late)
    let new = records.take(alarms: [word(.alarm)])
    #expect(new == [Self.lane: Self.now + 60])
    #expect(records.alarm(of: Self.lane)?.condemned == 20 && records.ownAlarms.isEmpty)
    let again = records.take(alarms: [word(.alarm)])
    #expect(again.isEmpty)
    _ = records.take(alarms: [])
    #expect(records.alarm(of: Self.lane) == nil)
  }

  @Test("what another node says of a credential counts once the lane has that credential")
  func heardEarly() {
    var records = LaneRecords(deadHandleShare: 0.3)
    let new = Self.now + 9
    let words = [LaneWord.Kind.pause, .refused].map {
      LaneWord(Self.lane, $0, credential: new, time: Self.now + 60)
    }
    _ = records.use(Self.now, for: Self.lane)
    records.noteSuccess(Self.lane, at: Self.now)
    let early = records.hear(words, at: Self.now + 1)
    #expect(early.isEmpty)
    _ = records.use(new, for: Self.lane)
    let late = records.heard(of: Self.lane, at: Self.now + 2)
    #expect(late == words, "the push that succeeded was sent with the other credential")
    let other = records.heard(of: LaneKey(hub: 2, platform: .apns), at: Self.now + 2)
    #expect(other.isEmpty)
    _ = records.hear([], at: Self.now + 3)
    let after = records.heard(of: Self.lane, at: Self.now + 3)
    #expect(after.isEmpty, "it is not said any more")
  }

  @Test("the moment that a word names is the same however often it is told")
  func wholeSeconds() {
    func time(_ kind: LaneWord.Kind, _ seconds: Double) -> Double {
      LaneWord(Self.lane, kind, credential: Self.now, time: Self.now + seconds).time
        .timeIntervalSince(Self.now)
    }
    #expect([9.4, 9.7, 10, 10.000_001, 9.999_999].allSatisfy { time(.pause, $0) == 10 })
    #expect([9.4, 9.9].map { time(.alarm, $0) } == [9, 9])
  }
}
