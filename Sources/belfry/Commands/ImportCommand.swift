import Foundation
import HubServer
import NotificationHubs
import Synchronization

/// `belfry import`
struct ImportCommand: Subcommand {
  static let help = CommandHelp(
    "import", "bring the devices in a file into a hub, of Azure or of Belfry",
    arguments: [("FILE", "what `belfry export` or an export job wrote; - for standard input")],
    options: ClientOptions.options + [
      .flag("--new-ids", "let the hub give registrations new ids (Azure takes only its own)"),
      .value("--failed", "FILE", "write the lines that fail there, to mend and import again"),
      .value("--from-line", "N", "skip the lines before this one, to go on after an interruption"),
    ],
    discussion: """
      Each line creates or replaces an installation (JSON) or a registration (XML); what is in the
      hub and not in the file stays. Lines that the hub refuses are named on standard error, and
      the exit code is 1. Importing the same file twice does no harm, except with --new-ids.

      \(ClientOptions.note)
      """,
    examples: [
      "belfry import devices.txt --data /var/lib/belfry --hub news",
      "belfry import devices.txt --connection \"$AZURE\" --hub news --new-ids --failed failed.txt",
    ])

  let file: String
  let hasNewIDs: Bool
  let failedFile: String?
  let firstLine: Int
  let client: ClientOptions

  /// Lines that are under way at a time.
  private static let width = 64
  private static let maximumLine = 1 << 20

  init(_ words: Words) throws {
    file = try words.argument(0)
    hasNewIDs = words.flag("--new-ids")
    failedFile = words.value("--failed")
    firstLine = try words.integer("--from-line", in: 1...Int.max) ?? 1
    client = ClientOptions(words: words)
  }

  private struct Counts: Encodable {
    var imported = 0
    var failed = 0
  }

  private struct Item: Sendable {
    let number: Int
    let line: LineReader.Line
  }

  func run(in context: CommandContext) async throws {
    let access = try await client.access(.changes("Manage"), in: context)
    let hub = access.client
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
        results = try await access.calling { try await perform(page, on: hub) }
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
    if client.json {
      try context.printJSON(counts)
    } else {
      context.print("imported \(counts.imported) lines, \(counts.failed) failed")
    }
    if counts.failed > 0 { throw CommandFailure("\(counts.failed) lines were not imported") }
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

  /// - Returns: For each line why it failed; `nil` when it is in the hub.
  /// - Throws: When it makes no sense to go on: the hub is away, or lets nobody in.
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

/// Says at Ctrl-C from which line to go on.
private final class Interruption: Sendable {
  private let line = Mutex<Int?>(nil)

  init(_ context: CommandContext) {
    let signal = ShutdownSignal()
    Task { [self] in
      let number = await signal.wait()
      if let line = line.withLock({ $0 }) {
        context.note("\ninterrupted; go on with --from-line \(line)")
      }
      ShutdownSignal.die(of: number)
    }
  }

  /// What comes before this line is in the hub.
  func reached(line number: Int) { line.withLock { $0 = number } }

  /// There is nothing to go on with.
  func end() { line.withLock { $0 = nil } }
}

/// The lines that failed, as they were.
private final class FailedLines {
  private let handle: FileHandle

  init(_ path: String) throws { handle = try .privateFile(path) }

  func append(_ line: LineReader.Line) throws {
    guard case .text(let text) = line else { return }
    try handle.write(contentsOf: Data(text + [UInt8(ascii: "\n")]))
  }
}
