import Foundation
import Synchronization
import Testing

@testable import SQLDatabase

@Suite("Turns of those who wait for a store")
struct JobRotationTests {
  private final class Piece: QueuedJob, @unchecked Sendable {
    /// Who brought it.
    var item: String { label.caller ?? "server" }

    init(_ number: UInt64, _ label: JobLabel) {
      super.init()
      self.number = number
      self.label = label
    }
  }

  /// Work as the queue keeps it.
  private final class Line {
    let turns: JobRotation
    private var number: UInt64 = 0

    init(_ limits: JobLimits = JobLimits()) { turns = JobRotation(limits: limits) }

    @discardableResult
    func add(
      _ count: Int = 1, _ share: JobLabel.Share = .devices, hub: Int64 = 1, by caller: String?,
      rows: Int = 10, bytes: Int = 0
    ) -> Int {
      (0..<count).count { _ in
        number += 1
        return turns.add(
          Piece(number, JobLabel(share, hub: hub, caller: caller, rows: rows, bytes: bytes)))
      }
    }

    func takeAll() -> [Piece] {
      turns.take(JobGroup(jobs: .max)).compactMap { $0 as? Piece }
    }
  }

  @Test("who comes behind a flood waits for one turn of it, in another hub and in the same one")
  func floodsTakeTurns() throws {
    for hub in [Int64(1), 2] {
      let line = Line()
      line.add(2_000, by: "flood")
      line.add(by: "victim")
      let place = try #require(line.takeAll().firstIndex { $0.label.caller == "victim" })
      #expect(place <= JobLabel.allowance / 10 + 1, "hub \(hub)")
      line.add(2_000, hub: 1, by: "flood")
      line.add(hub: hub, by: "other")
      // Work of unknown size in front: no more of it than one piece beyond the turn.
      let other = try #require(line.takeAll().firstIndex { $0.label.caller == "other" })
      #expect(other <= JobLabel.allowance / 10 + 1)
    }
  }

  @Test("a piece of work above its turn is paid back while others wait")
  func debtIsPaid() {
    let line = Line()
    line.add(20, by: "large", rows: 10 * JobLabel.allowance)
    line.add(400, by: "small", rows: 10)
    let order = line.takeAll().map(\.item)
    let first = order.prefix { $0 == "large" }.count
    #expect(first == 1)
    // Ten turns of the small one, of 26 pieces each, for one large piece.
    let between = order.dropFirst(first).prefix { $0 == "small" }.count
    #expect((230...280).contains(between), "\(between)")
  }

  @Test("work that took longer than its label says is paid back while others wait")
  func timeIsPaid() throws {
    let label = JobLabel(.devices, hub: 1, caller: "slow")
    #expect(label.excess(after: .microseconds(19)) == 0)
    #expect(label.excess(after: .milliseconds(20)) == 999)
    #expect(label.excess(after: .seconds(60)) == 64 * JobLabel.allowance - 1)
    for hub in [Int64(1), 2] {
      let line = Line()
      line.add(20, hub: 1, by: "slow", rows: 1)
      line.add(2_000, hub: hub, by: "quick", rows: 1)
      let first = try #require(line.turns.take(JobGroup(jobs: 1)).first)
      #expect(first.label.caller == "slow")
      line.turns.charge(5 * JobLabel.allowance, to: first.label)
      let between = line.takeAll().map(\.item).prefix { $0 == "quick" }.count
      #expect((1_100...1_400).contains(between), "\(between) of hub \(hub)")
    }
  }

  @Test("sends have two thirds beside registrations, and registrations are not starved by them")
  func sharesAreWeighted() {
    let line = Line()
    line.add(3_000, .sends, hub: 1, by: nil, rows: 10)
    line.add(2_000, .devices, hub: 2, by: "app", rows: 10)
    let first = line.turns.take(JobGroup(jobs: .max, rows: 15_360))
    let sends = first.count { $0.label.share == .sends }
    #expect((950...1_100).contains(sends), "\(sends) of \(first.count)")
    #expect(first.count == 1_536)
  }

