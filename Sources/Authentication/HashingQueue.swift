import Foundation
import Synchronization

/// Hashes passwords: 32 MiB and a tenth of a second each, so a few at a time, and on threads of its
/// own, which come and go with the work: those of libdispatch are Swift's, too, and as few as the
/// machine has cores. What waits is bounded, and sites (networks of one customer) take
/// turns: one that sends many waits for itself. Users at a place where they have signed in before
/// have places of their own, and every second turn.
package final class HashingQueue: Sendable {
  private struct Job: Sendable {
    let number: UInt64
    let run: @Sendable () -> Void
    let refuse: @Sendable () -> Void
  }

  /// What waits, by site; those first in `order` are next.
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

    /// Takes out the last of the site that has most, if that has more than this one would.
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
    /// Whose turn it is where both wait.
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
  ///   - width: How many are hashed at a time.
  ///   - limit: How many may wait, and as many of users where they have signed in before.
  package init(width: Int = 2, limit: Int = 64) {
    self.width = width
    self.limit = limit
  }

  /// How many wait, for tests.
  package var waiting: Int { state.withLock { $0.known.count + $0.others.count } }

  /// How many threads hash, for tests.
  package var running: Int { state.withLock { $0.workers } }

  /// - Parameters:
  ///   - site: Where the password comes from.
  ///   - isKnown: Whether the user has signed in from there before.
  /// - Returns: What `work` returned; `nil` when too many wait, when this one had to make room for
  ///   a site that has fewer waiting, or when the task was cancelled first.
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
        // Cancelled before it was there to be found.
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
