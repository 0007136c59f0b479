import Foundation

/// The one clock of the emulator, in milliseconds since the Unix epoch; token ages, expirations,
/// rate windows and store times all follow it (docs/protocol/emulator.md, section 2.5).
struct EmulatorClock: Sendable {
  enum Mode: Sendable, Equatable {
    /// The machine's time plus an offset in ms.
    case real(offset: Int64)
    /// A stopped time that changes only on request.
    case manual(now: Int64)
  }

  private(set) var mode: Mode

  /// Real time, or stopped at `now`.
  init(manual now: Int64? = nil) {
    mode = now.map { .manual(now: $0) } ?? .real(offset: 0)
  }

  /// Milliseconds since the Unix epoch.
  var now: Int64 {
    switch mode {
    case .real(let offset): Self.machineTime &+ offset
    case .manual(let now): now
    }
  }

  var isManual: Bool { if case .manual = mode { true } else { false } }

  mutating func setReal() { mode = .real(offset: 0) }

  mutating func setManual(now: Int64) { mode = .manual(now: now) }

  /// Advances by `milliseconds`, in either mode.
  mutating func advance(by milliseconds: Int64) {
    switch mode {
    case .real(let offset): mode = .real(offset: Self.sum(offset, milliseconds))
    case .manual(let now): mode = .manual(now: Self.sum(now, milliseconds))
    }
  }

  /// The latest time that the control API accepts: the year 9999, far from overflow.
  static let latest: Int64 = 253_402_300_799_999

  private static func sum(_ a: Int64, _ b: Int64) -> Int64 {
    let (sum, overflow) = a.addingReportingOverflow(b)
    if overflow { return b > 0 ? latest : -latest }
    return min(max(sum, -latest), latest)
  }

  private static var machineTime: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}

/// A rate limit: `burst` at once, refilled at `rate` a second, by the emulator's clock.
struct TokenBucket: Sendable {
  private var tokens = -1.0
  private var filledAt: Int64 = 0

  /// Takes one token if there is one.
  /// - Parameters:
  ///   - rate: Tokens a second, above 0.
  ///   - burst: Maximum number of saved tokens, at least 1; a new bucket is full.
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

/// A rate limit for each of many keys; a new one is full.
struct RateTable<Key: Hashable & Sendable>: Sendable {
  private var buckets: [Key: TokenBucket] = [:]

  /// Maximum number of keys; beyond it all limits are reset, so that memory stays bounded.
  private static var capacity: Int { 100_000 }

  /// Takes one, unless the limit is off.
  /// - Parameters:
  ///   - rate: Tokens per second; `nil` for no limit.
  ///   - burst: Defaults to the rate, at least 1.
  ///   - now: In ms.
  mutating func take(_ key: Key, rate: Double?, burst: Double? = nil, now: Int64) -> Bool {
    guard let rate else { return true }
    if buckets.count >= Self.capacity, buckets[key] == nil { buckets = [:] }
    return buckets[key, default: TokenBucket()].take(
      rate: rate, burst: burst ?? max(1, rate), now: now)
  }
}
