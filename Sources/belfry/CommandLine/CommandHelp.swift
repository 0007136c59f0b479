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
    var paragraph = ""
    // The blank line at the end closes the last paragraph.
    for line in (text + "\n").split(separator: "\n", omittingEmptySubsequences: false) {
      if !line.isEmpty, !line.hasPrefix(" ") {
        paragraph += line + " "
        continue
      }
      if !paragraph.isEmpty { lines += paragraph.wrapped(at: lineWidth) }
      paragraph = ""
      lines.append(String(line))
    }
    return lines.dropLast()
  }

  private static let lineWidth = 100

  /// Two columns.
  ///
  /// - Parameters:
  ///   - width: The width of the left column; `nil` for the width it needs, up to 30.
  ///   - lineWidth: The width at which the right column is wrapped.
  static func columns(
    _ rows: [(String, String)], width: Int? = nil, lineWidth: Int = lineWidth
  ) -> [String] {
    let width = width ?? min(30, rows.map(\.0.count).max() ?? 0)
    let margin = String(repeating: " ", count: width + 4)
    return rows.flatMap { left, right in
      left.count > width
        ? ["  " + left] + right.wrapped(at: lineWidth, first: margin, rest: margin)
        : right.wrapped(at: lineWidth, first: "  \(left.padded(to: width))  ", rest: margin)
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
  /// The lines of the text, broken at blanks, or at the width in a longer word.
  ///
  /// - Parameters:
  ///   - first: The beginning of the first line.
  ///   - rest: The beginning of the others.
  func wrapped(at width: Int, first: String = "", rest: String = "") -> [String] {
    var lines: [String] = []
    var line = first
    var isEmpty = true
    for word in split(whereSeparator: { $0 == " " || $0.isNewline }) {
      var word = word
      if !isEmpty, line.count + 1 + word.count > width {
        lines.append(line)
        line = rest
        isEmpty = true
      }
      if !isEmpty { line += " " }
      while line.count + word.count > width {
        let room = max(1, width - line.count)
        lines.append(line + word.prefix(room))
        word = word.dropFirst(room)
        line = rest
      }
      line += word
      isEmpty = false
    }
    return lines + [line]
  }

  /// The text padded with blanks to a width.
  func padded(to width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - count))
  }
}
