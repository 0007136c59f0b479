import Foundation
import NotificationHubs
import Wire

/// Parses a parameter's value.
struct Reader<Value: Sendable>: Sendable {
  /// The permitted values; empty for free text.
  var words: [String] = []
  /// Formats a value for the help.
  var show: @Sendable (Value) -> String = { "\($0)" }
  /// Parses the text, given with the parameter's name.
  let read: @Sendable (String, String) throws(UsageError) -> Value
}

extension Reader where Value == String {
  static let text = Reader { text, _ in text }

  /// An installation's id that a hub accepts.
  static let installationID = Reader { text, name throws(UsageError) in
    guard Tag.installation(text).isValid, text.isPathSegment else {
      throw UsageError("\(name) '\(text)' is not a valid installation id")
    }
    return text
  }

  /// A user's id that a hub accepts.
  static let userID = Reader { text, name throws(UsageError) in
    guard Tag.user(text).isValid else {
      throw UsageError("\(name) '\(text)' is not a valid user id")
    }
    return text
  }

  /// A valid hub name.
  static let hubName = Reader { text, name throws(UsageError) in
    guard HubDescription.isName(text) else {
      throw UsageError(
        "\(name) '\(text)' is no name of a hub: it begins with a letter, holds only letters, digits "
          + "and -._, and has at most 260 characters")
    }
    return text
  }
}

extension Reader where Value == Int {
  /// An integer in a range.
  static func integer(_ range: ClosedRange<Int>) -> Reader {
    Reader { text, name throws(UsageError) in
      guard let number = Int(text), range.contains(number) else {
        throw UsageError(
          "\(name) must be a whole number from \(range.lowerBound) to \(range.upperBound), not "
            + "'\(text)'")
      }
      return number
    }
  }

  private static let units: [(letter: Character, seconds: Int)] = [
    ("d", 86_400), ("h", 3600), ("m", 60), ("s", 1),
  ]

  private static func time(_ seconds: Int) -> String {
    let unit = units.first { seconds >= $0.seconds && seconds.isMultiple(of: $0.seconds) }
    return unit.map { "\(seconds / $0.seconds)\($0.letter)" } ?? "\(seconds)s"
  }

  /// The seconds of `90`, or of a number with a unit, such as `90d`; `nil` if they are outside the
  /// range.
  static func seconds(_ text: String, _ range: ClosedRange<Int>) -> Int? {
    let unit = units.first { $0.letter == text.last }
    let number = Int(unit == nil ? text[...] : text.dropLast())
    guard let (seconds, isTooMuch) = number?.multipliedReportingOverflow(by: unit?.seconds ?? 1),
      !isTooMuch, range.contains(seconds)
    else { return nil }
    return seconds
  }

  /// The texts that ``seconds(_:_:)`` takes, in words.
  static func times(_ range: ClosedRange<Int>) -> String {
    let most = range.upperBound >= 86_400 ? range.upperBound / 86_400 * 86_400 : range.upperBound
    return "a time from \(time(range.lowerBound)) to \(time(most)), in s, m, h or d"
  }

  /// A duration in seconds; see ``seconds(_:_:)``.
  static func time(_ range: ClosedRange<Int>) -> Reader {
    Reader(show: time) { text, name throws(UsageError) in
      if let seconds = seconds(text, range) { return seconds }
      throw UsageError("\(name) must be \(times(range)), not '\(text)'")
    }
  }
}

extension Reader where Value: RawRepresentable, Value.RawValue == String {
  /// One of these words.
  static func one(of all: [Value]) -> Reader {
    let words = all.map(\.rawValue)
    return Reader(
      words: words, show: \.rawValue,
      read: { text, name throws(UsageError) in
        if let value = all.first(where: { $0.rawValue == text }) { return value }
        let list = words.joined(separator: ", ")
        let hint = Suggestion.text(for: text, among: words)
        // Before the words, behind which it would be overlooked.
        if words.count > 2, !hint.isEmpty {
          throw UsageError("\(name) cannot be '\(text)'\(hint) It must be one of: \(list)")
        }
        throw UsageError(
          words.count > 2
            ? "\(name) must be one of: \(list); not '\(text)'"
            : "\(name) must be \(words.joined(separator: " or ")), not '\(text)'")
      })
  }
}

