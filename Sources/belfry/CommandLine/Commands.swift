import Foundation
import HTTPServer
import HubCore
import HubServer
import NotificationHubs
import SQLDatabase

/// One command: its parameters are properties, and it runs in a context, so that tests need no
/// process.
protocol Subcommand: Sendable {
  /// Its name and what the help says beside the parameters.
  static var about: CommandHelp { get }
  /// Others depend on it while it runs: who does not read what it says must not hold it up.
  static var isServer: Bool { get }
  init()
  func run(in context: CommandContext) async throws
}

extension Subcommand {
  static var isServer: Bool { false }

  /// The whole help, parameters included.
  static var help: CommandHelp { about.taking(Self()) }
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
  /// The system allows the process less than it needs (`EX_OSERR`).
  case system = 71
}

extension DescriptorLimit {
  /// Raises the limit.
  /// - Returns: The limit from here on.
  /// - Throws: ``CommandFailure`` where a server cannot work with it.
  @discardableResult
  static func require() throws -> Int {
    let descriptors = raise()
    if let fault = fault(descriptors) { throw CommandFailure(fault, exitCode: .system) }
    return descriptors
  }
}

/// Runs one command and turns what it throws into a line on standard error and an exit code.
enum BelfryCommandLine {
  static func run(_ words: [String], in context: CommandContext) async -> ExitCode {
    var command: (any Subcommand.Type)?
    var context = context
    defer { context.close() }
    do {
      if words.isEmpty || ["--help", "-h", "help"].contains(words[0]) && words.count == 1 {
        context.print(CommandTable.overview)
        return words.isEmpty ? .usage : .done
      }
      let asked = words == ["--version"] ? ["version"] : words
      if words[0] == "help" || isFamilyHelp(asked) {
        context.print(try page(for: asked.filter { !["help", "--help", "-h"].contains($0) }))
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

  /// `belfry hub --help`: the name of several commands, asking for help.
  private static func isFamilyHelp(_ words: [String]) -> Bool {
    words.count == 2 && ["--help", "-h"].contains(words[1])
      && (try? CommandTable.find([words[0]])) == nil
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

/// What a command may touch of the world: tests pass their own.
struct CommandContext: Sendable {
  /// Variables of the environment.
  var environment: [String: String] = ProcessInfo.processInfo.environment
  /// Takes one line of output.
  var print: @Sendable (String) -> Void = { line in
    writeLine(line, to: STDOUT_FILENO)
  }
  /// Takes one line of complaint or progress.
  var note: @Sendable (String) -> Void = { line in
    writeLine(line, to: STDERR_FILENO)
  }
  /// Standard output is a terminal: progress is welcome.
  var isTerminal: Bool = isatty(1) == 1
  /// Asks a person at a terminal a question and reads the answer; `nil` where there is nobody to
  /// ask.
  var ask: (@Sendable (String) -> String?)? = CommandContext.terminal
  /// How many bytes can still be written where a path lies; `nil` where nobody knows.
  var room: @Sendable (String) -> Int64? = { DiskSpace.available(at: $0) }

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

  /// A line for the operator, with the time in front, to standard error.
  var log: @Sendable (String) -> Void {
    { [note] line in note(Date().formatted(.iso8601) + " " + line) }
  }

  /// Of a server: what stands between it and who reads its two streams.
  var queues: (output: LogQueue, errors: LogQueue)?

  /// The same for a server: lines go through bounded queues, so that nothing waits for who reads
  /// them.
  func serving() -> CommandContext {
    let output = LogQueue(write: print)
    let errors = LogQueue(write: note)
    var context = self
    context.queues = (output, errors)
    context.print = { output.add($0) }
    context.note = { errors.add($0) }
    return context
  }

  /// A log whose lines are notes.
  func hubLog(level: LogLevel, format: LogFormat = .text) -> HubLog {
    guard let errors = queues?.errors else {
      return HubLog(level: level, format: format, now: HubClock.system.now, write: note)
    }
    let log = HubLog(
      level: level, format: format, now: HubClock.system.now, state: { errors.state }, write: note)
    errors.tells(log.missing)
    return log
  }

  /// Waits a second for what a server has left to say.
  func close() {
    queues?.output.close(within: .milliseconds(500))
    queues?.errors.close(within: .milliseconds(500))
  }

  /// Lets a person at a terminal confirm what cannot be undone.
  ///
  /// - Parameters:
  ///   - what: A sentence without its end: `this deletes hub 'news' for good`.
  ///   - isConfirmed: `--yes` was given.
  /// - Throws: ``CommandFailure`` unless it was, or the answer is yes.
  func confirm(_ what: String, _ isConfirmed: Bool) throws {
    if isConfirmed { return }
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

  /// Prints JSON that is written already.
  func printJSON(written bytes: [UInt8]) { print(String(decoding: bytes, as: UTF8.self)) }
}

/// Writes at once, so that a script that reads line by line never waits for a buffer. A reader
/// that has gone away is not an error of ours.
private func writeLine(_ line: String, to descriptor: Int32) {
  var rest = Array((line + "\n").utf8)[...]
  while !rest.isEmpty {
    let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    if count >= 0 {
      rest = rest.dropFirst(count)
    } else if errno == EAGAIN {
      // Somebody with whom we share the pipe does not want to wait; we do.
      var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      _ = poll(&wanted, 1, -1)
    } else if errno != EINTR {
      return
    }
  }
}