  @Test("a group is closed by rows, by bytes and by its number; the first piece fits always")
  func groupsAreBounded() {
    let line = Line()
    line.add(10, by: "app", rows: 100)
    #expect(line.turns.take(JobGroup(jobs: 512, rows: 250)).count == 3)
    line.add(10, by: "app", rows: 1, bytes: 1_000)
    #expect(line.turns.take(JobGroup(jobs: 512, rows: 701, bytes: 3_000)).count == 8)
    #expect(line.turns.take(JobGroup(jobs: 512, bytes: 3_000)).count == 3)
    #expect(line.turns.take(JobGroup(jobs: 2)).count == 2)
    line.add(by: "app", rows: 1_000_000)
    #expect(line.takeAll().count == 5)
    line.add(by: "app", rows: 1_000_000)
    #expect(line.turns.take(JobGroup(jobs: 512, rows: 10)).count == 1)
  }

  @Test("what was taken and not done comes first in its caller's next turn")
  func restIsPutBack() {
    let line = Line()
    line.add(40, by: "a")
    line.add(40, by: "b")
    let copy = Line()
    copy.add(40, by: "a")
    copy.add(40, by: "b")
    let wanted = copy.takeAll().map(\.number)
    var found: [UInt64] = []
    while case let taken = line.turns.take(JobGroup(jobs: 30)), !taken.isEmpty {
      let done = max(1, taken.count / 4)
      found += taken.prefix(done).map(\.number)
      line.turns.putBack(taken.dropFirst(done))
    }
    #expect(found.sorted() == wanted.sorted())
    for caller in [wanted.prefix(26), wanted.dropFirst(26).prefix(14)] {
      #expect(found.filter(caller.contains) == Array(caller))
    }
    #expect(line.turns.count == 0)
  }

  @Test("a caller with too much that waits is refused, and nobody else")
  func limitsAreTheCallers() {
    var limits = JobLimits()
    limits.caller = .init(jobs: 100, rows: 500, bytes: 10_000)
    limits.hub = .init(jobs: 150, rows: 800, bytes: 15_000)
    limits.reserved = 5
    let line = Line(limits)
    #expect(line.add(200, by: "rows", rows: 10) == 50)
    #expect(line.add(200, by: "bytes", rows: 1, bytes: 1_000) == 10)
    #expect(line.add(200, by: "jobs", rows: 1) == 90, "the hub has 150")
    #expect(line.add(200, by: "late", rows: 100, bytes: 5_000) == 5, "what it may have always")
    #expect(line.add(200, by: nil, rows: 10) == 200, "the server's own")
    #expect(line.add(50, hub: 2, by: "rows", rows: 10) == 50, "another hub")
    #expect(line.add(50, .sends, by: "rows", rows: 10) == 50, "another share")
    _ = line.takeAll()
    #expect(line.add(200, by: "rows", rows: 10) == 50, "what is done does not count")
  }

  @Test("nothing is lost or done twice, and each caller's work keeps its order", arguments: 0..<20)
  func random(seed: UInt64) {
    let line = Line(.none)
    var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
    func roll(_ bound: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % bound
    }
    var (added, done, gone) = (0, [UInt64](), Set<UInt64>())
    var waiting: [Piece] = []
    for _ in 0..<3_000 {
      switch roll(4) {
      case 0, 1:
        let label = JobLabel(
          JobLabel.Share.allCases[roll(3)], hub: Int64(roll(3)), caller: "\(roll(4))",
          rows: 1 + roll(400) * roll(40), bytes: roll(5_000))
        added += 1
        let entry = Piece(UInt64(added), label)
        #expect(line.turns.add(entry))
        waiting.append(entry)
      case 2:
        let taken = line.turns.take(JobGroup(jobs: 1 + roll(6), rows: 1 + roll(3_000)))
        let rest = taken.dropFirst(roll(taken.count + 1))
        done += taken.prefix(taken.count - rest.count).map(\.number)
        line.turns.putBack(rest)
      default:
        guard !waiting.isEmpty else { break }
        let one = waiting[roll(waiting.count)]
        let isThere = !done.contains(one.number) && !gone.contains(one.number)
        #expect((line.turns.remove(one.number, one.label) != nil) == isThere)
        gone.insert(one.number)
      }
    }
    done += line.takeAll().map(\.number)
    #expect(line.turns.count == 0)
    #expect(Set(done).count == done.count)
    #expect(done.count + gone.subtracting(done).count == added)
    let places = Dictionary(uniqueKeysWithValues: done.enumerated().map { ($1, $0) })
    let lanes = Dictionary(grouping: waiting) {
      "\($0.label.share) \($0.label.hub) \($0.label.caller ?? "")"
    }
    for lane in lanes.values {
      let order = lane.compactMap { places[$0.number] }
      #expect(order == order.sorted())
    }
  }
}

