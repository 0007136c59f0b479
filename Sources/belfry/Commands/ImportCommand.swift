import Foundation
import NotificationHubs
import Synchronization

struct ImportCommand: ResultCommand {
  static let about = CommandHelp(
    "import", "import devices from a file: of Azure, Belfry or OneSignal, or a list of tokens",
    discussion: """
      --format tells what the file is:
        devices    what `belfry export` or an export job wrote: an installation (JSON) or a
                   registration (XML) on each line
        onesignal  OneSignal's CSV export of subscriptions. Opted-out and disabled ones are left out
        tokens     tokens, one on each line; or a CSV file with the columns token and, if present,
                   platform, user, tags
      Each device is created or replaced; those that are not in the file stay. The id of a device
      from a list is derived from its token, so importing the same file again changes nothing.
      Lines that are refused are reported on standard error, and the exit code is 1. Importing a
      file of devices twice does no harm, except with --new-ids.
      """,
    examples: [
      "belfry import devices.txt --data /var/lib/belfry --hub news",
      "belfry import devices.txt --connection \"$AZURE\" --hub news --new-ids --failed failed.txt",
      "belfry import users.csv --format onesignal --dry-run --data /var/lib/belfry --hub news",
      "belfry import tokens.txt --format tokens --platform fcm --tag moved --hub news",
    ])

  @Argument("FILE", "the file to read; - for standard input") var file: String
  let client = ClientOptions()
  @Option("--format", "WORD", "what the file is", .word) var format = DeviceList.Format.devices
  @Flag("--dry-run", "change nothing: count what would be imported, and print the first faults")
  var isDryRun
  @Option("--platform", "WORD", "the platform of devices whose row has none", .platform)
  var platform: PushPlatform?
  @Option(repeated: "--tag", "TAG", "a tag for each device of the list", .tag) var tags: [Tag]
  @Option(repeated: "--tag-column", "COLUMN", "a column that becomes the tag COLUMN:VALUE")
  var tagColumns: [String]
  @Option("--data-tags", "A,B", "of OneSignal's data tags only these, as A:VALUE (default all)")
  var dataTags: String?
  @Option("--token-column", "COLUMN", "the column with the token (default token)")
  var tokenColumn: String?
  @Option("--platform-column", "COLUMN", "the column with the platform (default platform)")
  var platformColumn: String?
  @Option(
    "--user-column", "COLUMN", "the column with the user (default user; OneSignal external_user_id)"
  ) var userColumn: String?
  @Flag("--no-users", "leave out the users") var hasNoUsers
  @Option("--id-column", "COLUMN", "the column with the installation's id (default: of the token)")
  var idColumn: String?
  @Flag("--new-ids", "let the hub give registrations new ids (Azure takes only its own)")
  var hasNewIDs
  @Option("--failed", "FILE", "write the lines that fail there, to fix and import them again")
  var failedFile: String?
  @Option(
    "--from-line", "N", "skip the lines before this one, to go on after an interruption",
    .integer(1...Int.max)) var firstLine = 1

  /// The number of lines processed concurrently.
  private static let width = 64
  /// The maximum length of a line or record, in bytes.
  static let maximumLine = 1 << 20
  /// The number of refused lines that a dry run prints, and that the result has.
  private static let shownFaults = 20

  private struct Report: Encodable {
    struct Fault: Encodable {
      let line: Int
      let reason: String
    }

    let dryRun: Bool
    var imported = 0
    var unchanged = 0
    var failed = 0
    /// The devices that are in the hub now, by platform.
    var platforms: [String: Int] = [:]
    /// The lines left out, by reason.
    var skipped: [String: Int] = [:]
    var changedTags = 0
    /// The first refused lines.
    var faults: [Fault] = []

    /// Counts a line.
    /// - Returns: The reason if it failed.
    mutating func add(_ item: ImportItem, _ outcome: Outcome?) -> String? {
      switch outcome {
      case .failed(let reason):
        failed += 1
        if faults.count < ImportCommand.shownFaults {
          faults.append(Fault(line: item.line, reason: reason))
        }
        return reason
      case .imported: imported += 1
      case .unchanged: unchanged += 1
      case nil: break
      }
      changedTags += item.changedTags
      switch item.content {
      case .installation(let one): platforms[one.platform.rawValue, default: 0] += 1
      case .registration(let one): platforms[one.platform.rawValue, default: 0] += 1
      case .skipped(let reason): skipped[reason, default: 0] += 1
      case .refused: break
      }
      return nil
    }

