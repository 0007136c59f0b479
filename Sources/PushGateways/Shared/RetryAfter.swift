import Wire

/// The `Retry-After` header (RFC 9110, section 10.2.3).
enum RetryAfter {
  /// The seconds to wait: the number given, or the time left to the date given (0 when past).
  ///
  /// - Parameter now: In seconds since 1970.
  /// - Returns: `nil` for anything unreadable, which leaves the pause to the caller. A number too
  ///   large comes back as the largest there is, for the caller to cap at what is left.
  static func seconds(_ value: some StringProtocol, now: Int64) -> Int32? {
    let text = Array(value.utf8)
    guard !text.isEmpty else { return nil }
    if text.allSatisfy(\.isDigit) {
      return Int32(value) ?? .max
    }
    guard let date = WireDate.parseHTTP(value) else { return nil }
    return Int32(clamping: max(0, Int64(date) - now))
  }
}
