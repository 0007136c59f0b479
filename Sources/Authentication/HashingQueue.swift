import Foundation
import Synchronization

/// Hashes passwords. Each takes 32 MiB and a tenth of a second, so only a few are hashed at a time,
/// on separate threads that exist only while there is work: those of libdispatch are also Swift's,
/// and limited to the number of cores. The number of waiting jobs is bounded, and sites (networks
/// of one customer) take turns, so that a site with many jobs delays only itself. Users at a site
/// where they have signed in before have separate capacity, and every second turn.
package final class HashingQueue: Sendable {
  private struct Job: Sendable {
    let number: UInt64
    let run: @Sendable () -> Void
    let refuse: @Sendable () -> Void
  }

  /// The waiting jobs by site; those first in `order` are next.
  private struct Lanes {
    var jobs: [String: [Job]] = [:]
    var order: [String] = []
    var count = 0

    mutating func add(_ job: Job, to site: String) {
      if jobs[site] == nil { order.append(site) }
      jobs[site, default: []].append(job)
      count += 1
    }

    mutating func next() -> Job? {
      guard let site = order.first, let job = jobs[site]?.first else { return nil }
      order.removeFirst()
      order.append(site)
      return remove(0, of: site, job)
    }

    mutating func remove(_ number: UInt64) -> Job? {
      for (site, lane) in jobs {
        guard let place = lane.firstIndex(where: { $0.number == number }) else { continue }
        return remove(place, of: site, lane[place])
      }
      return nil
    }

    /// Removes the last job of the site with most jobs, if that is more than this one would have.
    mutating func makeRoom(for site: String) -> Job? {
      guard let (longest, lane) = jobs.max(by: { $0.value.count < $1.value.count }),
        lane.count > (jobs[site]?.count ?? 0) + 1, let last = lane.last
      else { return nil }
      return remove(lane.count - 1, of: longest, last)
    }

    private mutating func remove(_ place: Int, of site: String, _ job: Job) -> Job {
      jobs[site]?.remove(at: place)
      count -= 1
      if jobs[site]?.isEmpty == true {
        jobs[site] = nil
        order.removeAll { $0 == site }
      }
      return job
    }
  }

  private struct State {
    var known = Lanes()
    var others = Lanes()
    /// Whether known users are next if both kinds wait.
    var isTurnOfKnown = true
    var lastNumber: UInt64 = 0
    var workers = 0

    mutating func next() -> Job? {
      defer { isTurnOfKnown.toggle() }
      if isTurnOfKnown { return known.next() ?? others.next() }
      return others.next() ?? known.next()
    }
  }

  private let width: Int
  private let limit: Int
  private let state = Mutex(State())

  /// - Parameters:
  ///   - width: The number of concurrent jobs.
  ///   - limit: The maximum number of waiting jobs, and separately of those of known users.
  package init(width: Int = 2, limit: Int = 64) {
    self.width = width
    self.limit = limit
  }

  /// The number of waiting jobs, for tests.
  package var waiting: Int { state.withLock { $0.known.count + $0.others.count } }

  /// The number of hashing threads, for tests.
  package var running: Int { state.withLock { $0.workers } }

  /// - Parameters:
  ///   - site: The site of the request.
  ///   - isKnown: Whether the user has signed in from there before.
  /// - Returns: The result of `work`; `nil` if too many jobs wait, if this one was removed for a
  ///   site with fewer jobs, or if the task was cancelled first.
  package func run<Value: Sendable>(
    for site: String, isKnown: Bool = false, _ work: @escaping @Sendable () -> Value
  ) async -> Value? {
    let number = state.withLock { state in
      state.lastNumber += 1
      return state.lastNumber
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        add(
          Job(
            number: number, run: { continuation.resume(returning: work()) },
            refuse: { continuation.resume(returning: nil) }),
          to: site, isKnown)
        // It was cancelled before it was in the queue.
        if Task.isCancelled { cancel(number) }
      }
    } onCancel: {
      cancel(number)
    }
  }

  private func cancel(_ number: UInt64) {
    state.withLock { $0.known.remove(number) ?? $0.others.remove(number) }?.refuse()
  }

  private func add(_ job: Job, to site: String, _ isKnown: Bool) {
    let (refused, mustStart) = state.withLock { state -> (Job?, Bool) in
      let lanes: WritableKeyPath<State, Lanes> = isKnown ? \.known : \.others
      var refused: Job?
      if state[keyPath: lanes].count >= limit {
        refused = state[keyPath: lanes].makeRoom(for: site)
        if refused == nil { return (job, false) }
      }
      state[keyPath: lanes].add(job, to: site)
      let mustStart = state.workers < width
      if mustStart { state.workers += 1 }
      return (refused, mustStart)
    }
    refused?.refuse()
    if mustStart { Thread.detachNewThread { self.drain() } }
  }

  private func drain() {
    while true {
      let job = state.withLock { state -> Job? in
        let job = state.next()
        if job == nil { state.workers -= 1 }
        return job
      }
      guard let job else { return }
      job.run()
    }
  }
}
