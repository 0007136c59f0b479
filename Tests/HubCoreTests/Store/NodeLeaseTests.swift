import Foundation
import NotificationHubs
import Testing

@testable import HubCore

@Suite("Lease of a node")
struct NodeLeaseTests {
  private static let start = Date(timeIntervalSince1970: 1_893_456_000)
  private static let hour = 3_600.0
  private var lease = NodeLease(lease: 10)

  /// A heartbeat so many seconds after the start of this machine's clock.
  /// - Parameters:
  ///   - ahead: How far the database's clock is ahead of this machine's.
  ///   - steps: By how much the database says that it was set.
  ///   - beats: Of the other node.
  ///   - other: Its number.
  ///   - heartbeat: Its last one, in seconds by the database's clock.
  private mutating func beat(
    at seconds: Double, as id: Int64 = 1, ahead: Double = 0, steps: Double = 0,
    beats: Int64? = nil, taking: Double = 0, other: Int64 = 2, heartbeat: Double = 0
  ) -> (dead: [NodeLease.Peer], step: Int64?) {
    let local = Self.start.addingTimeInterval(seconds)
    let reading = NodeLease.Reading(
      local: local, uncertainty: taking, time: local.addingTimeInterval(ahead),
      steps: Int64(steps * 1000))
    let others = beats.map { [peer($0, other, heartbeat: heartbeat)] } ?? []
    let step = lease.step(in: reading, as: id)
    return (lease.heard(as: id, asked: local, reading, beside: others), step)
  }

  private func peer(_ beats: Int64, _ id: Int64 = 2, heartbeat: Double = 0) -> NodeLease.Peer {
    .init(id: id, beats: beats, heartbeat: Self.start + heartbeat, lease: 10)
  }

  private func now(at seconds: Double) -> Double? {
    lease.now(at: Self.start.addingTimeInterval(seconds)).map {
      $0.timeIntervalSince(Self.start) - seconds
    }
  }

  private func steady(at seconds: Double) -> Double? {
    lease.steady(at: Self.start.addingTimeInterval(seconds)).map {
      $0.timeIntervalSince(Self.start) - seconds
    }
  }

  @Test(
    "a lease is held from the first heartbeat on, for its length after the last one was asked for")
  mutating func own() {
    #expect(!lease.isHeld(at: Self.start) && lease.id == 0)
    _ = beat(at: 0)
    #expect(lease.id == 1)
    #expect(lease.isHeld(at: Self.start + 9.9))
    #expect(!lease.isHeld(at: Self.start + 10))
    _ = beat(at: 15)
    #expect(lease.isHeld(at: Self.start + 24))
    lease.end()
    #expect(!lease.isHeld(at: Self.start + 16))
  }

  @Test("a node is dead once its heartbeats have not risen for its lease, and not before")
  mutating func silence() {
    _ = beat(at: 0, beats: 7)
    for seconds in stride(from: 2.0, through: 8, by: 2) {
      #expect(beat(at: seconds, beats: 7).dead.isEmpty, "\(seconds)")
    }
    #expect(beat(at: 10, beats: 7).dead == [peer(7)])
    #expect(beat(at: 12, beats: 8).dead.isEmpty, "it was only slow")
  }

  @Test(
    "a step of the database's clock ends no lease and kills nobody",
    arguments: [-hour, -60, 60, hour])
  mutating func stepsAndLeases(step: Double) {
    for index in 0..<20 {
      let isStepped = index >= 5
      let findings = beat(
        at: Double(index) * 2, ahead: isStepped ? step : 0, steps: index > 5 ? step : 0,
        beats: Int64(index))
      #expect(findings.dead.isEmpty)
      #expect(lease.isHeld(at: Self.start.addingTimeInterval(Double(index) * 2 + 9)))
    }
    // And who is silent beside it is missed as soon as ever.
    var deaths: [Double] = []
    for index in 20..<30 {
      let back = index >= 22 ? 0 : step
      if !beat(at: Double(index) * 2, ahead: back, steps: back, beats: 19).dead.isEmpty {
        deaths.append(Double(index) * 2)
      }
    }
    #expect(deaths.first == 48, "ten seconds after its last heartbeat was seen")
  }

  @Test("after an outage each node has half a lease to tell that it lives")
  mutating func outage() {
    _ = beat(at: 0, beats: 7)
    #expect(beat(at: 60, beats: 7).dead.isEmpty)
    #expect(beat(at: 62, beats: 7).dead.isEmpty)
    #expect(beat(at: 65, beats: 7).dead.count == 1)
  }

