/// Reads the dates in which senders and templates say how long a push may wait (spec `rest-api.md`
/// 5.1 and `templates.md` 7).
package enum ExpiryText {
  /// - Parameter text: `0`, ISO 8601 (`2030-01-05T10:00:00.5-08:00`, seconds, fraction, time and
  ///   zone may be missing, no zone means UTC), or `MM/dd/yyyy HH:mm:ss` in UTC, also with `AM` or
  ///   `PM`.
  /// - Returns: Whole seconds since 1970, 0 for `0`; `nil` when the text is no date.
  package static func seconds(_ text: String) -> Int64? {
    var reader = DateReader(Array(text.utf8))
    if reader.text.elementsEqual("0".utf8) { return 0 }
    return reader.isoDate() ?? reader.americanDate()
  }
}

/// Takes fixed pieces from a text; each attempt starts at its beginning.
private struct DateReader {
  let text: ArraySlice<UInt8>
  private var rest: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) {
    let trimmed = bytes.drop(while: \.isBlank)
    let end = trimmed.lastIndex { !$0.isBlank }.map { $0 + 1 } ?? trimmed.startIndex
    text = trimmed[..<end]
    rest = text
  }

  mutating func isoDate() -> Int64? {
    rest = text
    guard let year = number(4...4), take("-"), let month = number(2...2), take("-"),
      let day = number(2...2), let days = Self.days(year, month, day)
    else { return nil }
    if rest.isEmpty { return days * 86_400 }
    guard take("T") || take("t") || take(" "), let time = time(isLong: true), let zone = zone()
    else { return nil }
    return rest.isEmpty ? days * 86_400 + time - zone : nil
  }

  mutating func americanDate() -> Int64? {
    rest = text
    guard let month = number(1...2), take("/"), let day = number(1...2), take("/"),
      let year = number(4...4), let days = Self.days(year, month, day)
    else { return nil }
    if rest.isEmpty { return days * 86_400 }
    guard take(" "), var time = time(isLong: false) else { return nil }
    if take(" AM") || take(" am") {
      if time >= 12 * 3600 { time -= 12 * 3600 }
    } else if take(" PM") || take(" pm"), time < 12 * 3600 {
      time += 12 * 3600
    }
    return rest.isEmpty ? days * 86_400 + time : nil
  }

  private mutating func time(isLong: Bool) -> Int64? {
    let digits = isLong ? 2...2 : 1...2
    guard let hour = number(digits), hour < 24, take(":"), let minute = number(2...2), minute < 60
    else { return nil }
    var second: Int64 = 0
    if take(":") {
      guard let value = number(2...2), value <= 60 else { return nil }
      second = value
      if take("."), number(1...9) == nil { return nil }
    }
    return hour * 3600 + minute * 60 + second
  }

  /// Seconds east of UTC.
  private mutating func zone() -> Int64? {
    if rest.isEmpty || take("Z") || take("z") { return 0 }
    let sign: Int64
    if take("+") { sign = 1 } else if take("-") { sign = -1 } else { return nil }
    guard let hours = number(2...2), hours < 24 else { return nil }
    _ = take(":")
    if rest.isEmpty { return sign * hours * 3600 }
    guard let minutes = number(2...2), minutes < 60 else { return nil }
    return sign * (hours * 3600 + minutes * 60)
  }

  private mutating func number(_ length: ClosedRange<Int>) -> Int64? {
    let digits = rest.prefix(length.upperBound).prefix(while: \.isDigit)
    guard digits.count >= length.lowerBound else { return nil }
    rest = rest.dropFirst(digits.count)
    return digits.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
  }

  private mutating func take(_ word: String) -> Bool {
    guard rest.starts(with: word.utf8) else { return false }
    rest = rest.dropFirst(word.utf8.count)
    return true
  }

  /// Days since 1970-01-01 in the Gregorian calendar; `nil` when there is no such day.
  private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64? {
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    let lengths: [Int64] = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    guard year >= 1, (1...12).contains(month), day >= 1, day <= lengths[Int(month - 1)] else {
      return nil
    }
    let before = year - 1
    let leaps = before / 4 - before / 100 + before / 400
    let earlier = lengths.prefix(Int(month - 1)).reduce(0, +)
    return before * 365 + leaps + earlier + day - 1 - 719_162
  }
}