    var lines: [String] {
      var lines = ["\(dryRun ? "would import" : "imported") \(imported) lines, \(failed) failed"]
      if unchanged > 0 { lines.append("  \(unchanged) unchanged") }
      lines += platforms.sorted { $0.key < $1.key }.map { "  \($0.value) \($0.key)" }
      lines += skipped.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        .map { "  \($0.value) left out: \($0.key)" }
      if changedTags > 0 {
        lines.append("  \(changedTags) tags with - for characters that tags may not have")
      }
      return lines
    }
  }

  private enum Outcome: Sendable {
    case imported, unchanged
    case failed(String)
  }

  func result(in context: CommandContext) async throws -> CommandResult {
    try checkOptions()
    let (handle, size) = try input()
    var source = try source(handle)
    return try await client.withHub(isDryRun ? .looks : .changes, in: context) { access in
      if let list = source as? DeviceList { context.note("reading \(file): \(list.reading)") }
      return try await imported(&source, size: size, through: access.client, in: context)
    }
  }

  /// - Throws: ``UsageError`` for options that do not go with the format.
  private func checkOptions() throws(UsageError) {
    var wrong: [any Parameter] = []
    if format == .devices {
      wrong = [_platform, _tags, _tagColumns, _userColumn, _hasNoUsers]
    } else {
      wrong = [_hasNewIDs]
    }
    if format != .onesignal { wrong.append(_dataTags) }
    if format != .tokens { wrong += [_tokenColumn, _platformColumn, _idColumn] }
    if format == .onesignal { wrong.append(_platform) }
    if let first = wrong.first(where: \.isGiven) {
      throw UsageError("\(first.declaration.name) does not go with --format \(format.rawValue)")
    }
    try UsageError.check(exclusive: _userColumn, _hasNoUsers)
    do throws(WireFormatError) {
      _ = try Tag.validated(list: tags)
    } catch {
      throw UsageError("--tag: \(error)")
    }
  }

  private func source(_ handle: FileHandle) throws -> any ImportSource {
    if format == .devices {
      return DeviceFile(handle, file: file, hasNewIDs: hasNewIDs, firstLine: firstLine)
    }
    return try DeviceList(
      handle, file: file, format: format,
      mapping: DeviceList.Mapping(
        platform: platform, tags: tags, tagColumns: tagColumns,
        keptTags: dataTags.map { Set(TextInput.list($0)) }, tokenColumn: tokenColumn,
        platformColumn: platformColumn, userColumn: userColumn, idColumn: idColumn,
        hasUsers: !hasNoUsers))
  }

  private func imported(
    _ source: inout any ImportSource, size: Int64?, through hub: NotificationHubClient,
    in context: CommandContext
  ) async throws -> CommandResult {
    // First, because opening the file of failed lines empties the one of an earlier run.
    var next = try page(&source)
    // A file without bytes is the export of a hub without devices.
    guard next != nil || format == .devices && size == 0 else {
      throw CommandFailure.noDevices(in: file, from: firstLine)
    }
    let failures = try failedFile.map { try FailedLines($0, header: source.header) }
    var bar = ProgressBar()
    var report = Report(dryRun: isDryRun)
    let interruption = Interruption(context)
    while let page = next {
      interruption.reached(line: page[0].line)
      let outcomes: [Outcome?]
      do {
        outcomes = try await perform(page, on: hub)
      } catch {
        bar.clear()
        context.note(
          "\(report.imported) lines are in the hub, and perhaps some from line \(page[0].line) on; "
            + "go on with --from-line \(page[0].line)")
        throw error
      }
      for (item, outcome) in zip(page, outcomes) {
        if let reason = report.add(item, outcome) {
          if !isDryRun || report.failed <= Self.shownFaults {
            bar.clear()
            context.note("line \(item.line): \(reason)")
          }
          try failures?.append(item.text)
        }
      }
      bar.show(
        size.map { Double(source.offset) / Double(max($0, 1)) },
        "\(report.imported) lines, \(report.failed) failed")
      next = try self.page(&source)
    }
    interruption.end()
    bar.clear()
    let unshown = isDryRun ? report.failed - report.faults.count : 0
    let notes = unshown > 0 ? ["and \(unshown) more lines that fail"] : []
    return CommandResult(
      report, report.lines, notes: notes,
      failure: report.failed == 0
        ? nil
        : CommandFailure(
          "\(report.failed) lines \(isDryRun ? "would not be" : "were not") imported"))
  }

