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
}