  @Test(
    "a step is found once, and told: time goes on as before until then, and what nobody sets for ever",
    arguments: [-hour, -5, 5, hour])
  mutating func steps(step: Double) throws {
    #expect(beat(at: 0, ahead: 3).step == nil)
    #expect(now(at: 1) == 3 && steady(at: 1) == 3)
    let found = try #require(beat(at: 2, ahead: 3 + step).step)
    #expect(found == Int64(step * 1000))
    #expect(now(at: 2) == 3, "nobody knows of it yet")
    #expect(beat(at: 4, ahead: 3 + step, steps: step).step == nil)
    #expect(now(at: 4) == 3 + step, "schedules follow the clock that people see")
    #expect(steady(at: 4) == 3, "windows and rests do not")
    #expect(beat(at: 6, ahead: 3, steps: step).step == -found)
  }

  @Test("a step that follows another within a heartbeat is told by who has missed the first")
  mutating func secondStep() throws {
    #expect(beat(at: 0, ahead: 3).step == nil)
    // Another node has told of an hour ahead, and somebody has set the clock right since.
    #expect(beat(at: 2, ahead: 3, steps: Self.hour).step == Int64(-Self.hour * 1000))
    #expect(beat(at: 4, ahead: 3, steps: 0).step == nil)
    #expect(now(at: 4) == 3)
  }

  @Test("a node that comes after a step counts what was set before it came")
  mutating func late() {
    #expect(beat(at: 0, ahead: 3 + Self.hour, steps: Self.hour).step == nil)
    #expect(now(at: 0) == 3 + Self.hour && steady(at: 0) == 3)
  }

  @Test("clocks that drift apart are followed; what the answer took is no step")
  mutating func drift() {
    _ = beat(at: 0)
    #expect(beat(at: 2, ahead: 0.05).step == nil)
    #expect(now(at: 2) == 0)
    #expect(beat(at: 4, ahead: 0.5).step == nil)
    #expect(now(at: 4) == 0.5 && steady(at: 4) == 0.5)
    #expect(beat(at: 6, ahead: 3, taking: 4).step == nil)
    #expect(now(at: 6) == 0.5)
  }

  @Test("a reading that was taken while the database hung is no step for the next one")
  mutating func roughReading() {
    _ = beat(at: 0, ahead: 1.45, taking: 2.9)
    #expect(beat(at: 2).step == nil)
    #expect(now(at: 2) == 0, "the more exact one counts")
  }

  @Test("a node whose machine stood still with its clock tells nobody of a step")
  mutating func suspended() {
    _ = beat(at: 0)
    #expect(beat(at: 2, as: 2, ahead: Self.hour).step == nil)
    #expect(now(at: 2) == Self.hour && steady(at: 2) == Self.hour, "as the others, who went on")
  }

  @Test("a node follows the others when they take back the step that it has told of")
  mutating func takenBack() {
    _ = beat(at: 0)
    // Its machine stood still with its clock, and nobody has missed it.
    #expect(beat(at: 2, ahead: 2).step == 2000)
    #expect(beat(at: 4, ahead: 2, steps: 0).step == nil)
    #expect(now(at: 4) == 2 && steady(at: 4) == 2)
    #expect(beat(at: 6, ahead: Self.hour + 2).step == Int64(Self.hour * 1000))
  }

  @Test("a step that is undone at once is told as well")
  mutating func undone() {
    _ = beat(at: 0)
    #expect(beat(at: 2, ahead: -Self.hour).step == Int64(-Self.hour * 1000))
    #expect(beat(at: 4, steps: -Self.hour).step == Int64(Self.hour * 1000))
    #expect(beat(at: 6, steps: 0).step == nil)
    #expect(now(at: 6) == 0 && steady(at: 6) == 0)
  }

  @Test("nodes whose machines stood still together soon stop telling of it, and so do the others")
  func disagreement() {
    // Nodes 0 and 1 are on a host that stood still for five seconds, within their lease.
    var nodes = (0..<3).map { _ in NodeLease(lease: 10) }
    var steps: Int64 = 0
    var lastTold = 0.0
    for turn in 0..<600 {
      let (node, time) = (turn % 3, Double(turn) * 0.67)
      if node < 2, (15..<20).contains(time) { continue }
      let local = Self.start + (time >= 20 && node < 2 ? time - 5 : time)
      let reading = NodeLease.Reading(
        local: local, uncertainty: 0.002, time: Self.start + time, steps: steps)
      if let step = nodes[node].step(in: reading, as: Int64(node + 1)) {
        steps += step
        lastTold = time
      }
      _ = nodes[node].heard(as: Int64(node + 1), asked: local, reading, beside: [])
    }
    #expect(lastTold >= 20 && lastTold < 60, "\(lastTold)")
  }

