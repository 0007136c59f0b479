/// The help text of one command.
struct CommandHelp: Sendable {
  /// The words of the command: `["policy", "create"]`.
  let words: [String]
  /// One line for the list of commands.
  let summary: String
  /// Background for newcomers, in short paragraphs.
  let discussion: String
  let examples: [String]
  private(set) var parameters: [Declaration] = []
  private var notes: [String] = []

  init(_ words: String, _ summary: String, discussion: String = "", examples: [String] = []) {
    self.words = words.split(separator: " ").map(String.init)
    self.summary = summary
    self.discussion = discussion
    self.examples = examples
  }

  /// The help with the parameters that a command declares.
  func taking(_ command: some Subcommand) -> CommandHelp {
    var help = self
    help.parameters = declaredParameters(of: command).map(\.declaration)
    help.notes = declaredNotes(of: command)
    return help
  }

  /// The prose of the page.
  var text: String {
    ((discussion.isEmpty ? [] : [discussion]) + notes).joined(separator: "\n\n")
  }

  var name: String { "belfry " + words.joined(separator: " ") }
  var arguments: [Declaration] { parameters.filter(\.isArgument) }
  var options: [Declaration] {
    parameters.filter { !$0.isArgument } + [Declaration(name: "--help", help: "show this page")]
  }

  /// The whole page.
  var page: String {
    let usage = ([name] + arguments.map(\.name) + ["[options]"]).joined(separator: " ")
    var lines = [summary, "", "USAGE  \(usage)"]
    if !text.isEmpty { lines += [""] + Self.wrapped(text) }
    for (title, rows) in [("ARGUMENTS", arguments), ("OPTIONS", options)] where !rows.isEmpty {
      lines += ["", title] + Self.columns(rows.map { ($0.shown, $0.help) })
    }
    if !examples.isEmpty { lines += ["", "EXAMPLES"] + examples.map { "  " + $0 } }
    return lines.joined(separator: "\n")
  }

  /// Wraps paragraphs at 100 characters; lines that begin with blanks are kept.
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

  /// Two columns.
  ///
  /// - Parameters:
  ///   - width: The width of the left column; `nil` for the width it needs, up to 30.
  ///   - lineWidth: The width at which the right column is wrapped.
  static func columns(
    _ rows: [(String, String)], width: Int? = nil, lineWidth: Int = 100
  ) -> [String] {
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
        if !isEmpty && line.count + 1 + word.count > lineWidth {
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

extension Int {
  /// `1 device`, `2 devices`.
  func counted(_ noun: String, _ plural: String? = nil) -> String {
    self == 1 ? "1 \(noun)" : "\(self) \(plural ?? noun + "s")"
  }
}

extension String {
  /// The text padded with blanks to a width.
  func padded(to width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - count))
  }
}
