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
  /// Standard output is a terminal: colours and progress are welcome.
  var isTerminal: Bool = isatty(1) == 1

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
