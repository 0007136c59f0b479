import Dispatch
import Synchronization

/// Hashes passwords: 32 MiB and a tenth of a second each, so a few at a time, and away from the
/// threads that serve requests. What waits is bounded, and networks take turns: one that sends many
/// waits for itself.
final class HashingQueue: Sendable {
  private struct Job: Sendable {
    let run: @Sendable () -> Void
    let refuse: @Sendable () -> Void
  }

  private struct State {
    /// What waits, by network; those first in `order` are next.
    var lanes: [String: [Job]] = [:]
    var order: [String] = []
    var waiting = 0
    var workers = 0
  }

  private let width: Int
  private let limit: Int
  private let queue = DispatchQueue(label: "belfry.passwords", attributes: .concurrent)
  private let state = Mutex(State())

  /// - Parameters:
  ///   - width: How many are hashed at a time.
  ///   - limit: How many may wait.
  init(width: Int = 2, limit: Int = 64) {
    self.width = width
    self.limit = limit
  }

  /// - Returns: What `work` returned; `nil` when too many wait, or when this one had to make room for
  ///   a network that has fewer waiting.
  func run<Value: Sendable>(
    for network: String, _ work: @escaping @Sendable () -> Value
  ) async -> Value? {
    await withCheckedContinuation { continuation in
      add(
        Job(
          run: { continuation.resume(returning: work()) },
          refuse: { continuation.resume(returning: nil) }),
        to: network)
    }
  }

  private func add(_ job: Job, to network: String) {
    let (refused, mustStart) = state.withLock { state -> (Job?, Bool) in
      var refused: Job?
      if state.waiting >= limit {
        let own = state.lanes[network]?.count ?? 0
        guard let (longest, jobs) = state.lanes.max(by: { $0.value.count < $1.value.count }),
          jobs.count > own + 1
        else { return (job, false) }
        refused = state.lanes[longest]?.removeLast()
        state.waiting -= 1
      }
      if state.lanes[network] == nil { state.order.append(network) }
      state.lanes[network, default: []].append(job)
      state.waiting += 1
      let mustStart = state.workers < width
      if mustStart { state.workers += 1 }
      return (refused, mustStart)
    }
    refused?.refuse()
    if mustStart { queue.async { self.drain() } }
  }

  private func drain() {
    while true {
      let job = state.withLock { state -> Job? in
        guard !state.order.isEmpty else {
          state.workers -= 1
          return nil
        }
        let network = state.order.removeFirst()
        let job = state.lanes[network]?.removeFirst()
        state.waiting -= 1
        if state.lanes[network]?.isEmpty == true {
          state.lanes[network] = nil
        } else {
          state.order.append(network)
        }
        return job
      }
      guard let job else { return }
      job.run()
    }
  }
}
