package import Foundation

/// The time as the hub sees it; tests pass their own.
package struct HubClock: Sendable {
  package let now: @Sendable () -> Date
  /// The time of a clock that nobody sets: ``now`` as it was when the process started, and what has
  /// passed since. For everything that rests, waits or has a window; ``now`` is for what people
  /// wrote or will read.
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

  /// This clock, ahead by so many seconds as `offset` says at the moment; ``steady`` by as many as
  /// it says now.
  package func ahead(by offset: @escaping @Sendable () -> TimeInterval) -> HubClock {
    let first = offset()
    return HubClock(
      now: { [now] in now().addingTimeInterval(offset()) },
      steady: { [steady] in steady().addingTimeInterval(first) }, sleep: sleep)
  }
}
