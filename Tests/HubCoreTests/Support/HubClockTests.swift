import Foundation
import HubCore
import HubTesting
import Testing

@Suite("Clock of the hub")
struct HubClockTests {
  @Test(
    "a token's time is right with any one clock wrong: the database's or the machine's, set or put right",
    arguments: [
      (set: 3_600.0, before: 0.0, machine: 0.0), (-3_600, 0, 0), (0, 0, 7_200), (0, 0, -7_200),
      (-3_600, 3_600, 0), (3_600, -3_600, 0),
    ])
  func agreement(set: Double, before: Double, machine: Double) {
    let right = Date(timeIntervalSince1970: 1_893_456_000)
    // As a node finds it when it starts, and as somebody sets it then.
    let store = ManualClock(now: right.addingTimeInterval(before))
    store.step(by: set)
    let own = ManualClock(now: right.addingTimeInterval(machine))
    #expect(store.hubClock.agreeing(with: own.hubClock).now() == right)
  }
}
