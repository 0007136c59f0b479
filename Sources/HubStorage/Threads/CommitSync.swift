import Foundation
import HubCore

/// The way of a transaction from its commit to its callers: first the log is synced, then they are
/// resumed.
///
/// A thread of its own waits for the disk, so that the writing thread does the next group
/// meanwhile; all groups that are there when the disk is free share one sync.
final class CommitSync: @unchecked Sendable {
  /// The callers of a transaction.
  struct Group: Sendable {
    struct Caller: Sendable {
      let resume: @Sendable () -> Void
      let fail: @Sendable (any Error) -> Void
    }
    var callers: [Caller] = []
    /// There is something to sync. Callers who have only looked wait as well: what they have seen
    /// may be a commit that still waits for the disk.
    var hasWritten = false
    let began = ContinuousClock.now
  }

  private let queue = JobQueue<Group>()
  // `condition` guards all that varies here.
  private let condition = NSCondition()
  /// Groups whose callers have not been resumed yet.
  private var pending = 0
  /// Why a sync has failed. Nobody knows what of the log is on the disk then, and a second sync
  /// may claim success for pages that the system has dropped; so nothing is promised any more
  /// until the store is opened anew.
  private var failure: (any Error)?
  private var counted = StoreStatistics()

  var statistics: StoreStatistics {
    condition.lock()
    defer { condition.unlock() }
    return counted
  }

  /// - Parameter open: Makes what syncs the log; runs on the new thread.
  func start(_ open: @escaping @Sendable () throws -> @Sendable () throws -> Void) async throws {
    try await queue.startThread(
      named: "hub store sync", batch: .max, open: open,
      work: { groups, sync in self.settle(groups, sync) }, end: { _ in })
  }

  /// - Throws: When a sync has failed.
  func check() throws {
    condition.lock()
    defer { condition.unlock() }
    if let failure { throw failure }
  }

  /// Waits until at most one group waits for the disk. Without that the writing thread would take
  /// callers one by one as they come, and a group costs less for each the more it has.
  func waitForRoom() {
    condition.lock()
    while pending > 1 { condition.wait() }
    condition.unlock()
  }

  /// Resumes the callers of a committed transaction once it is durable.
  func confirm(_ group: Group) {
    add(1)
    if !queue.add(group) {
      // The store is gone, and with it everyone who could wait.
      for caller in group.callers { caller.fail(StoreError.closed) }
      add(-1)
    }
  }

  private func add(_ count: Int) {
    condition.lock()
    pending += count
    condition.broadcast()
    condition.unlock()
  }

  private func settle(_ groups: [Group], _ sync: () throws -> Void) {
    do {
      try check()
      if groups.contains(where: \.hasWritten) { try sync() }
    } catch {
      condition.lock()
      failure = failure ?? error
      condition.unlock()
      for group in groups { for caller in group.callers { caller.fail(error) } }
      add(-groups.count)
      return
    }
    count(groups)
    // The next group may start before these callers go on.
    add(-groups.count)
    for group in groups { for caller in group.callers { caller.resume() } }
  }

  private func count(_ groups: [Group]) {
    let now = ContinuousClock.now
    condition.lock()
    defer { condition.unlock() }
    for group in groups where group.hasWritten {
      counted.commits.observe(group.began.duration(to: now) / .seconds(1))
      counted.batches.observe(Double(group.callers.count))
    }
  }

  func close() async { await queue.close() }
  func closeWithoutWaiting() { queue.closeWithoutWaiting() }
}
