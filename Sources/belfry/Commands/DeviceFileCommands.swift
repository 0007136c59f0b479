import Cryptography
import Foundation
import HubServer
import NotificationHubs
import Synchronization

struct ExportCommand: Subcommand {
  static let about = CommandHelp(
    "export", "write all devices of a hub to a file, from Azure or from Belfry",
    discussion: """
      The file has one line for each device: an installation as JSON, or a registration that an app
      wrote itself as the XML that import and export jobs use. `belfry import` reads it.

      It needs a key with the right Manage. Devices that register while the export runs may be
      missing; run it again, or import twice.
      """,
    examples: [
      "belfry export devices.txt --connection \"$AZURE\" --hub news",
      "belfry import devices.txt --data /var/lib/belfry --hub news",
    ])

  @Argument("FILE", "the file to write; - for standard output") var file: String
  let client = ClientOptions()
  @Flag(
    "--registrations-only",
    "write those that installations have made as registrations, as export jobs do")
  var onlyRegistrations

  private struct Counts: Encodable {
    var file: String
    var registrations = 0
    var installations = 0
  }

  func run(in context: CommandContext) async throws {
    let counts = try await client.withHub(in: context) { try await export(from: $0.client) }
    let text =
      "exported \(counts.installations) installations and \(counts.registrations) registrations"
    // Standard output may be the exported file itself.
    if file == "-" { return context.note(text) }
    try CommandResult(counts, ["\(text) to \(file)"]).print(asJSON: client.json, in: context)
  }

  private func export(from hub: NotificationHubClient) async throws -> Counts {
    let output = try OutputFile(file)
    var bar = ProgressBar()
    var counts = Counts(file: file)
    var pending: [String] = []
    // Only hashes, so that memory does not grow with the length of the ids.
    var seen: Set<Int> = []
    do {
      for try await registration in hub.registrations(pageSize: 100) {
        if !onlyRegistrations, let id = registration.ownerInstallationID {
          if seen.insert(id.hashValue).inserted { pending.append(id) }
        } else {
          try output.write(registration.descriptionXML(form: .read).singleLine)
          counts.registrations += 1
        }
        if pending.count >= 64 {
          counts.installations += try await write(pending, of: hub, to: output)
          pending = []
        }
        bar.show(
          nil, "\(counts.installations) installations, \(counts.registrations) registrations")
      }
      counts.installations += try await write(pending, of: hub, to: output)
      try output.finish()
    } catch {
      bar.clear()
      output.discard()
      throw error
    }
    bar.clear()
    return counts
  }

  /// Reads installations concurrently, and writes those that still exist.
  private func write(
    _ ids: [String], of hub: NotificationHubClient, to output: OutputFile
  ) async throws -> Int {
    try await withThrowingTaskGroup(of: Installation?.self) { group in
      for id in ids {
        group.addTask {
          do {
            return try await hub.installation(id)
          } catch let error as NotificationHubError where error.kind == .notFound {
            return nil
          }
        }
      }
      var count = 0
      for try await installation in group {
        guard let installation else { continue }
        try output.write(String(decoding: installation.jsonData, as: UTF8.self))
        count += 1
      }
      return count
    }
  }
}

extension Registration {
  /// The id of the installation that owns the registration; `nil` for one that an app created
  /// directly.
  var ownerInstallationID: String? {
    let mark = "$InstallationId:{"
    for tag in tags where tag.rawValue.lowercased().hasPrefix(mark.lowercased()) {
      return String(tag.rawValue.dropFirst(mark.count).dropLast())
    }
    return nil
  }
}

extension FileHandle {
  /// See ``newPrivate(_:)``.
  /// - Throws: ``CommandFailure``.
  static func privateFile(_ path: String) throws(CommandFailure) -> FileHandle {
    if let file = newPrivate(path) { return file }
    throw CommandFailure(
      "\(path) cannot be written: \(String(cString: strerror(errno)))", exitCode: .usage)
  }
}

/// A file that appears under its name only once it is complete, or standard output.
final class OutputFile {
  private let path: String?
  private let handle: FileHandle
  /// See ``syncNames(in:)``; tests replace it.
  var syncNames: (String) throws -> Void = OutputFile.syncNames(in:)

