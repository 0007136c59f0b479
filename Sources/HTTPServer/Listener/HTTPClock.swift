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

/// Where a listener reads the time that its limits are counted by.
package struct HTTPClock: Sendable {
  /// Nanoseconds that never step back; where they count from does not matter.
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

/// The present second in the form of RFC 9110, section 5.6.7, written once a second.
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
