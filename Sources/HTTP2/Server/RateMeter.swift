/// How often something may happen: so many times at once, and as many in each second on average.
/// A pure value; the caller brings the time.
struct RateMeter: Sendable {
  private let interval: UInt64
  private let burst: UInt64
  /// When all that was counted so far will have been paid for, in the caller's nanoseconds.
  private var paidAt: UInt64 = 0

  /// - Parameter perSecond: From 1; also how many may come at once.
  init(perSecond: Int) {
    let count = UInt64(max(1, min(perSecond, 1_000_000_000)))
    interval = 1_000_000_000 / count
    burst = interval * count
  }

  /// Counts one more; false when it is one too many.
  mutating func allows(at now: UInt64) -> Bool {
    let paid = max(paidAt, now) + interval
    guard paid - now <= burst else { return false }
    paidAt = paid
    return true
  }
}