  init(_ path: String) throws {
    guard path != "-" else {
      self.path = nil
      handle = .standardOutput
      return
    }
    let partial = path + ".part"
    self.path = path
    handle = try .privateFile(partial)
  }

  /// Creates a file with a text.
  static func write(_ text: String, to path: String) throws {
    let file = try OutputFile(path)
    try file.write(Data(text.utf8))
    try file.finish()
  }

  func write(_ line: String) throws { try write(Data((line + "\n").utf8)) }

  func write(_ data: Data) throws {
    do {
      try handle.write(contentsOf: data)
    } catch {
      throw CommandFailure(
        "\(path ?? "standard output") cannot be written: \(Configuration.reason(error))")
    }
  }

  func finish() throws {
    guard let path else { return }
    try handle.synchronize()
    guard rename(path + ".part", path) == 0 else {
      throw CommandFailure("\(path) cannot be written; what it would hold is in \(path).part")
    }
    try syncNames(URL(fileURLWithPath: path).deletingLastPathComponent().path)
  }

  /// Syncs the names of files in a directory, so that they survive a power failure; syncing the
  /// files alone does not ensure that.
  /// - Throws: ``CommandFailure``.
  static func syncNames(in folder: String) throws(CommandFailure) {
    let directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    defer { if directory >= 0 { close(directory) } }
    // A directory that is writable but not readable cannot be synced; some file systems support no
    // sync.
    guard directory >= 0 ? fsync(directory) != 0 && errno != EINVAL : errno != EACCES else {
      return
    }
    throw CommandFailure(
      "what was written in \(folder) may be lost by a power cut: \(String(cString: strerror(errno)))"
    )
  }

  func discard() {
    if let path { try? FileManager.default.removeItem(atPath: path + ".part") }
  }
}

struct ImportCommand: ResultCommand {
  static let about = CommandHelp(
    "import", "import the devices in a file into a hub, of Azure or of Belfry",
    discussion: """
      Each line creates or replaces an installation (JSON) or a registration (XML); devices that are
      not in the file stay. Lines that the hub refuses are reported on standard error, and the exit
      code is 1. Importing the same file twice does no harm, except with --new-ids.
      """,
    examples: [
      "belfry import devices.txt --data /var/lib/belfry --hub news",
      "belfry import devices.txt --connection \"$AZURE\" --hub news --new-ids --failed failed.txt",
    ])

  @Argument("FILE", "what `belfry export` or an export job wrote; - for standard input")
  var file: String
  let client = ClientOptions()
  @Flag("--new-ids", "let the hub give registrations new ids (Azure takes only its own)")
  var hasNewIDs
  @Option("--failed", "FILE", "write the lines that fail there, to fix and import them again")
  var failedFile: String?
  @Option(
    "--from-line", "N", "skip the lines before this one, to go on after an interruption",
    .integer(1...Int.max)) var firstLine = 1

  /// The number of lines processed concurrently.
  private static let width = 64
  private static let maximumLine = 1 << 20

  private struct Counts: Encodable {
    var imported = 0
    var failed = 0
  }

  private struct Item: Sendable {
    let number: Int
    let line: LineReader.Line
  }

  func result(in context: CommandContext) async throws -> CommandResult {
    try await client.withHub(.changes, in: context) { access in
      try await imported(through: access.client, in: context)
    }
  }

  private func imported(
    through hub: NotificationHubClient, in context: CommandContext
  ) async throws -> CommandResult {
    let source = try input()
    var reader = LineReader(source.handle, limit: Self.maximumLine)
    let failures = try failedFile.map(FailedLines.init)
    var bar = ProgressBar()
    var counts = Counts()
    var number = 0
    let interruption = Interruption(context)
    while let page = try page(&reader, number: &number) {
      interruption.reached(line: page[0].number)
      let results: [String?]
      do {
        results = try await perform(page, on: hub)
      } catch {
        bar.clear()
        let line = page.first?.number ?? number
        context.note(
          "\(counts.imported) lines are in the hub; go on with --from-line \(line)")
        throw error
      }
      for (item, reason) in zip(page, results) {
        guard let reason else {
          counts.imported += 1
          continue
        }
        counts.failed += 1
        bar.clear()
        context.note("line \(item.number): \(reason)")
        try failures?.append(item.line)
      }
      bar.show(
        source.size.map { Double(reader.offset) / Double(max($0, 1)) },
        "\(counts.imported) lines, \(counts.failed) failed")
    }
    interruption.end()
    bar.clear()
    return CommandResult(
      counts, ["imported \(counts.imported) lines, \(counts.failed) failed"],
      failure: counts.failed == 0
        ? nil : CommandFailure("\(counts.failed) lines were not imported"))
  }

