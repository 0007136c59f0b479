#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// Dates in the forms of the protocol (docs/protocol/rest.md, sections 1.5, 4.1, 5.1, 5.6).
///
/// Written by hand because formatters cost more than the rest of an installation, and because no
/// formatter accepts all the forms that clients send.
package enum WireDate {
  /// The date of an installation that never expires; when read, it becomes `nil`.
  package static let never = "9999-12-31T23:59:59.9999999Z"

  /// Parses a date: `2030-10-01T10:00+0000`, `2030-10-01T10:00:00.1234567Z`, an offset with or
  /// without a colon, no zone (then UTC), a date alone, `2030-10-01'T'10:00:00` from a widely
  /// copied sample, and `10/01/2030 10:00:00`, the invariant form of .NET.
  package static func parse(_ text: String) -> Date? {
    var scanner = DateScanner(text)
    return scanner.date()
  }

  /// Whether a date is so late that it means "never".
  package static func isNever(_ date: Date) -> Bool {
    date.timeIntervalSince1970 >= lastSecond
  }

  /// 9999-12-31T23:59:59Z.
  private static let lastSecond: Double = 253_402_300_799

  /// `2030-01-05T10:00:00.1234567Z`: always seven digits.
  package static func precise(_ date: Date) -> String {
    let (stamp, ticks) = parts(date)
    let digits = String(ticks)
    return stamp + "." + String(repeating: "0", count: 7 - digits.count) + digits + "Z"
  }

  /// `2030-01-05T10:00:01.12Z`: as many digits as necessary, none for a whole second.
  package static func trimmed(_ date: Date) -> String {
    var text = precise(date).dropLast()
    while text.last == "0" { text.removeLast() }
    if text.last == "." { text.removeLast() }
    return text + "Z"
  }

  /// `2030-01-05T10:00:00Z`: whole seconds, as Atom documents write them (docs/protocol/rest.md,
  /// section 1.5).
  package static func seconds(_ date: Date) -> String { precise(date).prefix(19) + "Z" }

  /// `2030-01-05T10:00:00.123Z`: three digits, as registrations write them (docs/protocol/rest.md,
  /// section 3.3).
  package static func milliseconds(_ date: Date) -> String { precise(date).prefix(23) + "Z" }

  /// `8/14/2019 4:58:19 AM`, UTC, as error details write it (docs/protocol/rest.md, section 1.6).
  package static func american(_ date: Date) -> String {
    let (year, month, day, second) = fields(wholeSeconds(date))
    let hour = second / 3600
    var text = String(month)
    text.reserveCapacity(24)
    text += "/"
    text += String(day)
    text += "/"
    text += String(year)
    text += " "
    text += String(hour % 12 == 0 ? 12 : hour % 12)
    text += ":"
    text += two(second / 60 % 60)
    text += ":"
    text += two(second % 60)
    text += hour < 12 ? " AM" : " PM"
    return text
  }

  private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// `Sat, 05 Jan 2030 10:00:00 GMT` (RFC 9110, section 5.6.7).
  /// - Parameter seconds: Since 1970, of the years 1 to 9999.
  package static func http(_ seconds: Int) -> String {
    let (year, month, day, second) = fields(seconds)
    let weekday = weekdays[(((seconds - second) / 86_400 + 4) % 7 + 7) % 7]
    let years = String(year)
    return "\(weekday), \(two(day)) \(months[month - 1]) "
      + String(repeating: "0", count: max(0, 4 - years.count)) + years
      + " \(two(second / 3600)):\(two(second / 60 % 60)):\(two(second % 60)) GMT"
  }

  /// Parses the form of ``http(_:)`` to seconds since 1970; `nil` for anything else and for times
  /// before 1970.
  package static func parseHTTP(_ text: some StringProtocol) -> Int? {
    let words = text.split(separator: " ")
    guard words.count == 6, words[0].hasSuffix(","), words[5] == "GMT",
      let month = months.firstIndex(where: { $0 == words[2] }),
      let year = Int(words[3]), (1970...9999).contains(year),
      let day = Int(words[1]), (1...31).contains(day)
    else { return nil }
    let time = words[4].split(separator: ":").compactMap { Int($0) }
    guard time.count == 3, (0..<24).contains(time[0]), (0..<60).contains(time[1]),
      (0...60).contains(time[2])
    else { return nil }
    return days(year: year, month: month + 1, day: day) * 86_400 + time[0] * 3600 + time[1] * 60
      + time[2]
  }

  private static func parts(_ date: Date) -> (stamp: String, ticks: Int) {
    let seconds = min(max(date.timeIntervalSince1970, firstSecond), lastSecond + 0.999_999_9)
    var whole = Int(seconds.rounded(.down))
    var ticks = Int(((seconds - Double(whole)) * 1e7).rounded())
    // A `Date` represents current times to a quarter of a microsecond. If whole microseconds give
    // the same value, the seventh digit is only a rounding error.
    let microseconds = (ticks + 5) / 10
    if Date(timeIntervalSince1970: Double(whole) + Double(microseconds) / 1e6) == date {
      ticks = microseconds * 10
    }
    if ticks >= 10_000_000 {
      ticks = 0
      whole += 1
    }
    if whole > Int(lastSecond) { (whole, ticks) = (Int(lastSecond), 9_999_999) }
    let (year, month, day, second) = fields(whole)
    let years = String(year)
    let date = String(repeating: "0", count: 4 - years.count) + years + "-\(two(month))-\(two(day))"
    let time = "\(two(second / 3600)):\(two(second / 60 % 60)):\(two(second % 60))"
    return (date + "T" + time, ticks)
  }

  /// 0001-01-01T00:00:00Z.
  private static let firstSecond: Double = -62_135_596_800

  private static func wholeSeconds(_ date: Date) -> Int {
    Int(min(max(date.timeIntervalSince1970, firstSecond), lastSecond).rounded(.down))
  }

  private static func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }

  /// The proleptic Gregorian date and the second of the day (after Hinnant, "chrono-Compatible
  /// Low-Level Date Algorithms").
  private static func fields(_ seconds: Int) -> (year: Int, month: Int, day: Int, second: Int) {
    let second = ((seconds % 86_400) + 86_400) % 86_400
    let shifted = (seconds - second) / 86_400 + 719_468
    let era = shifted / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra =
      (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day, second)
  }

  fileprivate static func days(year: Int, month: Int, day: Int) -> Int {
    let year = month <= 2 ? year - 1 : year
    let era = year / 400
    let yearOfEra = year - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return era * 146_097 + dayOfEra - 719_468
  }
}