extension Reader where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
  static var word: Reader { one(of: Array(Value.allCases)) }
}

extension Reader where Value == PushPlatform {
  /// A platform, by any of its names.
  static let platform = Reader(words: PushPlatform.allCases.map(\.rawValue)) {
    text, name throws(UsageError) in
    if let platform = PushPlatform(named: text) { return platform }
    throw UsageError(
      "\(name): '\(text)' is not a platform; the platforms are "
        + PushPlatform.allCases.map(\.rawValue).joined(separator: ", "))
  }
}

extension Reader where Value == PushPlatform {
  /// A platform that has a virtual phone.
  static let phone = Reader(words: PushPlatform.phones.map(\.word), show: \.word) {
    text, name throws(UsageError) in
    if let platform = PushPlatform(named: text), PushPlatform.phones.contains(platform) {
      return platform
    }
    throw UsageError(
      "\(name) must be one of: \(PushPlatform.phones.map(\.word).joined(separator: ", ")); not "
        + "'\(text)'")
  }
}

extension Reader where Value == Tag {
  static let tag = Reader { text, _ in Tag(rawValue: text) }
}

extension Reader where Value == [Tag] {
  /// Tags separated by commas.
  static let tags = Reader { text, _ in TextInput.list(text).map { Tag(rawValue: $0) } }
}

extension Reader where Value == TagExpression {
  /// A tag expression; the hub checks the number of tags.
  static let tagExpression = Reader { text, name throws(UsageError) in
    do {
      let limits = TagExpressionLimits(alternatives: 1000, combinations: 1000)
      return try TagExpression(parsing: text, limits: limits)
    } catch {
      throw UsageError("\(name): \(error)")
    }
  }
}

extension Reader where Value == (name: String, value: String) {
  /// A pair `name=value`, split at the first `=`.
  static let pair = Reader { text, name throws(UsageError) in
    guard let equals = text.firstIndex(of: "="), equals > text.startIndex else {
      throw UsageError("\(name) must be NAME=VALUE, not '\(text)'")
    }
    return (String(text[..<equals]), String(text[text.index(after: equals)...]))
  }
}

extension Reader where Value == Date {
  /// A time such as `2030-01-05T10:00:00Z`, or relative to now: `+10m`, `-2h`.
  static let instant = Reader { text, name throws(UsageError) in
    let units: [Character: Double] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
    if ["+", "-"].contains(text.first), let unit = text.last.flatMap({ units[$0] }),
      let count = Int(text.dropFirst().dropLast()), (0...100_000_000).contains(count)
    {
      let seconds = Double(count) * unit * (text.first == "-" ? -1 : 1)
      // The protocol has whole seconds; rounded up, so that it is never early.
      return Date(
        timeIntervalSince1970: (Date().timeIntervalSince1970 + seconds).rounded(.up))
    }
    guard let time = WireDate.parse(text) else {
      throw UsageError("\(name) must be a time such as 2030-01-05T10:00:00Z or +10m, not '\(text)'")
    }
    return time
  }
}

/// The suggestion "; did you mean '--tags'?" for a similar word.
enum Suggestion {
  /// - Returns: An empty text if no known word is similar.
  static func text(for word: String, among known: [String]) -> String {
    let near = known.map { ($0, distance(word, $0)) }.min { $0.1 < $1.1 }
    guard let near, near.1 <= max(2, near.0.count / 3), near.1 < near.0.count - 1 else { return "" }
    return "; did you mean '\(near.0)'?"
  }

  /// The number of letters to change from one word to the other (Levenshtein).
  private static func distance(_ left: String, _ right: String) -> Int {
    let right = Array(right)
    var row = Array(0...right.count)
    for (i, a) in left.prefix(40).enumerated() {
      var previous = row[0]
      row[0] = i + 1
      for (j, b) in right.enumerated() {
        let cost = min(row[j] + 1, row[j + 1] + 1, previous + (a == b ? 0 : 1))
        previous = row[j + 1]
        row[j + 1] = cost
      }
    }
    return row[right.count]
  }
}
