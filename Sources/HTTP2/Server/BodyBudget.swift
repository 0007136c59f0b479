import CNghttp2
import Synchronization

/// The memory for bodies of requests that all connections of a process share, over HTTP/1.1 and
/// HTTP/2.
///
/// Every connection may hold a small amount. Anything more needs a claim. There is no count of
/// bytes that one sender could exhaust: the limit is divided by the number of senders with claims,
/// and a sender's part by the number of its connections with claims. So a sender that arrives
/// during a flood has room, and `m` senders on `n` connections each hold at most `limit * (1 + ln
/// m) * (1 + ln n)`, because earlier ones may have had more.
package final class BodyBudget: Sendable {
  /// The budget of the whole process.
  package static let process = BodyBudget()

  /// Bytes that every connection may hold: more than a registration or a small send needs.
  package static let least = 16 * 1024
  /// Number of concurrent claims after which it is worth returning memory to the system.
  private static let flood = 32

  private struct Holders {
    /// Claims by sender; `nil` stands for all unauthenticated senders together.
    var senders: [String?: Int] = [:]
    var count = 0
    var peak = 0
  }

  private let limit: Int
  private let holders = Mutex(Holders())

  /// - Parameter limit: In bytes.
  package init(limit: Int = 16 * 1024 * 1024) { self.limit = limit }

  /// The number of claims.
  package var holderCount: Int { holders.withLock { $0.count } }

  /// A connection's right to hold more than ``BodyBudget/least``, as long as it lives.
  package final class Claim: Sendable {
    private let budget: BodyBudget
    private let sender: String?

    /// - Parameter sender: The authenticated sender; `nil` for an unauthenticated one.
    package init(on budget: BodyBudget, of sender: String? = nil) {
      self.budget = budget
      self.sender = sender
      budget.holders.withLock { holders in
        holders.senders[sender, default: 0] += 1
        holders.count += 1
        holders.peak = max(holders.peak, holders.count)
      }
    }

    /// Bytes that the connection may hold now for this sender; a single connection has only its own
    /// limits.
    package var share: Int {
      budget.holders.withLock { holders in
        guard holders.count > 1 else { return .max }
        let connections = holders.senders[sender] ?? 1
        return max(BodyBudget.least, budget.limit / holders.senders.count / connections)
      }
    }

    deinit {
      let isFloodOver = budget.holders.withLock { holders in
        let left = (holders.senders[sender] ?? 1) - 1
        holders.senders[sender] = left > 0 ? left : nil
        holders.count -= 1
        guard holders.count == 0 else { return false }
        defer { holders.peak = 0 }
        return holders.peak >= BodyBudget.flood
      }
      // Otherwise the allocator would keep the memory.
      if isFloodOver { belfry_trim_memory() }
    }
  }
}
