import Foundation
import Synchronization

/// Slows down anyone who guesses passwords: so many failures within a quarter of an hour, then no more
/// tries until it has passed. Counted for a user from one address, so that nobody locks another
/// out, and for an address as a whole.
final class FailureLimiter: Sendable {
  private struct Key: Hashable {
    let address: String
    /// `nil` counts all users of the address.
    let user: String?
  }

  private struct Count {
    var failures: Int
    var until: Date
  }

  private static let window: TimeInterval = 900
  /// What is remembered is bounded: beyond it the oldest windows go first.
  private static let limit = 50_000

  private let perUser: Int
  private let perAddress: Int
  private let counts = Mutex<[Key: Count]>([:])

  init(perUser: Int = 10, perAddress: Int = 100) {
    self.perUser = perUser
    self.perAddress = perAddress
  }

  /// - Returns: How many seconds to wait; `nil` when a try is allowed.
  func wait(user: String, address: String, at now: Date) -> Int? {
    counts.withLock { counts in
      let blocked = [
        (Key(address: address, user: user), perUser),
        (Key(address: address, user: nil), perAddress),
      ]
      .compactMap { key, limit -> Date? in
        guard let count = counts[key], count.until > now, count.failures >= limit else {
          return nil
        }
        return count.until
      }
      return blocked.max().map { max(1, Int($0.timeIntervalSince(now).rounded(.up))) }
    }
  }

  func failed(user: String, address: String, at now: Date) {
    counts.withLock { counts in
      if counts.count >= Self.limit {
        counts = counts.filter { $0.value.until > now }
        if counts.count >= Self.limit { counts = [:] }
      }
      for key in [Key(address: address, user: user), Key(address: address, user: nil)] {
        var count = counts[key] ?? Count(failures: 0, until: now)
        if count.until <= now {
          count = Count(failures: 0, until: now.addingTimeInterval(Self.window))
        }
        count.failures += 1
        counts[key] = count
      }
    }
  }

  func succeeded(user: String, address: String) {
    counts.withLock { $0[Key(address: address, user: user)] = nil }
  }
}
