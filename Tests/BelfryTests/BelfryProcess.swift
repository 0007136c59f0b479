import Foundation
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The built `belfry`, run as a person or a script runs it.
final class BelfryProcess: Sendable {
  private struct Output {
    var text = ""
    var errors = ""
    var isClosed = false
    var exitCode: Int32?
    var listeners: [AsyncStream<Void>.Continuation] = []
  }

  private let process = Process()
  private let output = Mutex(Output())

  /// Beside the test bundle, in the build's products directory.
  static let executable: URL = {
    var folder = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
    while folder.path != "/" {
      folder.deleteLastPathComponent()
      let candidate = folder.appending(path: "belfry")
      if FileManager.default.isExecutableFile(atPath: candidate.path) { return candidate }
    }
    // Nothing was found; running this path fails with a clear error in the test.
    return URL(fileURLWithPath: "belfry")
  }()

  init(_ words: [String], environment: [String: String] = [:]) throws {
    process.executableURL = Self.executable
    process.arguments = words
    var all = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("BELFRY_") }
    all.merge(environment) { $1 }
    process.environment = all
    process.standardInput = FileHandle.nullDevice
    let out = Pipe()
    let err = Pipe()
    process.standardOutput = out
    process.standardError = err
    out.fileHandleForReading.readabilityHandler = { [weak self] handle in
      let data = handle.availableData
      if data.isEmpty { handle.readabilityHandler = nil }
      self?.changed { output in
        if data.isEmpty { output.isClosed = true }
        output.text += String(decoding: data, as: UTF8.self)
      }
    }
    err.fileHandleForReading.readabilityHandler = { [weak self] handle in
      let data = handle.availableData
      if data.isEmpty { handle.readabilityHandler = nil }
      self?.changed { $0.errors += String(decoding: data, as: UTF8.self) }
    }
    process.terminationHandler = { [weak self] process in
      let status = process.terminationStatus
      self?.changed { $0.exitCode = process.terminationReason == .exit ? status : 128 + status }
    }
    try process.run()
  }

  deinit { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }

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

  var text: String { output.withLock { $0.text } }
  var errors: String { output.withLock { $0.errors } }
  var isRunning: Bool { process.isRunning }

  /// The first line of output that satisfies a condition, waited for with a limit.
  func line(
    within limit: Duration = .seconds(60), where condition: @escaping @Sendable (String) -> Bool
  ) async throws -> String {
    try await line(of: { $0.text }, within: limit, where: condition)
  }

  /// The same of standard error.
  func note(
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
        let (lines, isClosed) = output.withLock { output in
          let text = stream(output)
          return (text.split(separator: "\n", omittingEmptySubsequences: false), output.isClosed)
        }
        // The last piece may still grow.
        let complete = isClosed ? lines[...] : lines.dropLast()
        if let found = complete.first(where: { condition(String($0)) }) { return String(found) }
        if isClosed { break }
      }
      throw ProcessFault("belfry ended without that line:\n\(text)\n\(errors)")
    }
  }

  func signal(_ number: Int32) { kill(process.processIdentifier, number) }

  /// The exit code, waited for with a limit, once all output has come.
  @discardableResult
  func exitCode(within limit: Duration = .seconds(60)) async throws -> Int32 {
    try await withLimit(limit, "the process to end; so far:\n\(self.text)\n\(self.errors)") {
      for await _ in self.changes() {
        let (code, isClosed) = self.output.withLock { ($0.exitCode, $0.isClosed) }
        if let code, isClosed { return code }
      }
      throw CancellationError()
    }
  }

  /// Runs to the end.
  static func run(_ words: [String], environment: [String: String] = [:]) async throws -> (
    code: Int32, output: String, errors: String
  ) {
    let process = try BelfryProcess(words, environment: environment)
    let code = try await process.exitCode()
    return (code, process.text, process.errors)
  }
}

struct ProcessFault: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// Runs work that must end within a limit.
func withLimit<Result: Sendable>(
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
