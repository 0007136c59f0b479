/// A rate limit: `burst` at once, refilled at `rate` a second, by the emulator's clock.
struct TokenBucket: Sendable {
  private var tokens = -1.0
  private var filledAt: Int64 = 0

  /// Takes one token if there is one.
  /// - Parameters:
  ///   - rate: Tokens a second, above 0.
  ///   - burst: The most that can be saved up, at least 1; a new bucket is full.
  ///   - now: In ms.
  mutating func take(rate: Double, burst: Double, now: Int64) -> Bool {
    if tokens < 0 {
      tokens = burst
    } else {
      let seconds = Double(max(0, now - filledAt)) / 1000
      tokens = min(burst, tokens + seconds * rate)
    }
    filledAt = now
    guard tokens >= 1 else { return false }
    tokens -= 1
    return true
  }
}

/// A rate limit for each of many things; a new one of each is full.
struct RateTable<Key: Hashable & Sendable>: Sendable {
  private var buckets: [Key: TokenBucket] = [:]

  /// So many at once; then all start afresh, rather than memory growing without end.
  private static var capacity: Int { 100_000 }

  /// Takes one, unless the limit is off.
  /// - Parameters:
  ///   - rate: A second; `nil` for no limit.
  ///   - burst: By default the rate, at least 1.
  ///   - now: In ms.
  mutating func take(_ key: Key, rate: Double?, burst: Double? = nil, now: Int64) -> Bool {
    guard let rate else { return true }
    if buckets.count >= Self.capacity, buckets[key] == nil { buckets = [:] }
    return buckets[key, default: TokenBucket()].take(
      rate: rate, burst: burst ?? max(1, rate), now: now)
  }
}