/// Parses one date from left to right.
private struct DateScanner {
  private let bytes: [UInt8]
  private var position = 0

  init(_ text: String) {
    bytes = text.utf8.filter { $0 != UInt8(ascii: "'") }
    while position < bytes.count, bytes[position] == 0x20 { position += 1 }
  }

  mutating func date() -> Date? {
    guard let (year, month, day) = calendarDate(), (1...9999).contains(year),
      (1...12).contains(month), (1...Self.daysIn(month, of: year)).contains(day)
    else { return nil }
    var seconds = Double(WireDate.days(year: year, month: month, day: day)) * 86_400
    var fraction = 0.0
    if take("T") || take("t") || take(" ") {
      guard let time = timeOfDay(), let offset = zone() else { return nil }
      // The fraction last: only whole seconds add up without rounding.
      seconds += Double(time.seconds - offset)
      fraction = time.fraction
    }
    while take(" ") {}
    guard position == bytes.count else { return nil }
    return Date(timeIntervalSince1970: seconds + fraction)
  }

  private mutating func calendarDate() -> (year: Int, month: Int, day: Int)? {
    if bytes.count - position >= 3, bytes[position + 2] == UInt8(ascii: "/") {
      guard let month = number(2), take("/"), let day = number(2), take("/"),
        let year = number(4)
      else { return nil }
      return (year, month, day)
    }
    guard let year = number(4), take("-"), let month = number(2), take("-"),
      let day = number(2)
    else { return nil }
    return (year, month, day)
  }

  private mutating func timeOfDay() -> (seconds: Int, fraction: Double)? {
    guard let hour = number(2), hour < 24, take(":"), let minute = number(2), minute < 60
    else { return nil }
    let seconds = hour * 3600 + minute * 60
    guard take(":") else { return (seconds, 0) }
    guard let second = number(2), second <= 60 else { return nil }
    guard take(".") || take(",") else { return (seconds + second, 0) }
    var (digits, scale) = (0, 1.0)
    let start = position
    while position < bytes.count, let digit = digit(bytes[position]) {
      // Nine digits are more than a `Date` can represent; further ones are skipped.
      if position - start < 9 { (digits, scale) = (digits * 10 + digit, scale * 10) }
      position += 1
    }
    return position > start ? (seconds + second, Double(digits) / scale) : nil
  }

  /// Seconds east of UTC; 0 when there is no zone; `nil` when it is malformed.
  private mutating func zone() -> Int? {
    if take("Z") || take("z") { return 0 }
    let sign = take("+") ? 1 : take("-") ? -1 : 0
    guard sign != 0 else { return 0 }
    guard let hours = number(2), hours <= 14 else { return nil }
    _ = take(":")
    guard position < bytes.count else { return sign * hours * 3600 }
    guard let minutes = number(2), minutes < 60 else { return nil }
    return sign * (hours * 3600 + minutes * 60)
  }

  private mutating func take(_ character: UnicodeScalar) -> Bool {
    guard position < bytes.count, bytes[position] == UInt8(ascii: character) else { return false }
    position += 1
    return true
  }

  private func digit(_ byte: UInt8) -> Int? {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) ? Int(byte - UInt8(ascii: "0")) : nil
  }

  private mutating func number(_ digits: Int) -> Int? {
    guard bytes.count - position >= digits else { return nil }
    var value = 0
    for _ in 0..<digits {
      guard let digit = digit(bytes[position]) else { return nil }
      value = value * 10 + digit
      position += 1
    }
    return value
  }

  private static func daysIn(_ month: Int, of year: Int) -> Int {
    switch month {
    case 4, 6, 9, 11: 30
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    default: 31
    }
  }
}
