import Foundation
import HubCore
import SQLDatabase

/// Brings a transaction from its commit to its callers: first the log is synced, then they are
/// resumed.
///
/// A thread of its own waits for the disk, so that the writing thread can process the next group
/// meanwhile; all groups that are waiting when the disk is free share one sync.
final class CommitSync: @unchecked Sendable {
  /// The work of a transaction, whose callers wait.
  final class Group: QueuedJob, @unchecked Sendable {
    // The writing thread's until it is queued, then the syncing thread's.
    var jobs: ArraySlice<WriteJob> = []
    /// Whether there is something to sync. Callers that have only read wait as well: they may have
    /// seen a commit that is not yet on the disk.
    var hasWritten = false
    /// The number of the commit, if there was something to write.
    var commit: Int64 = 0
    let began = ContinuousClock.now
  }

  /// The operations that bring the log to the disk.
  struct Disk: Sendable {
    let sync: @Sendable () throws -> Void
    /// After a failed sync: writes everything that has been committed to the disk in another way.
    let recover: @Sendable () throws -> Void
    /// Records the newest durable commit.
    let note: @Sendable (CommitMark) -> Void
  }

  private let queue = JobQueue<Group>()
  private let health: StoreHealth
  // `condition` guards all mutable state.
  private let condition = NSCondition()
  /// Number of groups whose callers have not been resumed yet.
  private var pending = 0
  /// The error of the last sync, until the disk has recovered. Nothing more is written meanwhile.
  /// Earlier commits can neither be promised nor taken back, so their callers wait: a checkpoint
  /// that was refused and then found to be committed would count twice.
  private var failure: (any Error)?
  private var isClosing = false
  private var counted = StoreStatistics()

  /// The pause between two attempts to recover: half a second, in steps of so many microseconds.
  private static let recoveryStep: UInt32 = 25_000
  private static let recoverySteps = 20

  init(health: StoreHealth) { self.health = health }

  var statistics: StoreStatistics {
    condition.lock()
    defer { condition.unlock() }
    return counted
  }

  /// - Parameter open: Creates the disk operations; runs on the new thread.
  func start(_ open: @escaping @Sendable () throws -> Disk) async throws {
    try await queue.startThread(
      named: "hub store sync", batch: .max, open: open,
      work: { groups, disk in self.settle(groups, disk) }, end: { _ in })
  }

  /// - Throws: When a sync has failed and the disk has not recovered.
  func check() throws {
    condition.lock()
    defer { condition.unlock() }
    if let failure { throw failure }
  }

  /// Waits until the next group may begin. Without that the writing thread would take callers one by
  /// one as they arrive, and larger groups cost less per caller.
  ///
  /// - Parameter isOfDevices: Whether only registrations wait, which begin when the disk is free. A
  ///   delivery's checkpoints follow each other: they begin while one group waits for the disk.
  ///   One that comes while registrations wait begins with them, at the end of the present sync.
  func waitForRoom(isOfDevices: Bool) {
    condition.lock()
    while pending > (isOfDevices ? 0 : 1) && failure == nil { condition.wait() }
    condition.unlock()
  }

  /// Resumes the callers of a committed transaction once it is durable.
  func confirm(_ group: Group) {
    add(1)
    if !queue.add(group) {
      // The store is gone, and with it every caller that could wait.
      for job in group.jobs { job.fail(StoreError.closed) }
      add(-1)
    }
  }

  private func add(_ count: Int) {
    condition.lock()
    pending += count
    condition.broadcast()
    condition.unlock()
  }

  private func settle(_ groups: [Group], _ disk: Disk) {
    let hasWritten = groups.contains(where: \.hasWritten)
    do {
      if hasWritten { try disk.sync() }
    } catch {
      guard recover(from: error, disk) else {
        let refusal = StoreError.orRefusal(error)
        for group in groups { for job in group.jobs { job.fail(refusal) } }
        add(-groups.count)
        return
      }
    }
    count(groups)
    if hasWritten {
      health.written()
      disk.note(CommitMark(number: groups.map(\.commit).max() ?? 0, at: Date().milliseconds))
    }
    // The next group may start before these callers are resumed.
    add(-groups.count)
    for group in groups { for job in group.jobs { job.finish() } }
  }

  private func count(_ groups: [Group]) {
    let now = ContinuousClock.now
    condition.lock()
    defer { condition.unlock() }
    for group in groups where group.hasWritten {
      counted.commits.observe(group.began.duration(to: now) / .seconds(1))
      counted.batches.observe(Double(group.jobs.count))
    }
  }

  /// Retries until the disk works again.
  /// - Returns: `false` when the store is closed first.
  private func recover(from error: any Error, _ disk: Disk) -> Bool {
    var error = error
    while true {
      health.writeFailed(error)
      guard pause(because: error) else { return false }
      do {
        try disk.recover()
        condition.lock()
        failure = nil
        condition.unlock()
        return true
      } catch let fault {
        error = fault
      }
    }
  }

  /// - Returns: `false` when the store is being closed.
  private func pause(because error: any Error) -> Bool {
    condition.lock()
    failure = error
    condition.broadcast()
    var isOver = isClosing
    // In steps and not on the condition, whose deadline follows the wall clock.
    for _ in 0..<Self.recoverySteps where !isOver {
      condition.unlock()
      usleep(Self.recoveryStep)
      condition.lock()
      isOver = isClosing
    }
    condition.unlock()
    return !isOver
  }

  func close() async {
    noteClosing()
    await queue.close()
  }

  func closeWithoutWaiting() {
    noteClosing()
    queue.closeWithoutWaiting()
  }

  private func noteClosing() {
    condition.lock()
    isClosing = true
    condition.broadcast()
    condition.unlock()
  }
}
