/// One command: a value built from words, run in a context, so that tests need no process.
protocol Subcommand: Sendable {
  static var help: CommandHelp { get }
  init(_ words: Words) throws
  func run(in context: CommandContext) async throws
}

/// Why a command ended badly, and the exit code that says so.
struct CommandFailure: Error, CustomStringConvertible {
  let description: String
  let exitCode: ExitCode
  init(_ description: String, exitCode: ExitCode = .refused) {
    self.description = description
    self.exitCode = exitCode
  }
}

/// What the process answers its caller with.
enum ExitCode: Int32, Sendable {
  case done = 0
  /// The hub said no, or what was asked for did not come about.
  case refused = 1
  /// The words, or the configuration, make no sense (`EX_USAGE`).
  case usage = 64
  /// Something that was needed cannot be reached (`EX_UNAVAILABLE`).
  case unreachable = 69
  /// A defect of Belfry (`EX_SOFTWARE`).
  case defect = 70
}
