/// An option of a command: the one place that says how it is spelt, whether it takes a value, and
/// what it does. Parsing and `--help` both read it.
struct Option: Sendable {
  /// With its dashes: `--tags`.
  let name: String
  /// The placeholder of its value in the help (`EXPR`); `nil` for a switch.
  let value: String?
  let help: String
  /// May be given more than once.
  let repeats: Bool
  /// The values that there are, for completion; empty where any text may be one.
  let words: [String]

  static func value(
    _ name: String, _ placeholder: String, _ help: String, repeats: Bool = false,
    words: [String] = []
  ) -> Option {
    Option(name: name, value: placeholder, help: help, repeats: repeats, words: words)
  }

  static func flag(_ name: String, _ help: String) -> Option {
    Option(name: name, value: nil, help: help, repeats: false, words: [])
  }
}

/// What `--help` teaches about one command.
struct CommandHelp: Sendable {
  /// The words that call it: `["policy", "create"]`.
  let words: [String]
  /// One line for the list of commands.
  let summary: String
  /// The words after its name, as shown: `NAME`.
  let arguments: [(name: String, help: String)]
  /// The values that the first argument has, for completion.
  let argumentWords: [String]
  let options: [Option]
  /// What a newcomer should know, in short paragraphs.
  let discussion: String
  let examples: [String]

  init(
    _ words: String, _ summary: String, arguments: [(name: String, help: String)] = [],
    argumentWords: [String] = [], options: [Option] = [], discussion: String = "",
    examples: [String] = []
  ) {
    self.words = words.split(separator: " ").map(String.init)
    self.summary = summary
    self.arguments = arguments
    self.argumentWords = argumentWords
    self.options = options
    self.discussion = discussion
    self.examples = examples
  }

  var name: String { "belfry " + words.joined(separator: " ") }

  /// The whole page.
  var page: String {
    var lines = [summary, ""]
    let placeholders = arguments.map(\.name).joined(separator: " ")
    lines.append("USAGE  \(name) \(placeholders)\(placeholders.isEmpty ? "" : " ")[options]")
    if !discussion.isEmpty { lines += [""] + Self.wrapped(discussion) }
    if !arguments.isEmpty {
      lines += ["", "ARGUMENTS"]
      lines += Self.columns(arguments.map { ($0.name, $0.help) })
    }
    lines += ["", "OPTIONS"]
    let rows = options.map { option in
      (option.name + (option.value.map { " " + $0 } ?? ""), option.help)
    }
    lines += Self.columns(rows + [("--help", "show this page")])
    if !examples.isEmpty {
      lines += ["", "EXAMPLES"]
      lines += examples.map { "  " + $0 }
    }
    return lines.joined(separator: "\n")
  }

  /// Paragraphs at most 100 characters wide; lines that begin with blanks stay as they are.
  static func wrapped(_ text: String) -> [String] {
    var lines: [String] = []
    var isOpen = false
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      guard !line.isEmpty, !line.hasPrefix(" ") else {
        lines.append(String(line))
        isOpen = false
        continue
      }
      for word in line.split(separator: " ") {
        if isOpen, let last = lines.last, last.count + 1 + word.count <= 100 {
          lines[lines.count - 1] += " " + word
        } else {
          lines.append(String(word))
        }
        isOpen = true
      }
    }
    return lines
  }

  /// Two columns, the right one wrapped at 100 characters.
  ///
  /// - Parameter width: Of the left one; `nil` for what it needs, up to 30.
  static func columns(_ rows: [(String, String)], width: Int? = nil) -> [String] {
    let width = width ?? min(30, rows.map(\.0.count).max() ?? 0)
    return rows.flatMap { left, right in
      var lines: [String] = []
      var line = "  " + left.padded(to: width) + "  "
      if left.count > width {
        lines.append("  " + left)
        line = String(repeating: " ", count: width + 4)
      }
      var isEmpty = true
      for word in right.split(separator: " ") {
        if !isEmpty && line.count + 1 + word.count > 100 {
          lines.append(line)
          line = String(repeating: " ", count: width + 4)
          isEmpty = true
        }
        line += (isEmpty ? "" : " ") + word
        isEmpty = false
      }
      return lines + [line]
    }
  }
}

extension String {
  /// With blanks behind it up to a width.
  func padded(to width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - count))
  }
}
