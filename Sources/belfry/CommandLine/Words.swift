/// The words behind a command's name, sorted into options and arguments by its ``CommandHelp``.
///
/// `--name value` and `--name=value` mean the same; `--` ends the options.
struct Words: Sendable {
  private let help: CommandHelp
  private var values: [String: [String]] = [:]
  private(set) var arguments: [String] = []

  /// - Throws: ``UsageError`` for an unknown option, a value that is missing or too much, an
  ///   option given twice, or too many arguments.
  init(_ words: some Sequence<String>, for help: CommandHelp) throws(UsageError) {
    self.help = help
    var rest = Array(words)[...]
    var optionsEnded = false
    while let word = rest.popFirst() {
      guard !optionsEnded, word.hasPrefix("-"), word != "-" else {
        arguments.append(word)
        continue
      }
      if word == "--" {
        optionsEnded = true
        continue
      }
      let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = String(parts[0])
      guard let option = help.options.first(where: { $0.name == name }) else {
        throw UsageError(
          "unknown option '\(name)'" + Self.suggestion(name, among: help.options.map(\.name)),
          help: help)
      }
      var value = parts.count == 2 ? String(parts[1]) : nil
      if let placeholder = option.value {
        if value == nil { value = rest.popFirst() }
        if value == nil {
          throw UsageError("\(name) wants a value: \(name) \(placeholder)", help: help)
        }
      } else if value != nil {
        throw UsageError("\(name) takes no value", help: help)
      }
      if values[name] != nil && !option.repeats {
        throw UsageError("\(name) is given twice", help: help)
      }
      values[name, default: []].append(value ?? "")
    }
    guard arguments.count <= help.arguments.count else {
      throw UsageError("unexpected '\(arguments[help.arguments.count])'", help: help)
    }
  }

  func flag(_ name: String) -> Bool { values[name] != nil }
  func value(_ name: String) -> String? { values[name]?.first }
  func all(_ name: String) -> [String] { values[name] ?? [] }

  /// The value of an option that must be there.
  func required(_ name: String) throws(UsageError) -> String {
    if let value = value(name) { return value }
    throw UsageError("\(name) is missing", help: help)
  }

  /// An argument by its place, which must be there.
  func argument(_ index: Int) throws(UsageError) -> String {
    if index < arguments.count { return arguments[index] }
    throw UsageError("\(help.arguments[index].name) is missing", help: help)
  }

  /// An option's value as a whole number in a range.
  func integer(_ name: String, in range: ClosedRange<Int>) throws(UsageError) -> Int? {
    guard let text = value(name) else { return nil }
    guard let number = Int(text), range.contains(number) else {
      throw UsageError(
        "\(name) wants a whole number from \(range.lowerBound) to \(range.upperBound), not '\(text)'",
        help: help)
    }
    return number
  }

  /// An option's value as a time: seconds, or a number with its unit, such as `90d`.
  func seconds(_ name: String, in range: ClosedRange<Int>) throws(UsageError) -> Int? {
    guard let text = value(name) else { return nil }
    let units: [Character: Int] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
    let unit = text.last.flatMap { units[$0] }
    let number = Int(unit == nil ? text[...] : text.dropLast())
    guard let (seconds, isTooMuch) = number?.multipliedReportingOverflow(by: unit ?? 1),
      !isTooMuch, range.contains(seconds)
    else {
      throw UsageError(
        "\(name) wants a time from \(Self.time(range.lowerBound)) to "
          + "\(Self.time(range.upperBound)), such as 90d, 12h, 30m or 45s, not '\(text)'",
        help: help)
    }
    return seconds
  }

  private static func time(_ seconds: Int) -> String {
    seconds >= 86_400 ? "\(seconds / 86_400)d" : "\(seconds)s"
  }

  /// A fault in the words that only the command can see.
  func fault(_ message: String) -> UsageError { UsageError(message, help: help) }

  /// "; did you mean '--tags'?" for a near miss, otherwise empty.
  static func suggestion(_ word: String, among known: [String]) -> String {
    let near = known.map { ($0, distance(word, $0)) }.min { $0.1 < $1.1 }
    guard let near, near.1 <= max(2, near.0.count / 3), near.1 < near.0.count - 1 else { return "" }
    return "; did you mean '\(near.0)'?"
  }

  /// How many letters must change to make one word of the other (Levenshtein).
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

/// The words make no sense; exit 64.
struct UsageError: Error {
  let message: String
  let help: CommandHelp?
  init(_ message: String, help: CommandHelp? = nil) {
    self.message = message
    self.help = help
  }
}
