package import Foundation

/// The time as the hub sees it; tests pass their own.
package struct HubClock: Sendable {
  package let now: @Sendable () -> Date
  /// The time of a clock that nobody sets: ``now`` as it was when the process started, and what has
  /// passed since; nodes that share a database share it. For everything that rests, waits or has a
  /// window; ``now`` is for what people wrote or will read.
  package let steady: @Sendable () -> Date
  /// Returns after the given time, or throws `CancellationError`.
  package let sleep: @Sendable (Duration) async throws -> Void

  package init(
    now: @escaping @Sendable () -> Date, steady: @escaping @Sendable () -> Date,
    sleep: @escaping @Sendable (Duration) async throws -> Void
  ) {
    self.now = now
    self.steady = steady
    self.sleep = sleep
  }

  /// The machine's clock.
  package static let system: HubClock = {
    let (wall, start) = (Date(), ContinuousClock.now)
    return HubClock(
      now: { Date() },
      steady: { wall.addingTimeInterval(start.duration(to: .now) / .seconds(1)) },
      sleep: { try await Task.sleep(for: $0) })
  }()
}
