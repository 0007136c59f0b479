import Foundation
import HubCore
import HubSimulation
import NotificationHubs
import StoreContract
import Synchronization
import Testing

@Suite("Nodes on the simulator's database")
struct SimulatedNodeTests {
  /// Virtual time, the same for the database and its nodes.
  private final class Time: Sendable {
    private let seconds = Mutex(1_893_456_000.0)
    /// How far the database's clock has been set.
    let step = Mutex(0.0)
    var now: Date { Date(timeIntervalSince1970: seconds.withLock { $0 }) }
    var ofDatabase: Date { now.addingTimeInterval(step.withLock { $0 }) }
    func pass(_ more: Double) { seconds.withLock { $0 += more } }
    var clock: HubClock {
      HubClock(now: { self.now }, steady: { self.now }, sleep: { _ in })
    }
  }

  /// Loses the answer to the next call of a name, after it was done.
  private final class LosingLink: DatabaseLink {
    let lost = Mutex<String?>(nil)

    func carry(_ call: SimulatedCall, _ transaction: @escaping Transaction) async throws {
      _ = try transaction()
      let isLost = lost.withLock { lost in
        defer { if lost == call.name { lost = nil } }
        return lost == call.name
      }
      if isLost {
        guard call.unclear == .refuse else {
          _ = try transaction()
          return
        }
        throw StoreError.engine(code: 0, message: "the answer was lost")
      }
    }
  }

  private let time = Time()
  private let database: SimulatedDatabase
  private let link = LosingLink()

  init() {
    let time = time
    database = SimulatedDatabase(narrowLimit: 0) { time.ofDatabase }
  }

  private func node() async throws -> SimulatedStore {
    let seed = Mutex(SeededGenerator(seed: 1))
    let store = SimulatedStore(database, link: link, machine: time.clock) {
      seed.withLock { $0.next() }
    }
    try await store.join()
    return store
  }

  /// A hub with thirty devices, two with each handle, and a send to all.
  private func makeSend(_ store: SimulatedStore) async throws -> NotificationRecord {
    let hub = try await store.createHub(
      named: "hub", registrationTTL: nil, policies: [], at: time.now
    ).id
    for number in 0..<30 {
      try await store.put(
        SampleDevice("i-\(number)", handle: "H\(number / 2)"), hub: hub, at: time.now)
    }
    let record = NotificationRecord(
      id: NotificationID(rawValue: "n"), hub: hub,
      request: NotificationRequest(format: .native(.apns), body: [1]), state: .enqueued,
      enqueuedAt: time.now)
    try await store.accept(record)
    return record
  }

  @Test("divide a send: each part has one owner, and together they reach each device once")
  func division() async throws {
    let nodes = [try await node(), try await node()]
    _ = try await makeSend(nodes[0])
    var parts: [NotificationRecord] = []
    for (index, count) in [4, 1].enumerated() {
      let found = try await nodes[index].claimWork(limit: 10)
      #expect(found.count == count)
      #expect(try await nodes[index].claimWork(limit: 10).isEmpty)
      parts += found.records
    }
    #expect(parts.map(\.lease.part).sorted() == [1, 2, 3, 4, 5])
    #expect(parts.allSatisfy { $0.lease.epoch == 1 })
    var targets: [Target] = []
    for part in parts {
      var query = part.audience
      query.part = part.lease.part
      targets += try await nodes[0].targets(query, after: 0, limit: 100).targets
    }
    #expect(Set(targets.map(\.registration)).count == 30)
    #expect(targets.count == 30)
    #expect(targets.count(where: \.isDuplicate) == 15)
  }

  @Test("take over what a silent node had, whose checkpoints change nothing from then on")
  func takeover() async throws {
    let nodes = [try await node(), try await node()]
    let record = try await makeSend(nodes[0])
    let part = try #require(try await nodes[0].claimWork(limit: 10).first)
    for _ in 0..<4 {
      time.pass(2)
      try await nodes[1].beat()
    }
    #expect(try await nodes[1].claimWork(limit: 10).map(\.lease.epoch) == [1])
    #expect(nodes[0].holdsLeases)
    for _ in 0..<2 {
      time.pass(2)
      try await nodes[1].beat()
    }
    #expect(!nodes[0].holdsLeases)
    #expect(try await nodes[1].claimWork(limit: 10).map(\.lease.epoch) == [2, 2, 2])
    var late = Checkpoint(notification: record.id, hub: record.hub, at: time.now)
    late.lease = part.lease
    late.counts[OutcomeKey(platform: .apns, isTemplate: false, outcome: .success)] = 1
    let before = database.state.commit
    await #expect(throws: StoreError.leaseLost) { try await nodes[0].checkpoint(late) }
    #expect(database.state.commit == before)
    let old = nodes[0].nodeID
    try await nodes[0].beat()
    #expect(nodes[0].nodeID > old && nodes[0].holdsLeases)
  }

  @Test("take nothing before the next heartbeat when a failover has lost the last one")
  func forgotten() async throws {
    let node = try await node()
    database.goBack(commits: 1)
    _ = try await makeSend(node)
    #expect(node.holdsLeases)
    #expect(try await node.claimWork(limit: 10).isEmpty)
    try await node.beat()
    #expect(try await node.claimWork(limit: 10).map(\.lease.epoch) == [1, 1, 1, 1])
    #expect(try await node.claimWork(limit: 10).isEmpty)
  }

  @Test(
    "know the time of those that were there before they take work, when the clock has been set",
    arguments: [-3_600.0, 3_600])
  func joinsAfterStep(step: Double) async throws {
    let elder = try await node()
    time.pass(1)
    time.step.withLock { $0 = step }
    let newcomer = try await node()
    let hub = try await makeSend(newcomer).hub
    var record = NotificationRecord(
      id: NotificationID(rawValue: "m"), hub: hub,
      request: NotificationRequest(format: .native(.apns), body: [1]), state: .enqueued,
      enqueuedAt: time.now)
    record.steadyRelease = newcomer.clock.steady()
    try await newcomer.accept(record)
    #expect(try await newcomer.claimWork(limit: 10).isEmpty)
    let steady = elder.clock.steady()
    #expect(try await elder.claimWork(limit: 10).records.last?.steadyRelease == steady)
    time.pass(1)
    try await elder.beat()
    try await newcomer.beat()
    #expect(newcomer.clock.steady() == time.now)
    let found = try #require(try await newcomer.claimWork(limit: 10).records.last)
    #expect(found.id == record.id && found.steadyRelease == steady)
  }

  @Test("take once more what a claim has taken whose answer was lost")
  func lostClaim() async throws {
    let node = try await node()
    _ = try await makeSend(node)
    link.lost.withLock { $0 = "claimWork(limit:)" }
    await #expect(throws: StoreError.self) { try await node.claimWork(limit: 10) }
    #expect(try await node.claimWork(limit: 10).map(\.lease.epoch) == [2, 2, 2, 2])
  }

  @Test("go on after the database has lost its last commits")
  func failover() async throws {
    let node = try await node()
    let record = try await makeSend(node)
    database.goBack(commits: 1)
    #expect(try await node.notification(record.id, hub: record.hub) == nil)
    try await node.accept(record)
    #expect(try await node.claimWork(limit: 10).count == 4)
  }
}