  @Test("a step that follows another of its size is told as well")
  mutating func sameStep() {
    _ = beat(at: 0)
    #expect(beat(at: 2, ahead: 60).step == 60_000)
    #expect(beat(at: 4, ahead: 120, steps: 60).step == 60_000)
    #expect(beat(at: 6, ahead: 120, steps: 120).step == nil)
    #expect(now(at: 6) == 120 && steady(at: 6) == 0)
  }

  @Test(
    "a node that comes after a step of which nobody has told waits until the elder has",
    arguments: [-hour, -6, 6, hour])
  mutating func newcomer(step: Double) {
    // The elder's last heartbeat was before the step.
    #expect(beat(at: 1, as: 5, ahead: step, beats: 7, heartbeat: 0).step == nil)
    #expect(lease.isHeld(at: Self.start + 1) && !lease.mayClaim(at: Self.start + 1))
    #expect(beat(at: 3, as: 5, ahead: step, beats: 7, heartbeat: 0).step == nil)
    #expect(!lease.mayClaim(at: Self.start + 3))
    let next = beat(at: 5, as: 5, ahead: step, steps: step, beats: 8, heartbeat: 4 + step)
    #expect(next.step == nil)
    #expect(lease.mayClaim(at: Self.start + 5))
    #expect(now(at: 5) == step && steady(at: 5) == 0)
    #expect(beat(at: 7, as: 5, steps: step, beats: 9, heartbeat: 6).step == Int64(-step * 1000))
  }

  @Test("a node that comes beside one that has just told that it lives takes work at once")
  mutating func joins() {
    _ = beat(at: 5, as: 5, beats: 7, heartbeat: 1)
    #expect(lease.mayClaim(at: Self.start + 5))
  }

  @Test("a node that comes waits for nobody who came later")
  mutating func joinsBesideYounger() {
    _ = beat(at: 60, as: 5, beats: 7, other: 6, heartbeat: 0)
    #expect(lease.mayClaim(at: Self.start + 60))
  }

  @Test("a node that comes after all have died takes work as soon as they are known to be dead")
  mutating func joinsDead() {
    for seconds in stride(from: 60.0, through: 68, by: 2) {
      _ = beat(at: seconds, as: 5, beats: 7, heartbeat: 0)
      #expect(!lease.mayClaim(at: Self.start + seconds))
    }
    #expect(beat(at: 70, as: 5, beats: 7, heartbeat: 0).dead.count == 1)
    #expect(lease.mayClaim(at: Self.start + 70))
  }

  @Test("a node that was found dead waits for the elder as one that comes")
  mutating func comesBack() {
    _ = beat(at: 0, as: 5, beats: 1, heartbeat: 0)
    _ = beat(at: 20, as: 6, ahead: Self.hour, beats: 9, heartbeat: 18)
    #expect(!lease.mayClaim(at: Self.start + 20))
    let step = Self.hour
    _ = beat(at: 22, as: 6, ahead: step, steps: step, beats: 10, heartbeat: step + 20)
    #expect(lease.mayClaim(at: Self.start + 22) && steady(at: 22) == 0)
  }

  @Test("silence counts from when the answer came, not from when it was asked for")
  mutating func slowAnswer() {
    let asked = Self.start
    let peer = peer(7)
    #expect(lease.look(at: [peer], asked: asked, answered: asked + 6).isEmpty)
    for seconds in [8.0, 10, 12, 14] {
      #expect(lease.look(at: [peer], asked: asked + seconds, answered: asked + seconds).isEmpty)
    }
    #expect(lease.look(at: [peer], asked: asked + 16, answered: asked + 16) == [peer])
  }

  @Test("a lost claim is remembered for five minutes")
  mutating func lostClaims() {
    lease.lose(claim: 9, at: Self.start)
    lease.lose(claim: 4, at: Self.start + 60)
    #expect(lease.lostClaims(at: Self.start + 299) == [4, 9])
    #expect(lease.lostClaims(at: Self.start + 300) == [4])
    #expect(lease.lostClaims(at: Self.start + 360).isEmpty)
  }

  @Test("what was told of lanes counts under the number that it was told with")
  mutating func told() {
    let lane = LaneKey(hub: 1, platform: .apns)
    let words: Set = [LaneFinding(lane, .refused, credential: Self.start, time: Self.start)]
    #expect(lease.told(as: 1).isEmpty)
    lease.note(told: words, as: 1)
    #expect(lease.told(as: 1) == words)
    #expect(lease.told(as: 2).isEmpty)
  }
}
