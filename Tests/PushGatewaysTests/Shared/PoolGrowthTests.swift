import Foundation
import Testing

@testable import PushGateways

@Suite("Growth of a pool of connections")
struct PoolGrowthTests {
  private let start = Date(timeIntervalSince1970: 1_700_000_000)

  /// A pool that is asked every tenth of a second and has so many replies a second.
  private struct World {
    var growth = PoolGrowth()
    var connections = 1
    var answered = 0.0
    var seconds = 0.0
    /// When it grew.
    var grown: [Double] = []

    mutating func run(_ seconds: Double, isFull: Bool = true, rate: (Int) -> Double) {
      let end = self.seconds + seconds
      while self.seconds < end {
        self.seconds += 0.1
        answered += rate(connections) / 10
        let load = PoolGrowth.Load(
          isFull: isFull, connections: connections, capacity: connections * 1000,
          answered: Int(answered))
        let now = Date(timeIntervalSince1970: 1_700_000_000 + self.seconds)
        guard connections < 8, growth.isDue(load, after: 0.25, at: now) else { continue }
        connections *= 2
        grown.append(self.seconds)
      }
    }
  }

  @Test("where time on the way is what holds back it grows to the end", arguments: [0.05, 0.2])
  func latency(roundTrip: Double) {
    var world = World()
    world.run(10) { Double($0) * 1000 / roundTrip }
    #expect(world.connections == 8)
  }

  @Test("one more that brings nothing is the last for a while, longer each time")
  func busyMachine() throws {
    var world = World()
    world.run(100) { _ in 50_000 }
    #expect(world.connections == 8)
    try #require(world.grown.count == 3)
    #expect(world.grown[0] < 1)
    #expect((30...33).contains(world.grown[1] - world.grown[0]))
    #expect((60...63).contains(world.grown[2] - world.grown[1]))
  }

  @Test("connections that are not full, or get no answers, are enough")
  func enough() {
    var world = World()
    world.run(60, isFull: false) { _ in 20_000 }
    #expect(world.connections == 1)
    world.run(60) { _ in 0 }
    #expect(world.connections == 1)
  }

  @Test("a connection that went takes its replies along, and the count starts again")
  func lostCount() {
    var growth = PoolGrowth()
    func load(_ answered: Int) -> PoolGrowth.Load {
      .init(isFull: true, connections: 1, capacity: 1000, answered: answered)
    }
    let answers = [
      growth.isDue(load(100_000), after: 1, at: start),
      growth.isDue(load(10), after: 1, at: start + 2),
      growth.isDue(load(3_000), after: 1, at: start + 4),
      growth.isDue(load(5_000), after: 1, at: start + 5),
    ]
    #expect(answers == [false, false, false, true])
  }
}
