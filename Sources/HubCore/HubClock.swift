package import Foundation

/// The time as the hub sees it; tests pass their own.
package struct HubClock: Sendable {
  package let now: @Sendable () -> Date
  /// Returns after the given time, or throws `CancellationError`.
  package let sleep: @Sendable (Duration) async throws -> Void

  package init(
    now: @escaping @Sendable () -> Date,
    sleep: @escaping @Sendable (Duration) async throws -> Void
  ) {
    self.now = now
    self.sleep = sleep
  }

  /// The machine's clock.
  package static let system = HubClock(now: { Date() }, sleep: { try await Task.sleep(for: $0) })
}