@Suite("Work that waits for a thread")
struct JobQueueTests {
  private typealias Queue = JobQueue<Job<Int>>

  /// A queue whose thread waits at a gate before its first piece of work.
  private func withBlockedQueue(
    _ body: (Queue, _ open: @escaping @Sendable () -> Void) async throws -> Void
  ) async throws {
    let queue = Queue()
    let gate = Gate()
    try await queue.startThread(
      named: "test", batch: JobGroup(jobs: 8), prepare: { _ in gate.wait() }, open: { 7 },
      work: { jobs, context in
        for job in jobs {
          do { try job.run(context) } catch { job.refuse(error) }
          job.finish()
        }
        return jobs.count
      }, end: { _ in })
    try await body(queue) { gate.open() }
    gate.open()
    await queue.close()
  }

  private final class Gate: @unchecked Sendable {
    // `condition` guards it.
    private let condition = NSCondition()
    private var isOpen = false

    func wait() {
      condition.lock()
      while !isOpen { condition.wait() }
      condition.unlock()
    }

    func open() {
      condition.lock()
      isOpen = true
      condition.broadcast()
      condition.unlock()
    }

    func close() {
      condition.lock()
      isOpen = false
      condition.unlock()
    }
  }

  @Test(
    "is dropped at once also after it was taken and not done", .timeLimit(.minutes(1)))
  func putBackIsDropped() async throws {
    let queue = Queue()
    let gate = Gate()
    try await queue.startThread(
      named: "test", batch: JobGroup(jobs: 8), prepare: { _ in gate.wait() }, open: { 7 },
      work: { jobs, context in
        // Of each batch one is done, and the thread waits before it takes the rest again.
        gate.close()
        do { try jobs[0].run(context) } catch { jobs[0].refuse(error) }
        jobs[0].finish()
        return 1
      }, end: { _ in })
    let label = JobLabel(.devices, hub: 1, caller: "app")
    let done = Task { try await queue.perform(label) { $0 } }
    while queue.counts.waiting < 1 { await Task.yield() }
    let left = Task { try await queue.perform(label) { (_: Int) in 0 } }
    while queue.counts.waiting < 2 { await Task.yield() }
    gate.open()
    #expect(try await done.value == 7)
    while queue.counts.waiting < 1 { await Task.yield() }
    left.cancel()
    await #expect(throws: CancellationError.self) { try await left.value }
    gate.open()
    await queue.close()
  }

