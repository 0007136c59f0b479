import Foundation
import HubCore
import HubTesting
import Testing

@testable import PushGateways

@Suite("The pace of a sender", .timeLimit(.minutes(5)))
struct SendPaceTests {
  private let clock = ManualClock()

  private func pace(of nodes: NodeCount = NodeCount()) -> SendPace {
    SendPace(.init(full: 100, start: 10, ramp: .seconds(60)), of: nodes, clock: clock.hubClock)
  }

  /// How many seconds a batch waits that asks now.
  private func wait(_ pace: SendPace, _ count: Int) async -> Double {
    let before = clock.now
    let task = Task { await pace.admit(count) }
    await clock.sleepers(1)
    guard let deadline = clock.nextDeadline else { return -1 }
    clock.set(deadline)
    await task.value
    return deadline.timeIntervalSince(before)
  }

  @Test("a few go at once; more wait at a rate that grows to its height within the ramp")
  func ramp() async {
    let pace = pace()
    await pace.admit(10)
    #expect(abs(await wait(pace, 10) - 1) < 0.01)
    clock.advance(by: .seconds(60))
    await pace.admit(10)
    #expect(abs(await wait(pace, 100) - 1) < 0.01)
  }

  @Test("nodes that send for the same project have equal shares, as many as there are now")
  func nodes() async {
    let nodes = NodeCount()
    nodes.set(5)
    let pace = pace(of: nodes)
    await pace.admit(2)
    #expect(abs(await wait(pace, 10) - 5) < 0.01)
    nodes.set(1)
    await pace.admit(10)
  }

  @Test("after a rest it begins again")
  func rest() async {
    let pace = pace()
    clock.advance(by: .seconds(300))
    await pace.admit(10)
    #expect(abs(await wait(pace, 10) - 1) < 0.01)
  }
}
