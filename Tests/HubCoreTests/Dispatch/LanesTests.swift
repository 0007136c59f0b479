import Foundation
import NotificationHubs
import Testing

@testable import HubCore

/// A lane's credential, outages, and the announcements of other nodes; the rule for dead handles is
/// `DeadHandleGuardTests`.
@Suite("What push services have said, lane by lane")
struct LanesTests {
  private static let now = Date(timeIntervalSince1970: 1_893_456_000)
  private static let lane = LaneKey(hub: 1, platform: .apns)

  private var lane: Lane { Lane(page: 1_000, weight: 1, deadHandleShare: 0.3) }

  private func finding(
    _ kind: LaneFinding.Kind, _ credential: Date = Self.now
  ) -> LaneFinding {
    LaneFinding(Self.lane, kind, credential: credential, time: Self.now + 60, count: 20, judged: 30)
  }

  @Test("another credential ends a refusal, the same one does not")
  func credential() {
    var lanes = Lanes(limits: DispatchLimits())
    lanes.assign(Self.lane, to: nil)
    lanes.use(.distantPast, for: Self.lane, at: Self.now)
    lanes.settle(
      Self.lane, AnswerSummary(), refusal: PushResult(outcome: .invalidToken, reason: "no"),
      at: Self.now)
    lanes.use(.distantPast, for: Self.lane, at: Self.now)
    #expect(lanes[Self.lane]?.refusal?.answer?.reason == "no")
    #expect(lanes[Self.lane]?.reason == "no" && lanes[Self.lane]?.isResting(at: Self.now) == true)
    lanes.use(Self.now + 1, for: Self.lane, at: Self.now)
    #expect(lanes[Self.lane]?.refusal == nil && lanes[Self.lane]?.isResting(at: Self.now) == false)
    #expect(lanes[Self.lane]?.credential == Self.now + 1)
    var single = lane
    let changes = [Self.now, Self.now, nil, nil].map { single.setCredential($0) }
    #expect(changes == [true, false, true, false])
  }

  @Test("an outage is told from its second failure on, every ten minutes, and then its end")
  func outage() {
    var lane = lane
    func isLogged(_ reason: Int, _ seconds: Double) -> Bool {
      // Whether it rests from the last failure is another matter.
      _ = lane.fail(.unreachable, at: Self.now + seconds)
      return lane.noteOutage(reason: "\(reason)", at: Self.now + seconds)
    }
    let first = isLogged(1, 0)
    #expect(!first && lane.isServiceDown && lane.reason == "1")
    let wasLogged = lane.endOutage()
    #expect(!wasLogged && !lane.isServiceDown)
    lane.recover()
    let told = [isLogged(1, 10), isLogged(2, 11), isLogged(3, 20), isLogged(9, 610)]
    #expect(told == [false, true, false, false])
    let again = isLogged(10, 611)
    #expect(again && lane.reason == "10")
    let isBack = lane.endOutage()
    #expect(isBack && !lane.isServiceDown)
  }

  @Test("what another node says counts for the same credential, unless a push has just succeeded")
  func believed() {
    var lanes = Lanes(limits: DispatchLimits())
    func isRefused(_ credential: Date = Self.now, after seconds: Double = 0) -> Bool {
      _ = lanes.update([finding(.refused, credential)], lifted: [], at: Self.now + seconds)
      return lanes[Self.lane]?.refusal != nil
    }
    // Nothing has been sent yet: whose credential it is shows later.
    let early = isRefused()
    #expect(early && lanes[Self.lane]?.credential == Self.now)
    let other = isRefused(Self.now - 9)
    #expect(!other)
    lanes.settle(
      Self.lane, AnswerSummary(answered: 1), credential: Self.now, isShared: true, at: Self.now)
    let doubted = isRefused(after: 59)
    _ = lanes.update([finding(.pause)], lifted: [], at: Self.now + 59)
    let pause = lanes.restsUntil(Self.lane, at: Self.now + 59)
    let late = isRefused(after: 60)
    #expect(!doubted && pause == Self.now + 60 && late)
  }

  @Test("a refusal of this node's own does not end with a node that had one, too")
  func ownRefusal() {
    for isOwn in [true, false] {
      var lanes = Lanes(limits: DispatchLimits())
      lanes.assign(Self.lane, to: nil)
      lanes.use(Self.now, for: Self.lane, at: Self.now)
      _ = lanes.update([finding(.refused)], lifted: [], at: Self.now)
      if isOwn {
        lanes.settle(
          Self.lane, AnswerSummary(), refusal: PushResult(outcome: .invalidToken, reason: "no"),
          at: Self.now + 60)
      }
      _ = lanes.update([], lifted: [], at: Self.now + 61)
      #expect((lanes[Self.lane]?.isResting(at: Self.now + 61) == true) == isOwn)
      _ = lanes.update([], lifted: [Self.lane], at: Self.now + 61)
      #expect(lanes[Self.lane]?.isResting(at: Self.now + 61) == false)
    }
  }

  @Test("another node's alarm is new once, and ends when it is not told any more")
  func alarms() {
    var lanes = Lanes(limits: DispatchLimits())
    let new = lanes.update([finding(.alarm)], lifted: [], at: Self.now)
    #expect(new.map(\.lane) == [Self.lane] && new.map(\.since) == [Self.now + 60])
    #expect(lanes[Self.lane]?.alarm?.condemned == 20 && lanes[Self.lane]?.ownAlarm == nil)
    let again = lanes.update([finding(.alarm)], lifted: [], at: Self.now)
    #expect(again.isEmpty)
    _ = lanes.update([], lifted: [], at: Self.now)
    #expect(lanes[Self.lane]?.alarm == nil)
  }

  @Test("what another node says of a credential counts once the lane has that credential")
  func heardEarly() {
    var lanes = Lanes(limits: DispatchLimits())
    let new = Self.now + 9
    lanes.settle(
      Self.lane, AnswerSummary(answered: 1), credential: Self.now, isShared: true, at: Self.now)
    _ = lanes.update([finding(.pause, new), finding(.refused, new)], lifted: [], at: Self.now + 1)
    #expect(lanes[Self.lane]?.refusal == nil)
    #expect(lanes.restsUntil(Self.lane, at: Self.now + 1) == nil)
    lanes.use(new, for: Self.lane, at: Self.now + 2)
    #expect(
      lanes[Self.lane]?.refusal != nil, "the push that succeeded was sent with the other credential"
    )
    #expect(lanes.restsUntil(Self.lane, at: Self.now + 2) == Self.now + 60)
    #expect(lanes[LaneKey(hub: 2, platform: .apns)] == nil)
    _ = lanes.update([], lifted: [], at: Self.now + 3)
    lanes.use(Self.now, for: Self.lane, at: Self.now + 3)
    lanes.use(new, for: Self.lane, at: Self.now + 3)
    #expect(lanes[Self.lane]?.refusal == nil, "it is not said any more")
  }

  @Test("the moment that a word names is the same however often it is told")
  func wholeSeconds() {
    func time(_ kind: LaneFinding.Kind, _ seconds: Double) -> Double {
      LaneFinding(Self.lane, kind, credential: Self.now, time: Self.now + seconds).time
        .timeIntervalSince(Self.now)
    }
    #expect([9.4, 9.7, 10, 10.000_001, 9.999_999].allSatisfy { time(.pause, $0) == 10 })
    #expect([9.4, 9.9].map { time(.alarm, $0) } == [9, 9])
  }
}
