import Synchronization

/// Calls that share a bound on how many are under way at once, and so on how many connections they
/// use: HTTP/1.1 has one for each. Those over the bound wait in order of arrival.
package struct HTTPLane: Sendable {
  let id: UInt64
  let limit: Int

  private static let counter = Atomic<UInt64>(0)

  /// - Parameter limit: From 1.
  package init(limit: Int) {
    id = Self.counter.add(1, ordering: .relaxed).newValue
    self.limit = max(1, limit)
  }
}
