import CNghttp2
import Synchronization

/// The memory for bodies of requests that all connections of a process share, over HTTP/1.1 and
/// HTTP/2.
///
/// There is no count of bytes that one sender could use up: each connection that holds a body may
/// hold the limit divided by how many do. So whoever comes during a flood has room, and what all of
/// `n` connections hold is at most `limit * (1 + ln n)`, since those that came first may have had
/// more.
package final class BodyBudget: Sendable {
  /// Of the whole process.
  package static let process = BodyBudget()

  /// So much every connection may hold, in bytes: more than a registration or a small send has.
  package static let least = 16 * 1024
  /// With so many connections at once memory is worth being given back.
  private static let flood = 32

  private let limit: Int
  private let holders = Atomic(0)
  private let peak = Atomic(0)

  /// - Parameter limit: In bytes.
  package init(limit: Int = 16 * 1024 * 1024) { self.limit = limit }

  /// Bytes of bodies that one connection may hold now; one that is alone has its own limits only.
  package var share: Int {
    let count = holders.load(ordering: .relaxed)
    return count > 1 ? max(Self.least, limit / count) : .max
  }

  /// How many connections hold something.
  package var holderCount: Int { holders.load(ordering: .relaxed) }

  /// Counts a connection among those that hold something, as long as it lives.
  package final class Claim: Sendable {
    private let budget: BodyBudget

    package init(on budget: BodyBudget) {
      self.budget = budget
      let count = budget.holders.add(1, ordering: .relaxed).newValue
      budget.peak.max(count, ordering: .relaxed)
    }

    deinit {
      guard budget.holders.subtract(1, ordering: .relaxed).newValue == 0 else { return }
      let peak = budget.peak.exchange(0, ordering: .relaxed)
      // The allocator would keep it.
      if peak >= BodyBudget.flood { belfry_trim_memory() }
    }
  }
}