  private func input() throws -> (handle: FileHandle, size: Int64?) {
    if file == "-" { return (.standardInput, nil) }
    guard let handle = FileHandle(forReadingAtPath: file) else {
      throw CommandFailure("\(file) cannot be read", exitCode: .usage)
    }
    let size = try? handle.seekToEnd()
    try handle.seek(toOffset: 0)
    return (handle, size.map { Int64(clamping: $0) })
  }

  private func page(_ reader: inout LineReader, number: inout Int) throws -> [Item]? {
    var page: [Item] = []
    while page.count < Self.width, let line = try reader.next() {
      number += 1
      if number < firstLine { continue }
      if case .text(let text) = line, text.isEmpty { continue }
      page.append(Item(number: number, line: line))
    }
    return page.isEmpty ? nil : page
  }

  /// - Returns: The failure of each line; `nil` if it was imported.
  /// - Throws: An error if continuing is pointless: the hub is unreachable or refuses access.
  private func perform(_ page: [Item], on hub: NotificationHubClient) async throws -> [String?] {
    try await withThrowingTaskGroup(of: (Int, String?).self) { group in
      for (index, item) in page.enumerated() {
        group.addTask {
          do {
            try await self.perform(item.line, on: hub)
            return (index, nil)
          } catch let error as NotificationHubError {
            let isOfLine: [NotificationHubError.Kind] = [
              .badRequest, .conflict, .gone, .preconditionFailed, .tooLarge,
            ]
            guard isOfLine.contains(error.kind) else { throw error }
            return (index, error.detail ?? error.description)
          } catch let error as WireFormatError {
            return (index, error.description)
          }
        }
      }
      var results: [String?] = Array(repeating: nil, count: page.count)
      for try await (index, reason) in group { results[index] = reason }
      return results
    }
  }

  private func perform(_ line: LineReader.Line, on hub: NotificationHubClient) async throws {
    guard case .text(let text) = line else {
      throw WireFormatError("the line is longer than \(Self.maximumLine) bytes")
    }
    if text.first == UInt8(ascii: "{") {
      return try await hub.createOrReplace(try Installation(jsonData: Data(text)))
    }
    var registration = try Registration.decode(text)
    guard registration.ownerInstallationID == nil else {
      throw WireFormatError(
        "it belongs to an installation; `belfry export` writes the installation instead")
    }
    registration.etag = nil
    registration.expirationTime = nil
    if hasNewIDs { registration.registrationID = nil }
    if registration.registrationID == nil {
      _ = try await hub.create(registration)
    } else {
      _ = try await hub.createOrUpdate(registration)
    }
  }
}

/// Reports on Ctrl-C the line from which to continue.
private final class Interruption: Sendable {
  private let line = Mutex<Int?>(nil)

  init(_ context: CommandContext) {
    let signal = ShutdownSignal(report: context.note)
    Task { [self] in
      let number = await signal.wait()
      if let line = line.withLock({ $0 }) {
        context.note("\ninterrupted; go on with --from-line \(line)")
      }
      ShutdownSignal.die(of: number)
    }
  }

  /// Records that all lines before this one are imported.
  func reached(line number: Int) { line.withLock { $0 = number } }

  /// Records that there is nothing to continue.
  func end() { line.withLock { $0 = nil } }
}

/// The failed lines, unchanged.
private final class FailedLines {
  private let handle: FileHandle

  init(_ path: String) throws { handle = try .privateFile(path) }

  func append(_ line: LineReader.Line) throws {
    guard case .text(let text) = line else { return }
    try handle.write(contentsOf: Data(text + [UInt8(ascii: "\n")]))
  }
}
