package import Foundation
package import HubCore
import Synchronization

/// A ``HubClock`` that stands still until a test moves it.
///
/// ```swift
/// let clock = ManualClock()
/// let service = HubService(store: store, directory: directory, dispatcher: d, clock: clock.hubClock)
/// await clock.sleepers(1)          // something waits …
/// clock.advance(by: .seconds(30))  // … and now it goes on
/// ```
package final class ManualClock: Sendable {
  private struct Sleeper {
    /// In the time that nobody sets.
    let deadline: Date
    let continuation: CheckedContinuation<Void, any Error>
  }

  private struct Watcher {
    let count: Int
    let continuation: CheckedContinuation<Void, Never>
  }

  private struct State {
    var steady: Date
    /// The sum of all steps of the time of day, in seconds.
    var offset = 0.0
    var now: Date { steady.addingTimeInterval(offset) }
    var nextID = 0
    var sleepers: [Int: Sleeper] = [:]
    var watchers: [Watcher] = []
  }

  private let state: Mutex<State>

  /// - Parameter now: Where the clock starts; 2030-01-01T00:00:00Z unless told.
  package init(now: Date = Date(timeIntervalSince1970: 1_893_456_000)) {
    state = Mutex(State(steady: now))
  }

  /// The clock for the code under test.
  package var hubClock: HubClock {
    HubClock(
      now: { self.now }, steady: { self.state.withLock { $0.steady } },
      sleep: { try await self.sleep($0) })
  }

  package var now: Date { state.withLock { $0.now } }

  /// Sets the clock that people see, forward or back, as an operator does: no time passes.
  package func step(by seconds: Double) { state.withLock { $0.offset += seconds } }

  /// Moves the clock and wakes everyone whose time has come, the earliest first.
  package func advance(by duration: Duration) {
    let (seconds, attoseconds) = duration.components
    set(now.addingTimeInterval(Double(seconds) + Double(attoseconds) / 1e18))
  }

  /// Lets time pass until a moment; to one in the past the clock is set, as ``step(by:)`` does.
  package func set(_ moment: Date) {
    let due = state.withLock { state in
      let passed = moment.timeIntervalSince(state.now)
      if passed < 0 { state.offset += passed }
      // Not by adding what has passed: a sleeper's deadline is met exactly.
      if passed > 0 { state.steady = moment.addingTimeInterval(-state.offset) }
      let due = state.sleepers.filter { $0.value.deadline <= state.steady }
      for id in due.keys { state.sleepers[id] = nil }
      return due.values.sorted { $0.deadline < $1.deadline }
    }
    for sleeper in due { sleeper.continuation.resume() }
  }

  /// Returns once at least `count` sleepers wait on this clock.
  package func sleepers(_ count: Int) async {
    await withCheckedContinuation { continuation in
      let reached = state.withLock { state in
        if state.sleepers.count >= count { return true }
        state.watchers.append(Watcher(count: count, continuation: continuation))
        return false
      }
      if reached { continuation.resume() }
    }
  }

  /// When the next sleeper wakes; `nil` when none sleeps.
  package var nextDeadline: Date? {
    state.withLock { state in
      state.sleepers.values.map(\.deadline).min()?.addingTimeInterval(state.offset)
    }
  }

  private func sleep(_ duration: Duration) async throws {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        add(id, duration, continuation)
        // A cancellation that came before the line above found nobody to wake.
        if Task.isCancelled { cancel(id) }
      }
    } onCancel: {
      cancel(id)
    }
  }

  private func add(
    _ id: Int, _ duration: Duration, _ continuation: CheckedContinuation<Void, any Error>
  ) {
    let (seconds, attoseconds) = duration.components
    let watchers = state.withLock { state -> [Watcher] in
      let deadline = state.steady.addingTimeInterval(
        Double(seconds) + Double(attoseconds) / 1e18)
      guard deadline > state.steady else {
        continuation.resume()
        return []
      }
      state.sleepers[id] = Sleeper(deadline: deadline, continuation: continuation)
      let reached = state.watchers.filter { $0.count <= state.sleepers.count }
      state.watchers.removeAll { $0.count <= state.sleepers.count }
      return reached
    }
    for watcher in watchers { watcher.continuation.resume() }
  }

  private func cancel(_ id: Int) {
    let sleeper = state.withLock { $0.sleepers.removeValue(forKey: id) }
    sleeper?.continuation.resume(throwing: CancellationError())
  }
}
