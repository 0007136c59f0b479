package import HubCore
import HubStorage
import Synchronization

/// Stands in front of every call that a process makes of a store: counts the calls, refuses them,
/// and kills the process at one of them.
///
/// ```swift
/// let process = StoreHook()
/// let dispatcher = Dispatcher(store: store.intercepted(by: process), …)
/// await process.die()   // the store lives on for the next process
/// ```
package final class StoreHook: StoreInterceptor {
  /// A fault of one call.
  package enum Fault: Sendable {
    /// It is not made.
    case refused(any Error)
    /// It is made, and its answer is lost.
    case unanswered(any Error)
  }

  private struct State {
    var fault: (@Sendable (String) -> Fault?)?
    var failure: StoreError?
    var refusal: (remaining: Int, error: StoreError)?
    var isDead = false
    var remaining: Int?
    var underWay = 0
    var waiters: [CheckedContinuation<Void, Never>] = []
    var counts: [String: Int] = [:]
    var watchers: [(call: String, times: Int, continuation: CheckedContinuation<Void, Never>)] = []
    var refused: [String: StoreError] = [:]
    var end: (@Sendable () -> Void)?
  }

  private let state = Mutex(State())

  package init() {}

  deinit { state.withLock { $0.end }?() }

  /// Does this when the last store with this hook goes.
  func atEnd(_ end: @escaping @Sendable () -> Void) { state.withLock { $0.end = end } }

  /// Every call from now on throws this, as on a full disk; `nil` ends it.
  package func fail(with error: StoreError?) { state.withLock { $0.failure = error } }

  /// Refuses one call: the next for 0, the one after that for 1, and so on.
  package func refuse(call number: Int, with error: StoreError) {
    state.withLock { $0.refusal = (number, error) }
  }

  /// Refuses every call of this name, with its labels, from now on; `nil` ends it.
  package func refuse(_ call: String, with error: StoreError?) {
    state.withLock { $0.refused[call] = error }
  }

  /// Asks before each call, by its name with its labels, what becomes of it; `nil`: nothing unusual.
  package func faults(_ fault: (@Sendable (String) -> Fault?)?) {
    state.withLock { $0.fault = fault }
  }

  /// No call gets through from now on; returns once none is under way.
  package func die() async {
    await withCheckedContinuation { continuation in
      let isQuiet = state.withLock { state in
        state.isDead = true
        if state.underWay > 0 { state.waiters.append(continuation) }
        return state.underWay == 0
      }
      if isQuiet { continuation.resume() }
    }
  }

  /// As ``die()``, once so many more calls have begun.
  package func die(afterCalls count: Int) { state.withLock { $0.remaining = count } }

  /// The number of times that a call was made, by its name with its labels.
  package func count(of call: String) -> Int { state.withLock { $0.counts[call] ?? 0 } }

  /// Returns once a call of this name, with its labels, has been made or refused so often in all.
  package func called(_ call: String, times: Int = 1) async {
    await withCheckedContinuation { continuation in
      let isReached = state.withLock { state in
        if state.counts[call] ?? 0 >= times { return true }
        state.watchers.append((call, times, continuation))
        return false
      }
      if isReached { continuation.resume() }
    }
  }

  /// Only once its fault is chosen, as a test may change the faults when it sees the call.
  private func noteCall(_ call: String) {
    let reached = state.withLock { state in
      let count = state.counts[call, default: 0] + 1
      state.counts[call] = count
      defer { state.watchers.removeAll { $0.call == call && $0.times <= count } }
      return state.watchers.filter { $0.call == call && $0.times <= count }
    }
    for watcher in reached { watcher.continuation.resume() }
  }

  package func intercept<Value: Sendable>(
    _ call: String, _ body: @Sendable () async throws -> Value
  ) async throws -> Value {
    let refusal = state.withLock { state -> StoreError? in
      if let left = state.remaining {
        state.remaining = left - 1
        if left <= 0 { state.isDead = true }
      }
      if state.isDead { return .closed }
      if let failure = state.failure ?? state.refused[call] { return failure }
      if let (left, error) = state.refusal {
        state.refusal = left > 0 ? (left - 1, error) : nil
        if left == 0 { return error }
      }
      state.underWay += 1
      return nil
    }
    let fault = refusal == nil ? state.withLock { $0.fault }?(call) : nil
    noteCall(call)
    if let refusal { throw refusal }
    defer {
      let waiters = state.withLock { state in
        state.underWay -= 1
        let waiters = state.underWay == 0 ? state.waiters : []
        if state.underWay == 0 { state.waiters = [] }
        return waiters
      }
      for waiter in waiters { waiter.resume() }
    }
    switch fault {
    case .refused(let error): throw error
    case .unanswered(let error):
      _ = try await body()
      throw error
    case nil: return try await body()
    }
  }
}
