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
    if text.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
      return Int32(value) ?? .max
    }
    guard let date = date(String(value)) else { return nil }
    return Int32(clamping: max(0, date - now))
  }

  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// Seconds since 1970 of an IMF-fixdate: `Tue, 14 Nov 2023 22:14:50 GMT`.
  private static func date(_ text: String) -> Int64? {
    let words = text.split(separator: " ")
    guard words.count == 6, words[0].hasSuffix(","), words[5] == "GMT",
      let day = Int64(words[1]), (1...31).contains(day),
      let month = months.firstIndex(of: String(words[2])).map({ Int64($0) + 1 }),
      let year = Int64(words[3]), (1970...9999).contains(year)
    else { return nil }
    let time = words[4].split(separator: ":").compactMap { Int64($0) }
    guard time.count == 3, (0..<24).contains(time[0]), (0..<60).contains(time[1]),
      (0...60).contains(time[2])
    else { return nil }
    return days(year, month, day) * 86_400 + time[0] * 3600 + time[1] * 60 + time[2]
  }

  /// Days since 1970-01-01 of a Gregorian date from 1970 on: years run from March, so that a leap
  /// day is a year's last.
  private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
    let march = (month + 9) % 12
    let years = year - march / 10
    return 365 * years + years / 4 - years / 100 + years / 400 + (march * 306 + 5) / 10 + day - 1
      - 719_468
  }
}
