import Dispatch
import Synchronization
import Wire

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The clock by which a listener counts its limits.
package struct HTTPClock: Sendable {
  /// Monotonic nanoseconds from an arbitrary origin.
  package let now: @Sendable () -> UInt64

  package init(now: @escaping @Sendable () -> UInt64) { self.now = now }

  package static let system = HTTPClock { DispatchTime.now().uptimeNanoseconds }
}

extension HTTPClock {
  /// The time at which a limit that starts at `start` expires.
  static func deadline(_ limit: Duration, from start: UInt64) -> UInt64 {
    let (seconds, attoseconds) = limit.components
    let nanoseconds = Double(seconds) * 1e9 + Double(attoseconds) / 1e9
    let end = Double(start) + max(0, nanoseconds)
    return UInt64(exactly: end.rounded()) ?? .max
  }
}

/// The current date in the format of RFC 9110, section 5.6.7, formatted once per second.
final class HTTPDate: Sendable {
  private let last = Mutex<(second: time_t, text: String)>((0, ""))

  var now: String {
    let second = time(nil)
    return last.withLock { last in
      if last.second != second { last = (second, WireDate.http(second)) }
      return last.text
    }
  }
}
