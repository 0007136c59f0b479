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
