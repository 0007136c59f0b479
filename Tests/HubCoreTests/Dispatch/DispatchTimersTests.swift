import Foundation
import Testing

@testable import HubCore

@Suite("When the dispatcher looks for schedules, credentials and work")
struct DispatchTimersTests {
  private static let now = Date(timeIntervalSince1970: 1_893_456_000)

  @Test("the earliest schedule counts, also one that comes while the store is asked")
  func release() {
    var timer = ReleaseTimer()
    timer.add(nil)
    #expect(timer.due == nil)
    timer.add(Self.now + 5)
    timer.add(Self.now + 9)
    let starts = [4.0, 5, 5].map { timer.start(at: Self.now + $0) }
    #expect(starts == [false, true, false], "one question at a time")
    timer.add(Self.now + 7)
    timer.finish(next: Self.now + 9)
    #expect(timer.due == Self.now + 7)
    let isNext = timer.start(at: Self.now + 7)
    timer.finish(next: Self.now + 9)
    #expect(isNext && timer.due == Self.now + 9)
  }

  @Test("a look a second, one at a time, while a credential makes somebody wait")
  func credential() {
    var timer = CredentialTimer()
    var looks = [0.0, 1, 2].map { timer.start(isNeeded: true, at: Self.now + $0) }
    #expect(looks == [false, true, false])
    timer.finish()
    looks = [2.0, 3].map { timer.start(isNeeded: true, at: Self.now + $0) }
    #expect(looks == [true, false])
    timer.finish()
    let isNeedless = timer.start(isNeeded: false, at: Self.now + 9)
    #expect(!isNeedless && timer.due == nil)
  }

  @Test(
    "shared work is looked for after half a second to a second, and at once when there may be more")
  func claim() {
    var timer = PollTimer(period: PollTimer.claimPeriod)
    var looks = [timer.start(at: Self.now)]
    timer.want(at: Self.now)
    looks += [timer.start(at: Self.now), timer.start(at: Self.now)]
    #expect(looks == [false, true, false], "nobody has asked yet; then one look at a time")
    timer.finish(hasMore: false, jitter: 0, at: Self.now)
    #expect(timer.due == Self.now + 0.5)
    looks = [0.4, 0.5].map { timer.start(at: Self.now + $0) }
    #expect(looks == [false, true])
    timer.finish(hasMore: true, jitter: 1, at: Self.now + 1)
    #expect(timer.due == Self.now + 1)
    let isNext = timer.start(at: Self.now + 1)
    timer.want(at: Self.now + 1)
    timer.finish(hasMore: false, jitter: 1, at: Self.now + 2)
    #expect(isNext && timer.due == Self.now + 2, "the answer may lack what came meanwhile")
    let isLast = timer.start(at: Self.now + 2)
    timer.finish(hasMore: false, jitter: 1, at: Self.now + 2)
    #expect(isLast && timer.due == Self.now + 3)
  }

  @Test("a clock that goes back by an hour puts no look off")
  func goneBack() {
    var claims = PollTimer(period: PollTimer.claimPeriod)
    claims.want(at: Self.now)
    _ = claims.start(at: Self.now)
    claims.finish(hasMore: false, jitter: 0.9, at: Self.now)
    var news = PollTimer(period: PollTimer.exchangePeriod)
    news.want(at: Self.now)
    _ = news.start(at: Self.now)
    news.finish(at: Self.now)
    var credentials = CredentialTimer()
    _ = credentials.start(isNeeded: true, at: Self.now)
    let before = Self.now - 3600
    let looks = [
      claims.start(at: before), news.start(at: before),
      credentials.start(isNeeded: true, at: before),
    ]
    #expect(looks == [true, true, true])
  }
}
