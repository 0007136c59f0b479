import Foundation

/// This program once more, with a pipe to it and one from it.
final class Child: Sendable {
  let identifier: pid_t
  private let input: Int32
  // Owner: the thread that reads from this child.
  nonisolated(unsafe) private let output: UnsafeMutablePointer<FILE>

  /// Starts it. One thread at a time may: what it inherits is decided in between.
  init(_ words: [String]) {
    var (toChild, fromChild): ([Int32], [Int32]) = ([0, 0], [0, 0])
    guard pipe(&toChild) == 0, pipe(&fromChild) == 0, let file = fdopen(fromChild[0], "r") else {
      Program.fail("no pipe: \(String(cString: strerror(errno)))")
    }
    // Another child must not hold them open.
    for end in toChild + fromChild { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    #if canImport(Darwin)
      var actions: posix_spawn_file_actions_t?
    #else
      var actions = posix_spawn_file_actions_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, toChild[0], 0)
    posix_spawn_file_actions_adddup2(&actions, fromChild[1], 1)
    var arguments = ([Program.path] + words).map { strdup($0) } + [nil]
    var variables =
      ProcessInfo.processInfo.environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { for text in arguments + variables { free(text) } }
    var identifier: pid_t = 0
    let code = posix_spawn(&identifier, Program.path, &actions, nil, &arguments, &variables)
    guard code == 0 else {
      Program.fail("\(Program.path) cannot be started: \(String(cString: strerror(code)))")
    }
    close(toChild[0])
    close(fromChild[1])
    self.identifier = identifier
    input = toChild[1]
    output = file
  }

  func write(_ line: String) {
    let bytes = Array("\(line)\n".utf8)
    _ = Foundation.write(input, bytes, bytes.count)
  }

  /// `nil` once it has ended.
  func read() -> String? {
    var line: UnsafeMutablePointer<CChar>?
    var size = 0
    defer { free(line) }
    let count = getline(&line, &size, output)
    guard count > 0, let line else { return nil }
    return String(cString: line).trimmingCharacters(in: .newlines)
  }

  func kill() { Foundation.kill(identifier, SIGKILL) }

  /// Waits for its end, with nothing more to do.
  /// - Returns: The signal that ended it, or its exit code.
  func end() -> (signal: Int32, code: Int32) {
    close(input)
    var status: Int32 = 0
    while waitpid(identifier, &status, 0) == -1, errno == EINTR {}
    fclose(output)
    return (status & 0x7f, status >> 8 & 0xff)
  }
}
