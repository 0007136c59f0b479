import Synchronization

/// Calls that share a bound on how many are under way at once, and so on how many connections they
/// use: HTTP/1.1 has one for each. Those over the bound wait in order of arrival.
package struct HTTPLane: Sendable {
  private final class Meter: Sendable {
    let calls = Atomic<Int>(0)
  }

  let id: UInt64
  package let limit: Int
  private let meter = Meter()

  private static let counter = Atomic<UInt64>(0)

  /// - Parameter limit: From 1.
  package init(limit: Int) {
    id = Self.counter.add(1, ordering: .relaxed).newValue
    self.limit = max(1, limit)
  }

  /// How many calls are under way.
  package var inFlight: Int { meter.calls.load(ordering: .relaxed) }

  /// For sessions: a call has begun.
  func began() { meter.calls.add(1, ordering: .relaxed) }

  /// For sessions: a call that had begun has its answer.
  func ended() { meter.calls.subtract(1, ordering: .relaxed) }
}
