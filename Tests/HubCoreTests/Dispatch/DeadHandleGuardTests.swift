import Foundation
import Testing

@testable import HubCore

@Suite("Dead handle guard")
struct DeadHandleGuardTests {
  private let start = Date(timeIntervalSince1970: 1_893_456_000)

  @Test("fifty dead handles in a row go, the next one raises the alarm, once")
  func alarmAfterFifty() {
    var subject = DeadHandleGuard()
    let first = subject.admit(dead: 30, hadSuccess: false, sinceSuccess: 30, at: start)
    #expect(first == (30, false))
    let second = subject.admit(dead: 30, hadSuccess: false, sinceSuccess: 30, at: start)
    #expect(second == (20, true))
    let third = subject.admit(dead: 5, hadSuccess: false, sinceSuccess: 5, at: start)
    #expect(third == (0, false))
    #expect(subject.isAlarmed)
  }

  @Test("a success ends the alarm, and is trusted for ten minutes")
  func successEndsTheAlarm() {
    var subject = DeadHandleGuard()
    _ = subject.admit(dead: 60, hadSuccess: false, sinceSuccess: 60, at: start)
    #expect(subject.admit(dead: 900, hadSuccess: true, sinceSuccess: 40, at: start) == (900, false))
    let soon = start.addingTimeInterval(599)
    #expect(
      subject.admit(dead: 900, hadSuccess: false, sinceSuccess: 900, at: soon) == (900, false))
    let later = start.addingTimeInterval(601)
    #expect(subject.admit(dead: 1, hadSuccess: false, sinceSuccess: 1, at: later) == (0, true))
  }

  @Test("a batch with nothing dead and no success changes nothing")
  func emptyBatch() {
    var subject = DeadHandleGuard()
    _ = subject.admit(dead: 50, hadSuccess: false, sinceSuccess: 50, at: start)
    #expect(subject.admit(dead: 0, hadSuccess: false, sinceSuccess: 0, at: start) == (0, false))
    #expect(!subject.isAlarmed)
  }
}
