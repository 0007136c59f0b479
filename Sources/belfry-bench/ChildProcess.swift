import Foundation

/// A child process of the same program for the other side of a measurement, so that this process's
/// CPU time is that of the measured side alone. It prints a line of JSON at the start, works until
/// its standard input ends, and prints another line.
struct ChildProcess<Greeting: Decodable, Goodbye: Decodable> {
  let greeting: Greeting
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  /// - Parameters:
  ///   - words: The hidden word that selects the child's role, followed by its arguments.
  ///   - program: The path of another program with the same lines; `nil` for this one.
  init(_ words: [String], of program: String? = nil) throws {
    guard let executable = program.map({ URL(filePath: $0) }) ?? Bundle.main.executableURL else {
      throw BenchmarkError("cannot find this program's own file to start '\(words[0])'")
    }
    process.executableURL = executable
    process.arguments = words
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    greeting = try Self.line(from: output.fileHandleForReading, of: words[0], process)
  }

  /// Waits for the final line of a child that ends by itself.
  func goodbye() throws -> Goodbye {
    let goodbye: Goodbye = try Self.line(
      from: output.fileHandleForReading, of: "the child", process)
    process.waitUntilExit()
    return goodbye
  }

  /// Tells the child to end.
  func stop() throws -> Goodbye {
    try input.fileHandleForWriting.close()
    return try goodbye()
  }

  private static func line<Value: Decodable>(
    from handle: FileHandle, of who: String, _ process: Process
  ) throws -> Value {
    var line = Data()
    while line.last != UInt8(ascii: "\n") {
      let more = handle.availableData
      if more.isEmpty { break }
      line += more
    }
    guard let value = try? JSONDecoder().decode(Value.self, from: line) else {
      process.terminate()
      process.waitUntilExit()
      throw BenchmarkError(
        "\(who) ended before its time, with \(process.terminationStatus) "
          + (process.terminationReason == .exit ? "as exit code" : "as signal"))
    }
    return value
  }
}

/// Prints a line of a ``ChildProcess``.
func say(_ value: some Encodable) throws {
  FileHandle.standardOutput.write(try JSONEncoder().encode(value) + Data("\n".utf8))
}
