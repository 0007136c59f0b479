import Foundation

/// What a command may touch of the world: tests pass their own.
struct CommandContext: Sendable {
  /// Variables of the environment.
  var environment: [String: String] = ProcessInfo.processInfo.environment
  /// Takes one line of output.
  var print: @Sendable (String) -> Void = { line in
    writeLine(line, to: FileHandle.standardOutput)
  }
  /// Takes one line of complaint or progress.
  var note: @Sendable (String) -> Void = { line in
    writeLine(line, to: FileHandle.standardError)
  }
  /// Standard output is a terminal: progress is welcome.
  var isTerminal: Bool = isatty(1) == 1
  /// Asks a person at a terminal a question and reads the answer; `nil` where there is nobody to ask.
  var ask: (@Sendable (String) -> String?)? = CommandContext.terminal

  private static var terminal: (@Sendable (String) -> String?)? {
    guard isatty(0) == 1, isatty(2) == 1 else { return nil }
    return { question in
      try? FileHandle.standardError.write(contentsOf: Data(question.utf8))
      return readLine()
    }
  }

  /// Bold and dim are welcome: on a terminal that knows them, unless `NO_COLOR` is set
  /// (<https://no-color.org>).
  var isStyled: Bool {
    isTerminal && environment["NO_COLOR", default: ""].isEmpty && environment["TERM"] != "dumb"
  }

  /// Lets a person at a terminal confirm what cannot be undone.
  ///
  /// - Parameter what: A sentence without its end: `this deletes hub 'news' for good`.
  /// - Throws: ``CommandFailure`` unless `--yes` was given or the answer is yes.
  func confirm(_ what: String, _ words: Words) throws {
    if words.flag("--yes") { return }
    guard let ask else { throw CommandFailure("\(what); say --yes", exitCode: .usage) }
    let answer = ask("\(what). Go on? [y/N] ")?.lowercased() ?? ""
    guard ["y", "yes"].contains(answer) else { throw CommandFailure("nothing was done") }
  }

  /// Prints a value as one line of JSON, members in the order of the alphabet.
  func printJSON(_ value: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    print(String(decoding: try encoder.encode(value), as: UTF8.self))
  }
}

/// Writes at once, so that a script that reads line by line never waits for a buffer. A reader
/// that has gone away is not an error of ours.
private func writeLine(_ line: String, to handle: FileHandle) {
  try? handle.write(contentsOf: Data((line + "\n").utf8))
}
