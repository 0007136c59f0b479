import Synchronization
import Wire

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

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