  private func input() throws -> (handle: FileHandle, size: Int64?) {
    if file == "-" { return (.standardInput, nil) }
    var isDirectory: ObjCBool = false
    if FileManager.default.fileExists(atPath: file, isDirectory: &isDirectory),
      isDirectory.boolValue
    {
      throw CommandFailure("\(file) is a directory, not a file", exitCode: .usage)
    }
    let handle: FileHandle
    do { handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: file)) } catch {
      throw CommandFailure(
        "\(file) cannot be read: \(Configuration.reason(error))", exitCode: .usage)
    }
    if let failed = failedFile, Self.isSame(file, failed) {
      throw UsageError("--failed \(failed) is the file to import; name another")
    }
    try CSVReader.checkText(handle.read(upToCount: 1024) ?? Data(), of: file)
    let size = try? handle.seekToEnd()
    try handle.seek(toOffset: 0)
    return (handle, size.map { Int64(clamping: $0) })
  }

  /// Whether two paths name one file, also by a link.
  private static func isSame(_ path: String, _ other: String) -> Bool {
    func identity(_ path: String) -> [Int?]? {
      let attributes = try? FileManager.default.attributesOfItem(
        atPath: URL(fileURLWithPath: path).resolvingSymlinksInPath().path)
      return attributes.map {
        [$0[.systemNumber] as? Int, $0[.systemFileNumber] as? Int]
      }
    }
    guard let one = identity(path) else { return false }
    return one == identity(other)
  }

  private func page(_ source: inout any ImportSource) throws -> [ImportItem]? {
    var page: [ImportItem] = []
    while page.count < Self.width, let item = try source.next() {
      if item.line >= firstLine { page.append(item) }
    }
    return page.isEmpty ? nil : page
  }

  /// - Returns: The outcome of each line that has a device.
  /// - Throws: An error if continuing is pointless: the hub is unreachable or refuses access.
  private func perform(
    _ page: [ImportItem], on hub: NotificationHubClient
  ) async throws -> [Outcome?] {
    try await withThrowingTaskGroup(of: (Int, Outcome?).self) { group in
      for (index, item) in page.enumerated() {
        group.addTask {
          do {
            return (index, try await self.perform(item.content, on: hub))
          } catch let error as NotificationHubError {
            let isOfLine: [NotificationHubError.Kind] = [
              .badRequest, .conflict, .gone, .preconditionFailed, .tooLarge,
            ]
            // A hub that is full still takes devices without new tags and templates.
            let isFull = error.kind == .quotaExceeded && error.retryAfter == nil
            guard isFull || isOfLine.contains(error.kind) else { throw error }
            return (index, .failed(error.detail ?? error.description))
          } catch let error as WireFormatError {
            return (index, .failed(error.description))
          }
        }
      }
      var outcomes: [Outcome?] = Array(repeating: nil, count: page.count)
      for try await (index, outcome) in group { outcomes[index] = outcome }
      return outcomes
    }
  }

  private func perform(
    _ content: ImportItem.Content, on hub: NotificationHubClient
  ) async throws -> Outcome? {
    switch content {
    case .skipped: return nil
    case .refused(let reason): return .failed(reason)
    case .installation(let installation):
      // A file of devices is written as it is: it may hold what the comparison leaves out.
      if format != .devices, try await isStored(installation, in: hub) { return .unchanged }
      if isDryRun {
        _ = try installation.validated()
      } else {
        try await hub.createOrReplace(installation)
      }
    case .registration(let registration):
      if isDryRun { break }
      if registration.registrationID == nil {
        _ = try await hub.create(registration)
      } else {
        _ = try await hub.createOrUpdate(registration)
      }
    }
    return .imported
  }

  /// Whether the hub has the installation as it is in the list.
  private func isStored(
    _ installation: Installation, in hub: NotificationHubClient
  ) async throws -> Bool {
    do {
      var stored = try await hub.installation(installation.installationID)
      stored.expirationTime = nil
      stored.pushChannelExpired = false
      return stored == installation
    } catch let error as NotificationHubError where error.kind == .notFound {
      return false
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

/// The failed lines, unchanged, after the names of their columns.
private final class FailedLines {
  private let handle: FileHandle

  init(_ path: String, header: [UInt8]?) throws {
    handle = try .privateFile(path)
    try append(header)
  }

  func append(_ line: [UInt8]?) throws {
    guard let line else { return }
    try handle.write(contentsOf: Data(line + [UInt8(ascii: "\n")]))
  }
}
