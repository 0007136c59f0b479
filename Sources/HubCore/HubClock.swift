package import Foundation

/// The time as the hub sees it; tests pass their own.
package struct HubClock: Sendable {
  package let now: @Sendable () -> Date
  /// Monotonic time: ``now`` at the start of the process, plus the time elapsed since; shared by
  /// nodes that share a database. For timeouts, delays and windows; ``now`` is for times that
  /// people wrote or will read.
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

  /// This clock, with a time of day on which two of three agree: ``now`` of this clock, ``now`` of
  /// the other, and ``steady``. For tokens, which push services compare with the real time: one
  /// wrong clock, the database's or the machine's, does no harm.
  package func agreeing(with other: HubClock) -> HubClock {
    HubClock(
      now: { [now, steady] in [now(), steady(), other.now()].sorted()[1] }, steady: steady,
      sleep: sleep)
  }
}
