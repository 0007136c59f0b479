import Foundation
import HTTPServer
import HubCore
import HubServer
import NotificationHubs
import SQLDatabase

/// A command. Its parameters are properties, and it runs in a context, so that tests need no
/// process.
protocol Subcommand: Sendable {
  /// The name and the help text, without the parameters.
  static var about: CommandHelp { get }
  /// Whether others depend on the command while it runs: a stalled reader of its output must not
  /// block it.
  static var isServer: Bool { get }
  init()
  func run(in context: CommandContext) async throws
}

extension Subcommand {
  static var isServer: Bool { false }

  /// The whole help, parameters included.
  static var help: CommandHelp { about.taking(Self()) }
}

/// A command that ends with a result, which is printed as lines, or with `--json` as one JSON value.
protocol ResultCommand: Subcommand {
  func result(in context: CommandContext) async throws -> CommandResult
}

extension ResultCommand {
  func run(in context: CommandContext) async throws {
    let json = declaredParameters(of: self).first { $0.declaration.name == "--json" }
    try await result(in: context).print(asJSON: json?.isGiven == true, in: context)
  }
}

/// The result of a command for scripts and for people.
struct CommandResult {
  fileprivate let json: () throws -> String
  fileprivate let lines: [String]
  /// Advice for people on standard error, after the lines.
  fileprivate let notes: [String]
  /// The failure that follows the output, for the exit code.
  fileprivate let failure: CommandFailure?

  /// - Parameter value: Printed in one line, with members in alphabetical order.
  init(
    _ value: some Encodable, _ lines: [String], notes: [String] = [],
    failure: CommandFailure? = nil
  ) {
    json = {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      return String(decoding: try encoder.encode(value), as: UTF8.self)
    }
    (self.lines, self.notes, self.failure) = (lines, notes, failure)
  }

  /// - Parameter bytes: Existing JSON, such as that of the protocol.
  init(
    written bytes: @autoclosure @escaping () -> [UInt8], _ lines: [String], notes: [String] = [],
    failure: CommandFailure? = nil
  ) {
    json = { String(decoding: bytes(), as: UTF8.self) }
    (self.lines, self.notes, self.failure) = (lines, notes, failure)
  }

  /// Prints it in the form that `--json` selects; for a command that goes on, and prints more.
  func print(asJSON: Bool, in context: CommandContext) throws {
    if asJSON {
      context.print(try json())
    } else {
      for line in lines { context.print(line) }
      for note in notes { context.note(note) }
    }
    if let failure { throw failure }
  }
}

/// The error of a failed command, with its exit code.
struct CommandFailure: Error, CustomStringConvertible {
  let description: String
  let exitCode: ExitCode
  init(_ description: String, exitCode: ExitCode = .refused) {
    self.description = description
    self.exitCode = exitCode
  }
}

/// The exit code of the process.
enum ExitCode: Int32, Sendable {
  case done = 0
  /// The hub refused, or the requested result was not achieved.
  case refused = 1
  /// Invalid arguments or configuration (`EX_USAGE`).
  case usage = 64
  /// A required service is unreachable (`EX_UNAVAILABLE`).
  case unreachable = 69
  /// A defect of Belfry (`EX_SOFTWARE`).
  case defect = 70
  /// The system's limits are too low for the process (`EX_OSERR`).
  case system = 71
}

extension DescriptorLimit {
  /// Raises the limit.
  /// - Returns: The new limit.
  /// - Throws: ``CommandFailure`` if it is too low for a server.
  @discardableResult
  static func require() throws -> Int {
    let descriptors = raise()
    if let fault = fault(descriptors) { throw CommandFailure(fault, exitCode: .system) }
    return descriptors
  }
}

/// Runs one command, and turns its error into a line on standard error and an exit code.
enum BelfryCommandLine {
  static func run(_ words: [String], in context: CommandContext) async -> ExitCode {
    var command: (any Subcommand.Type)?
    var context = context
    defer { context.close() }
    do {
      if words.isEmpty || helpWords.contains(words[0]) && words.count == 1 {
        context.print(CommandTable.overview)
        return words.isEmpty ? .usage : .done
      }
      if words == ["help", "all"] {
        context.print(CommandTable.everything)
        return .done
      }
      let asked = words == ["--version"] ? ["version"] : words
      if words[0] == "help" || isFamilyHelp(asked) {
        context.print(try page(for: asked.filter { !helpWords.contains($0) }))
        return .done
      }
      let (found, rest) = try CommandTable.find(asked)
      if rest.prefix(while: { $0 != "--" }).contains(where: { $0 == "--help" || $0 == "-h" }) {
        context.print(found.help.page)
        return .done
      }
      command = found
      if found.isServer { context = context.serving() }
      let parsed = found.init()
      try declaredParameters(of: parsed).parse(rest)
      try await parsed.run(in: context)
      return .done
    } catch {
      return report(error, of: command, in: context)
    }
  }

  private static let helpWords = ["help", "--help", "-h"]

  /// Whether the words ask for help on a group of commands, as in `belfry hub --help`.
  private static func isFamilyHelp(_ words: [String]) -> Bool {
    guard let last = words.last, helpWords.contains(last) else { return false }
    return !CommandTable.list(startingWith: words.dropLast()).isEmpty
  }

