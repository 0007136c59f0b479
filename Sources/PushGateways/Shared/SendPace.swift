import Foundation
import HubCore
import Synchronization

/// Limits a sender to its push service's rate: a token bucket that is full at first, and whose
/// refill rate grows to its maximum over a ramp-up time, as services ask of new senders. Nodes that
/// send for the same project have equal shares of it.
final class SendPace: Sendable {
  struct Limit: Sendable {
    /// Maximum rate in pushes per second.
    var full: Double
    /// Initial rate in pushes per second, and the maximum burst.
    var start: Double
    /// Time in which the rate grows from one to the other; after an equal time of rest it begins
    /// again.
    var ramp: Duration
  }

  private struct State {
    /// Number of pushes that may be sent now; below zero when some wait.
    var level: Double
    var countedAt: Date
    var rampBegan: Date
    /// The time at which the last admitted pushes may be sent.
    var busyUntil: Date
  }

  private let limit: Limit
  private let nodes: NodeCount
  private let clock: HubClock
  private let state: Mutex<State>

  init(_ limit: Limit, of nodes: NodeCount = NodeCount(), clock: HubClock) {
    self.limit = limit
    self.nodes = nodes
    self.clock = clock
    let now = clock.steady()
    state = Mutex(State(level: limit.start, countedAt: now, rampBegan: now, busyUntil: now))
  }

  /// Waits until so many pushes may be sent. Callers are served in order.
  func admit(_ count: Int) async {
    let wait = reserve(count)
    // A cancelled task need not wait: its pushes then fail at once.
    if wait > 0 { try? await clock.sleep(.seconds(wait)) }
  }

  /// - Returns: Time to wait for them, in seconds.
  private func reserve(_ count: Int) -> Double {
    let now = clock.steady()
    return state.withLock { state in
      let ramp = limit.ramp / .seconds(1)
      let elapsed = max(0, now.timeIntervalSince(state.countedAt))
      if now.timeIntervalSince(state.busyUntil) > ramp { state.rampBegan = now }
      let grown = min(1, max(0, now.timeIntervalSince(state.rampBegan)) / ramp)
      let share = 1 / Double(nodes.value)
      let rate = (limit.start + (limit.full - limit.start) * grown) * share
      state.level = min(limit.start * share, state.level + elapsed * rate) - Double(count)
      state.countedAt = now
      let wait = max(0, -state.level / rate)
      state.busyUntil = now + wait
      return wait
    }
  }
}
