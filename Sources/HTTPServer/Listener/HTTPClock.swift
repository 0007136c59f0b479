import Dispatch

/// Where a listener reads the time that its limits are counted by.
package struct HTTPClock: Sendable {
  /// Nanoseconds that never step back; from which moment on is of no account.
  package let now: @Sendable () -> UInt64

  package init(now: @escaping @Sendable () -> UInt64) { self.now = now }

  package static let system = HTTPClock { DispatchTime.now().uptimeNanoseconds }
}

extension HTTPClock {
  /// When a limit that starts to run at `start` is over.
  static func deadline(_ limit: Duration, from start: UInt64) -> UInt64 {
    let (seconds, attoseconds) = limit.components
    let nanoseconds = Double(seconds) * 1e9 + Double(attoseconds) / 1e9
    let end = Double(start) + max(0, nanoseconds)
    return UInt64(exactly: end.rounded()) ?? .max
  }
}