  private static func page(for words: [String]) throws -> String {
    if let found = try? CommandTable.find(words) { return found.command.help.page }
    let family = CommandTable.list(startingWith: words)
    return family.isEmpty ? try CommandTable.find(words).command.help.page : family
  }

  private static func report(
    _ error: any Error, of command: (any Subcommand.Type)?, in context: CommandContext
  ) -> ExitCode {
    switch error {
    case let error as UsageError:
      context.note("belfry: \(error.message)")
      if let command { context.note("See `\(command.about.name) --help`.") }
      return .usage
    case let error as CommandFailure:
      context.note("belfry: \(error)")
      return error.exitCode
    case is ConfigurationError:
      context.note("belfry: \(error)")
      return .usage
    case is StoreError, is HubFailure, is CredentialError:
      context.note("belfry: \(error)")
      return .refused
    case is CancellationError:
      return .refused
    default:
      context.note("belfry: unexpected: \(error). This is a defect of Belfry; please report it.")
      return .defect
    }
  }
}

/// The interface of a command to the outside world; tests pass their own.
struct CommandContext: Sendable {
  /// The environment variables.
  var environment: [String: String] = ProcessInfo.processInfo.environment
  /// Prints one line of output.
  var print: @Sendable (String) -> Void = { line in
    writeLine(line, to: STDOUT_FILENO)
  }
  /// Prints one line of diagnostics or progress.
  var note: @Sendable (String) -> Void = { line in
    writeLine(line, to: STDERR_FILENO)
  }
  /// Whether standard output is a terminal, on which progress can be shown.
  var isTerminal: Bool = isatty(1) == 1
  /// Asks the user at a terminal a question and returns the answer; `nil` if there is no user to
  /// ask.
  var ask: (@Sendable (String) -> String?)? = CommandContext.terminal
  /// The number of bytes that can be written at a path; `nil` if it is unknown.
  var room: @Sendable (String) -> Int64? = { DiskSpace.available(at: $0) }

  private static var terminal: (@Sendable (String) -> String?)? {
    guard isatty(0) == 1, isatty(2) == 1 else { return nil }
    return { question in
      try? FileHandle.standardError.write(contentsOf: Data(question.utf8))
      return readLine()
    }
  }

  /// Whether to use bold and dim text: on a terminal that supports it, unless `NO_COLOR` is set
  /// (<https://no-color.org>).
  var isStyled: Bool {
    isTerminal && environment["NO_COLOR", default: ""].isEmpty && environment["TERM"] != "dumb"
  }

  /// Prints a line for the operator to standard error, preceded by the time.
  var log: @Sendable (String) -> Void {
    { [note] line in note(Date().formatted(.iso8601) + " " + line) }
  }

  /// The queues between a server and the readers of its two streams.
  var queues: (output: LogQueue, errors: LogQueue)?

  /// The context for a server: lines go through bounded queues, so that a stalled reader blocks
  /// nothing.
  func serving() -> CommandContext {
    let output = LogQueue(write: print)
    let errors = LogQueue(write: note)
    var context = self
    context.queues = (output, errors)
    context.print = { output.add($0) }
    context.note = { errors.add($0) }
    return context
  }

  /// A log whose lines go to standard error.
  func hubLog(level: LogLevel, format: LogFormat = .text) -> HubLog {
    guard let errors = queues?.errors else {
      return HubLog(level: level, format: format, now: HubClock.system.now, write: note)
    }
    let log = HubLog(
      level: level, format: format, now: HubClock.system.now, state: { errors.state }, write: note)
    errors.tells(log.missing)
    return log
  }

  /// Waits up to a second for a server's last lines to be written.
  func close() {
    queues?.output.close(within: .milliseconds(500))
    queues?.errors.close(within: .milliseconds(500))
  }

  /// Asks the user at a terminal to confirm an irreversible action.
  ///
  /// - Parameters:
  ///   - what: A sentence without its end: `this deletes hub 'news' for good`.
  ///   - isConfirmed: Whether `--yes` was given.
  /// - Throws: ``CommandFailure`` if the action is not confirmed.
  func confirm(_ what: String, _ isConfirmed: Bool) throws {
    if isConfirmed { return }
    guard let ask else { throw CommandFailure("\(what); say --yes", exitCode: .usage) }
    let answer = ask("\(what). Go on? [y/N] ")?.lowercased() ?? ""
    guard ["y", "yes"].contains(answer) else { throw CommandFailure("nothing was done") }
  }
}

/// Writes at once, so that a script that reads line by line never waits for a buffer. A reader that
/// has gone away is not an error.
private func writeLine(_ line: String, to descriptor: Int32) {
  var rest = Array((line + "\n").utf8)[...]
  while !rest.isEmpty {
    let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    if count >= 0 {
      rest = rest.dropFirst(count)
    } else if errno == EAGAIN {
      // Another process sharing the pipe made it non-blocking; this one waits.
      var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      _ = poll(&wanted, 1, -1)
    } else if errno != EINTR {
      return
    }
  }
}
