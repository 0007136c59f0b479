package import Foundation
import Synchronization

/// The built `belfry`, or another program of the package, run as a person or a script runs it.
///
/// Spawned and waited for with the system's own calls, each pipe read by a thread that blocks on
/// it: neither an end of output nor an exit can be missed, however busy the machine is.
package final class BelfryProcess: Sendable {
  private struct Output {
    var text = ""
    var errors = ""
    /// Pipes that may still bring something.
    var openPipes = 2
    var exitCode: Int32?
    var listeners: [AsyncStream<Void>.Continuation] = []
  }

  private let identifier: pid_t
  private let errorPipe: Int32
  private let output = Mutex(Output())

  package static let executable = path(of: "belfry")

  /// Beside the test bundle, in the build's products directory.
  private static func path(of program: String) -> URL {
    var folder = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
    while folder.path != "/" {
      folder.deleteLastPathComponent()
      let candidate = folder.appending(path: program)
      if FileManager.default.isExecutableFile(atPath: candidate.path) { return candidate }
    }
    // Nothing was found; running this path fails with a clear error in the test.
    return URL(fileURLWithPath: program)
  }

  /// - Parameters:
  ///   - program: A program of the package.
  ///   - directory: The working directory; `nil` for that of the tests.
  ///   - user: Whom it runs as, by number; only root can say that.
  ///   - openFiles: How many files it may have open; `nil` for as many as the tests.
  ///   - readsErrors: Whether somebody reads its standard error from the start; if not,
  ///     ``readErrors()`` begins.
  package init(
    _ words: [String], program: String = "belfry", environment: [String: String] = [:],
    in directory: String? = nil, as user: UInt32? = nil, openFiles: Int? = nil,
    readsErrors: Bool = true
  ) throws {
    var all = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("BELFRY_") }
    // Tests must not find servers that a person has running, nor the other way round.
    all["BELFRY_HOME"] = "/dev/null"
    all.merge(environment) { $1 }
    let out = try Self.pipe()
    let err = try Self.pipe()
    errorPipe = err.read
    identifier = try Self.spawn(
      Self.command(
        [Self.path(of: program).path] + words, in: directory, as: user,
        openFiles: openFiles), environment: all,
      output: out.write,
      errors: err.write)
    close(out.write)
    close(err.write)
    read(out.read) { $0.text += $1 }
    if readsErrors {
      read(err.read) { $0.errors += $1 }
    } else {
      output.withLock { $0.openPipes -= 1 }
    }
    Thread.detachNewThread { [identifier, weak self] in
      var status: Int32 = 0
      while waitpid(identifier, &status, 0) == -1, errno == EINTR {}
      // As a shell counts: a signal's number after 128.
      let code = status & 0x7f == 0 ? (status >> 8) & 0xff : 128 + (status & 0x7f)
      self?.changed { $0.exitCode = code }
    }
  }

  deinit { if isRunning { kill(identifier, SIGKILL) } }

  /// Reads standard error, from the first byte on; once, for a process that nobody has read.
  package func readErrors() {
    output.withLock { $0.openPipes += 1 }
    read(errorPipe) { $0.errors += $1 }
  }

  /// A shell changes the directory and becomes the command: Glibc's `posix_spawn` has no public
  /// way.
  private static func command(
    _ words: [String], in directory: String?, as user: UInt32?, openFiles: Int?
  ) -> [String] {
    var words = words
    if let user {
      words = ["/usr/bin/setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups"] + words
    }
    if let openFiles {
      words = ["/bin/sh", "-c", #"ulimit -n "$0" && exec "$@""#, "\(openFiles)"] + words
    }
    guard let directory else { return words }
    return ["/bin/sh", "-c", #"cd "$0" && exec "$@""#, directory] + words
  }

  private static func pipe() throws -> (read: Int32, write: Int32) {
    var ends: [Int32] = [0, 0]
    guard Foundation.pipe(&ends) == 0 else { throw ProcessFault("no pipe: \(errno)") }
    // A process that another test starts meanwhile must not hold our pipe open.
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (ends[0], ends[1])
  }

  private static func spawn(
    _ words: [String], environment: [String: String], output: Int32, errors: Int32
  ) throws -> pid_t {
    #if canImport(Darwin)
      var actions: posix_spawn_file_actions_t?
    #else
      var actions = posix_spawn_file_actions_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, output, 1)
    posix_spawn_file_actions_adddup2(&actions, errors, 2)
    var arguments = words.map { strdup($0) } + [nil]
    var variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { for text in arguments + variables { free(text) } }
    var identifier: pid_t = 0
    let code = posix_spawn(&identifier, words[0], &actions, nil, &arguments, &variables)
    guard code == 0 else {
      throw ProcessFault("\(words[0]) cannot be started: \(String(cString: strerror(code)))")
    }
    return identifier
  }

  private func read(_ pipe: Int32, _ take: @escaping @Sendable (inout Output, String) -> Void) {
    Thread.detachNewThread { [weak self] in
      var buffer = [UInt8](repeating: 0, count: 65536)
      while true {
        let count = Foundation.read(pipe, &buffer, buffer.count)
        if count == -1, errno == EINTR { continue }
        if count <= 0 { break }
        let text = String(decoding: buffer[..<count], as: UTF8.self)
        self?.changed { take(&$0, text) }
      }
      close(pipe)
      self?.changed { $0.openPipes -= 1 }
    }
  }

  private func changed(_ change: (inout Output) -> Void) {
    let listeners = output.withLock { output in
      change(&output)
      return output.listeners
    }
    for listener in listeners { listener.yield() }
  }

  /// Yields at once and after every change of the output.
  private func changes() -> AsyncStream<Void> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    output.withLock { $0.listeners.append(continuation) }
    continuation.yield()
    return stream
  }

  package var text: String { output.withLock { $0.text } }
  package var errors: String { output.withLock { $0.errors } }
  package var isRunning: Bool { output.withLock { $0.exitCode == nil } }

  /// The first line of output that satisfies a condition, waited for with a limit.
  package func line(
    within limit: Duration = .seconds(60), where condition: @escaping @Sendable (String) -> Bool
  ) async throws -> String {
    try await line(of: { $0.text }, within: limit, where: condition)
  }

  /// The same of standard error.
  package func note(
    within limit: Duration = .seconds(60), where condition: @escaping @Sendable (String) -> Bool
  ) async throws -> String {
    try await line(of: { $0.errors }, within: limit, where: condition)
  }

  private func line(
    of stream: @escaping @Sendable (Output) -> String, within limit: Duration,
    where condition: @escaping @Sendable (String) -> Bool
  ) async throws -> String {
    try await withLimit(limit, "a line; so far:\n\(self.text)\n\(self.errors)") { [self] in
      for await _ in changes() {
        let (lines, isOver) = output.withLock { output in
          let text = stream(output)
          return (
            text.split(separator: "\n", omittingEmptySubsequences: false), output.openPipes == 0
          )
        }
        // The last piece may still grow.
        let complete = isOver ? lines[...] : lines.dropLast()
        if let found = complete.first(where: { condition(String($0)) }) { return String(found) }
        if isOver { break }
      }
      throw ProcessFault("belfry ended without that line:\n\(text)\n\(errors)")
    }
  }

  package func signal(_ number: Int32) { kill(identifier, number) }

  /// The exit code, waited for with a limit, once all output has come.
  @discardableResult
  package func exitCode(within limit: Duration = .seconds(60)) async throws -> Int32 {
    try await withLimit(limit, "the process to end; so far:\n\(self.text)\n\(self.errors)") {
      for await _ in self.changes() {
        let (code, isOver) = self.output.withLock { ($0.exitCode, $0.openPipes == 0) }
        if let code, isOver { return code }
      }
      throw CancellationError()
    }
  }

  /// Runs to the end.
  package static func run(
    _ words: [String], program: String = "belfry", environment: [String: String] = [:],
    in directory: String? = nil, as user: UInt32? = nil, openFiles: Int? = nil
  ) async throws -> (code: Int32, output: String, errors: String) {
    let process = try BelfryProcess(
      words, program: program, environment: environment, in: directory, as: user,
      openFiles: openFiles)
    let code = try await process.exitCode()
    return (code, process.text, process.errors)
  }
}

package struct ProcessFault: Error, CustomStringConvertible {
  package let description: String
  package init(_ description: String) { self.description = description }
}

/// Runs work that must end within a limit.
package func withLimit<Result: Sendable>(
  _ limit: Duration, _ what: @autoclosure @escaping @Sendable () -> String,
  _ work: @escaping @Sendable () async throws -> Result
) async throws -> Result {
  try await withThrowingTaskGroup(of: Result.self) { group in
    group.addTask { try await work() }
    group.addTask {
      try await Task.sleep(for: limit)
      throw ProcessFault("waited \(limit) for \(what())")
    }
    defer { group.cancelAll() }
    guard let first = try await group.next() else { throw CancellationError() }
    return first
  }
}