  @Test(
    "goes to one of two threads at a time, until enough of it waits", .timeLimit(.minutes(1)))
  func turns() async throws {
    let queue = Queue(coalescing: BatchCoalescing(enough: 3, patience: .seconds(3_600)))
    let gate = Gate()
    let batches = Mutex<[Int]>([])
    for number in 1...2 {
      try await queue.startThread(
        named: "test \(number)", batch: JobGroup(jobs: 8),
        open: { 7 },
        work: { jobs, context in
          batches.withLock { $0.append(jobs.count) }
          gate.wait()
          for job in jobs {
            do { try job.run(context) } catch { job.refuse(error) }
            job.finish()
          }
          return jobs.count
        }, end: { _ in })
    }
    func add() -> Task<Int, any Error> { Task { try await queue.perform { $0 } } }
    var tasks = [add()]
    while batches.withLock({ $0 }) != [1] { await Task.yield() }
    for count in 1...2 {
      tasks.append(add())
      while queue.counts.waiting < count { await Task.yield() }
    }
    #expect(batches.withLock { $0 } == [1])
    tasks.append(add())
    while batches.withLock({ $0.count }) < 2 { await Task.yield() }
    #expect(batches.withLock { $0 } == [1, 3])
    gate.open()
    for task in tasks { #expect(try await task.value == 7) }
    await queue.close()
  }

  @Test(
    "does not wait for a thread whose turn takes long", .timeLimit(.minutes(1)))
  func longTurn() async throws {
    let queue = Queue(coalescing: BatchCoalescing(enough: .max, patience: .milliseconds(1)))
    let gate = Gate()
    for number in 1...2 {
      try await queue.startThread(
        named: "test \(number)", batch: JobGroup(jobs: 8),
        open: { 7 },
        work: { jobs, context in
          for job in jobs {
            do { try job.run(context) } catch { job.refuse(error) }
            job.finish()
          }
          return jobs.count
        }, end: { _ in })
    }
    let isBusy = Atomic(false)
    let long = Task {
      try await queue.perform { (context: Int) in
        isBusy.store(true, ordering: .releasing)
        gate.wait()
        return context
      }
    }
    while !isBusy.load(ordering: .acquiring) { await Task.yield() }
    #expect(try await queue.perform { $0 } == 7)
    gate.open()
    #expect(try await long.value == 7)
    await queue.close()
  }

  @Test("is dropped when its caller leaves before its turn, and only then")
  func leaversAreDropped() async throws {
    try await withBlockedQueue { queue, open in
      let label = JobLabel(.devices, hub: 1, caller: "app")
      let left = Task {
        try await queue.perform(label) { (_: Int) -> Int in
          Issue.record("it was done though nobody waits")
          return 0
        }
      }
      let stays = Task { try await queue.perform(label) { $0 } }
      let server = Task { try await queue.perform(JobLabel(.sends, hub: 1)) { $0 + 1 } }
      while queue.counts.waiting < 3 { await Task.yield() }
      left.cancel()
      server.cancel()
      await #expect(throws: CancellationError.self) { try await left.value }
      #expect(queue.counts.dropped == 1 && queue.counts.waiting == 2)
      open()
      let (first, second) = try await (stays.value, server.value)
      #expect(first == 7)
      #expect(second == 8, "the server's own is done")
    }
  }

  @Test("ends once for each caller, cancelled at any time")
  func cancelledAnyTime() async throws {
    try await withBlockedQueue { queue, open in
      open()
      let done = await withTaskGroup(of: Bool.self) { group in
        for number in 0..<10_000 {
          group.addTask {
            let task = Task {
              try await queue.perform(JobLabel(.devices, hub: 1, caller: "\(number % 3)")) {
                (_: Int) in number
              }
            }
            if number % 3 == 0 { task.cancel() }
            if number % 3 == 1 {
              await Task.yield()
              task.cancel()
            }
            do { return try await task.value == number } catch {
              #expect(error is CancellationError)
              #expect(number % 3 != 2)
              return false
            }
          }
        }
        return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(done >= 3_333)
      #expect(queue.counts.waiting == 0)
    }
  }

  @Test("ends when the queue lets go of it")
  func lostWorkEnds() async throws {
    let queue = Queue()
    let task = Task { try await queue.perform(JobLabel()) { $0 } }
    while queue.counts.waiting < 1 { await Task.yield() }
    _ = queue.takeWaiting()
    await #expect(throws: JobRefusal.closed) { try await task.value }
    queue.closeWithoutWaiting()
    await #expect(throws: JobRefusal.closed) { try await queue.perform(JobLabel()) { $0 } }
  }
}
