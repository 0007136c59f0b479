import Foundation
import HubCore
import Synchronization

/// Holds a sender to its push service's rate: a full bucket at first, refilled at a rate that grows
/// to its full height over a while, as services ask of those who begin to send. Nodes that send for
/// the same project have equal shares of it.
final class SendPace: Sendable {
  struct Limit: Sendable {
    /// Pushes a second, in the end.
    var full: Double
    /// Pushes a second to begin with, and pushes at once.
    var start: Double
    /// How long it takes from one to the other; after as long a rest it begins again.
    var ramp: Duration
  }

  private struct State {
    /// Pushes that may go now; below zero when some wait.
    var level: Double
    var countedAt: Date
    var rampBegan: Date
    /// When the last who were admitted could go.
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

  /// Returns when so many pushes may go. Those who ask first go first.
  func admit(_ count: Int) async {
    let wait = reserve(count)
    // A cancelled task has no use for waiting; what it sends then ends at once.
    if wait > 0 { try? await clock.sleep(.seconds(wait)) }
  }

  /// - Returns: How long to wait for them, in seconds.
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
