import CNghttp2
import Synchronization

/// The memory for bodies of requests that all connections of a process share, over HTTP/1.1 and
/// HTTP/2.
///
/// Every connection may hold a little. What is more needs a claim, and there is no count of bytes
/// that one sender could use up: the limit is divided by how many senders have claims, and the part
/// of a sender by how many connections have. So a sender that comes during a flood has room, and what
/// `m` senders on `n` connections each hold is at most `limit * (1 + ln m) * (1 + ln n)`, since
/// those that came first may have had more.
package final class BodyBudget: Sendable {
  /// Of the whole process.
  package static let process = BodyBudget()

  /// So much every connection may hold, in bytes: more than a registration or a small send has.
  package static let least = 16 * 1024
  /// With so many claims at once memory is worth being given back.
  private static let flood = 32

  private struct Holders {
    /// By sender; `nil` is all those together who have not shown who they are.
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

    /// - Parameter sender: Who has shown who they are; `nil` is a stranger.
    package init(on budget: BodyBudget, of sender: String? = nil) {
      self.budget = budget
      self.sender = sender
      budget.holders.withLock { holders in
        holders.senders[sender, default: 0] += 1
        holders.count += 1
        holders.peak = max(holders.peak, holders.count)
      }
    }

    /// Bytes that the connection may hold now for this sender; one that is alone has its own limits
    /// only.
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
      // The allocator would keep it.
      if isFloodOver { belfry_trim_memory() }
    }
  }
}
