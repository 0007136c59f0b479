import Foundation
import Testing

@testable import HubCore

@Suite("Dead handle guard")
struct DeadHandleGuardTests {
  private static let start = Date(timeIntervalSince1970: 1_893_456_000)
  private static let credential = start.addingTimeInterval(-86_400)

  /// A lane's guard with a clock of its own.
  private struct Lane {
    var subject = DeadHandleGuard(credential: DeadHandleGuardTests.credential)
    var now = DeadHandleGuardTests.start
    var used = DeadHandleGuardTests.credential

    mutating func answers(_ count: Int, dead: Int) -> DeadHandleGuard.Verdict {
      subject.judge(
        count, condemned: dead, hadSuccess: dead < count, credential: used, at: now)
    }
  }

  @Test("a wave right after any number of successes raises the alarm, once")
  func waveAfterSuccess() {
    var lane = Lane()
    for _ in 0..<20 { #expect(lane.answers(1000, dead: 0) == .remove) }
    #expect(lane.answers(1000, dead: 1000) == .alarm)
    #expect(lane.answers(1000, dead: 1000) == .spare)
    #expect(lane.subject.isAlarmed)
  }

  @Test("so does one that comes push by push")
  func slowWave() {
    var lane = Lane()
    for _ in 0..<5000 { _ = lane.answers(1, dead: 0) }
    var verdicts: [DeadHandleGuard.Verdict] = []
    for _ in 0..<1000 {
      lane.now += 1
      verdicts.append(lane.answers(1, dead: 1))
    }
    #expect(verdicts.count { $0 == .alarm } == 1)
    #expect(verdicts.count { $0 == .remove } < 500)
    // All that went is within what comes back.
    #expect(lane.subject.doubtsSince <= Self.start)
  }

  @Test("the daily drip goes", arguments: [(2, 1), (3, 2), (12, 10), (1000, 250), (20_000, 5_000)])
  func drip(answers: Int, dead: Int) {
    var lane = Lane()
    _ = lane.answers(1, dead: 0)
    #expect(lane.answers(answers, dead: dead) == .remove)
  }

  @Test("a wave in a small hub stays", arguments: [(60, 50), (20, 11), (30, 30)])
  func smallWave(answers: Int, dead: Int) {
    var lane = Lane()
    _ = lane.answers(1, dead: 0)
    #expect(lane.answers(answers, dead: dead) == .alarm)
  }

  @Test("nothing goes before the first success with a credential, nor with the next one")
  func trust() {
    var lane = Lane()
    #expect(lane.answers(1, dead: 1) == .spare)
    #expect(!lane.subject.isAlarmed)
    #expect(lane.answers(2, dead: 1) == .remove)
    #expect(lane.answers(1, dead: 1) == .remove)
    lane.used += 3600
    #expect(lane.answers(5, dead: 5) == .spare)
    #expect(lane.answers(40, dead: 40) == .alarm)
  }

  @Test("another credential ends the alarm")
  func replaced() {
    var lane = Lane()
    #expect(lane.answers(1000, dead: 900) == .alarm)
    lane.used += 1
    #expect(lane.answers(1000, dead: 10) == .remove)
    #expect(!lane.subject.isAlarmed)
  }

  @Test("the alarm outlasts the window, and ends when the handles are known again")
  func alarmEnds() {
    var lane = Lane()
    #expect(lane.answers(60, dead: 50) == .alarm)
    lane.now += 2 * DeadHandleGuard.span
    #expect(lane.answers(60, dead: 0) == .spare)
    #expect(lane.answers(60, dead: 1) == .spare)
    for _ in 0..<3 { _ = lane.answers(60, dead: 1) }
    #expect(lane.answers(60, dead: 1) == .remove)
    #expect(!lane.subject.isAlarmed)
  }

  @Test("dead handles of other hours are no wave")
  func hours() {
    var lane = Lane()
    for _ in 0..<40 {
      _ = lane.answers(1, dead: 0)
      #expect(lane.answers(1, dead: 1) == .remove)
      lane.now += 1800
    }
  }

  @Test("answers that say nothing about a handle change nothing")
  func silence() {
    var lane = Lane()
    for _ in 0..<100 { _ = lane.answers(0, dead: 0) }
    #expect(lane.answers(5, dead: 5) == .spare)
    #expect(lane.subject.judged == 5)
  }
}
