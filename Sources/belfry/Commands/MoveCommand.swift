import Foundation
import HubCore
import HubStorage
import Synchronization

struct MoveCommand: Subcommand {
  static let about = CommandHelp(
    "move", "move all hubs from a file to PostgreSQL, or back",
    discussion: """
      Moves everything: hubs, keys, credentials, devices with their ids and etags, notifications with
      what is left to do of them, schedules, outcomes, statistics, activity and sessions. Stop the
      servers of both first. The target is new: a directory without a database, or a database made with
      `createdb`; a directory in the place of a PostgreSQL source is that of one of its nodes.

      A move that was interrupted goes on when the same command is given again; nobody can serve its
      target before it is done. In the end both sides are compared, by counts and hashes of all that they
      say. The source stays as it was, with a note that keeps servers from it: two hubs would push twice.

      What is secret stays sealed under the same master key, which must be there on both sides.
      """,
    examples: [
      "belfry move --from belfry-data --to postgresql://belfry@db1/belfry --dry-run",
      "belfry move --from belfry-data --to postgresql://belfry@db1/belfry",
      "belfry move --from /var/lib/belfry-node --to belfry-data",
    ])

  @Option("--from", "DIR|URL", "the data directory that is moved, or a PostgreSQL database")
  var source: String?
  @Option("--to", "DIR|URL", "where it is moved to: the other of the two") var target: String?
  @Flag("--dry-run", "say what would be moved, and change nothing") var isDryRun
  @Flag("--json", "print one JSON value for scripts") var json
  private let settings = SettingOptions([.databaseSlots])

  private struct Result: Encodable {
    struct Table: Encodable {
      let table: String
      let rows: Int64
      /// Of what the rows say; the same on both sides.
      let hash: String?
    }
    let from: String
    let to: String
    let isDryRun: Bool
    let tables: [Table]
  }

  func run(in context: CommandContext) async throws {
    guard let source, let target else { throw UsageError("give --from and --to") }
    let configuration = try Configuration(
      file: nil, environment: context.environment, flags: settings.given)
    let ends = try MoveEnds(
      from: source, to: target, masterKey: configuration.text(.masterKey),
      slots: configuration.integer(.databaseSlots))
    do {
      let tables =
        isDryRun ? try await preview(ends, in: context) : try await move(ends, in: context)
      if json {
        return try context.printJSON(
          Result(from: ends.source, to: ends.target, isDryRun: isDryRun, tables: tables))
      }
      for table in tables {
        context.print(
          table.table.padded(to: 22) + String(table.rows).padded(to: 12) + (table.hash ?? ""))
      }
      context.print(isDryRun ? "nothing was changed" : ends.advice)
    } catch let refusal as MoveRefusal {
      throw CommandFailure("\(refusal)")
    }
  }

  private func preview(
    _ ends: MoveEnds, in context: CommandContext
  ) async throws -> [Result.Table] {
    let counts = try await ends.preview()
    return counts.map { Result.Table(table: $0.0, rows: $0.1, hash: nil) }
  }

  private func move(_ ends: MoveEnds, in context: CommandContext) async throws -> [Result.Table] {
    let lines = ProgressLines(context)
    defer { lines.clear() }
    let digests = try await ends.withMove { move in try await move.run { lines.show($0) } }
    return digests.map {
      Result.Table(table: $0.table, rows: $0.rows, hash: String($0.hash, radix: 16))
    }
  }
}

/// Tells how far a move is: on a terminal in a bar, else in a line every ten seconds.
private final class ProgressLines: Sendable {
  private struct State {
    var bar = ProgressBar()
    var next = ContinuousClock.now + .seconds(10)
    var start: (step: MoveProgress.Step, at: ContinuousClock.Instant)?
  }

  private let state = Mutex(State())
  private let context: CommandContext

  init(_ context: CommandContext) { self.context = context }

  func show(_ progress: MoveProgress) {
    let line = state.withLock { state -> String? in
      if state.start?.step != progress.step { state.start = (progress.step, .now) }
      let seconds = (ContinuousClock.now - (state.start?.at ?? .now)) / .seconds(1)
      let rate = Double(progress.rows - progress.earlier) / max(seconds, 0.001)
      let left = Double(max(0, progress.total - progress.rows)) / max(rate, 1)
      let text =
        "\(progress.step == .copying ? "copying" : "comparing") \(progress.table): \(progress.rows) of "
        + "\(progress.total) rows, \(Int(rate)) a second, \(Int(left.rounded(.up))) s left"
      state.bar.show(Double(progress.rows) / Double(max(1, progress.total)), text)
      guard isatty(2) != 1, ContinuousClock.now > state.next else { return nil }
      state.next = .now + .seconds(10)
      return text
    }
    if let line { context.note(line) }
  }

  func clear() { state.withLock { $0.bar.clear() } }
}

/// The two ends of a move: one is a data directory with a file, the other a PostgreSQL database.
private struct MoveEnds {
  /// Its file is one end.
  private let directory: DataDirectory
  /// The other end.
  private let address: String
  /// Has the master key.
  private let keys: DataDirectory
  private let masterKey: String?
  private let isToDatabase: Bool
  private let slots: Int

  /// - Throws: ``UsageError``, ``CommandFailure``; nothing is made before that is certain.
  init(from source: String, to target: String, masterKey: String?, slots: Int) throws {
    self.masterKey = masterKey
    self.slots = slots
    if let address = try Self.address(target, "--to") {
      let isDatabase = try Self.address(source, "--from") != nil
      let from = DataDirectory(path: URL(fileURLWithPath: source).standardizedFileURL.path)
      guard try !isDatabase && (!from.isUsed || from.postgres(nil) == nil) else {
        throw UsageError(
          "both ends are PostgreSQL databases: pg_dump and pg_restore copy one to another")
      }
      directory = try DataDirectory.existing(at: source)
      (self.address, keys, isToDatabase) = (address, directory, true)
      return
    }
    let to = DataDirectory(path: URL(fileURLWithPath: target).standardizedFileURL.path)
    isToDatabase = false
    directory = to
    if let address = try Self.address(source, "--from") {
      (self.address, keys) = (address, to)
    } else {
      let node = try DataDirectory.existing(at: source)
      guard let address = try node.postgres(nil) else {
        throw UsageError("both ends are files: with the server stopped, copy the directory")
      }
      (self.address, keys) = (address, node)
    }
    guard try !to.isUsed || to.postgres(nil) == nil else {
      throw UsageError("\(to.path) is the directory of a node; name a new one")
    }
  }

  /// What names a database; `nil` for a directory.
  private static func address(_ text: String, _ option: String) throws -> String? {
    guard DatabaseAddress.isAddress(text), !text.hasPrefix("/"), !text.hasPrefix(".") else {
      return nil
    }
    if let fault = DatabaseAddress.fault(text) { throw UsageError("\(option) \(fault)") }
    if DatabaseAddress.hasPassword(text) {
      throw UsageError(
        "\(option): everybody on this machine can read a password in the words of a command: give it in "
          + "PGPASSWORD or the file that PGPASSFILE names")
    }
    return text
  }

  private var database: String { DatabaseAddress.shown(address) }
  var source: String { isToDatabase ? directory.path : database }
  var target: String { isToDatabase ? database : directory.path }

  /// What to do next.
  var advice: String {
    let next =
      isToDatabase
      ? "copy \(directory.path)/master.key to the data directory of each node, then `belfry serve --data "
        + "DIR --database '\(database)'`"
      : "`belfry serve --data \(CurlCommand.word(directory.path))`"
    return """
      moved, and found to be the same on both sides. Next: \(next)
      \(source) stays as it is; servers refuse it, since two hubs would push everything twice.
      """
  }

  // MARK: Opening

  private func openFile(asTarget: Bool) async throws -> SQLiteHubStore {
    var options = SQLiteHubStore.Options()
    options.takesMove = asTarget
    options.mayMigrate = asTarget
    if !asTarget, try SQLiteHubStore.isOlder(at: directory.database) {
      throw CommandFailure(
        "\(directory.path) was written by an older Belfry: run `belfry hub list --data "
          + "\(directory.path)` once, which brings it up to date")
    }
    do {
      return try await directory.openStore(masterKey: masterKey, options: options).store
    } catch StoreError.sealedSecret {
      throw CommandFailure(
        "the database in \(directory.path) has another master key than \(keys.masterKeyFile)",
        exitCode: .usage)
    }
  }

  private func openDatabase(asTarget: Bool) async throws -> PostgresHubStore {
    if !asTarget, try isNewDatabase() {
      throw CommandFailure("\(database) has no hub: nothing was kept there yet", exitCode: .usage)
    }
    var options = PostgresHubStore.Options()
    options.slots = slots
    options.takesMove = asTarget
    options.mayMigrate = asTarget
    options.batchWriters = 1
    do {
      return try await keys.openPostgres(
        address, masterKey: masterKey, options: options
      ).store
    } catch let failure as CommandFailure
      where "\(failure)".contains("\(StoreError.sealedSecret)")
    {
      throw CommandFailure(
        "\(database) has another master key than \(keys.masterKeyFile)"
          + (isToDatabase
            ? ": name a new database" : ": copy master.key of one of its nodes there"),
        exitCode: .usage)
    }
  }

  private func isNewDatabase() throws -> Bool {
    do {
      return try PostgresHubStore.isNew(at: address)
    } catch {
      throw CommandFailure("the database \(database): \(error)", exitCode: .unreachable)
    }
  }

  /// Keeps servers away from the directory.
  private func claim() throws -> DirectoryClaim {
    do {
      return try directory.claim()
    } catch {
      throw CommandFailure(
        "a server serves from \(directory.path): stop it first, so that nothing changes meanwhile",
        exitCode: .unreachable)
    }
  }

  // MARK: Work

  func preview() async throws -> [(String, Int64)] {
    if isToDatabase {
      let claim = try self.claim()
      defer { withExtendedLifetime(claim) {} }
      let file = try await openFile(asTarget: false)
      return try await closing(file) {
        guard try !isNewDatabase() else { return try await HubMove.counts(of: file) }
        let target = try await openDatabase(asTarget: true)
        return try await closing(target) { try await HubMove(from: file, to: target).preview() }
      }
    }
    guard FileManager.default.fileExists(atPath: directory.database) else {
      let needsKey = masterKey == nil && !FileManager.default.fileExists(atPath: keys.masterKeyFile)
      guard !needsKey else { throw missingKey }
      let store = try await openDatabase(asTarget: false)
      return try await closing(store) { try await HubMove.counts(of: store) }
    }
    return try await withMove { try await $0.preview() }
  }

  func withMove<Value>(_ body: (HubMove) async throws -> Value) async throws -> Value {
    guard masterKey != nil || FileManager.default.fileExists(atPath: keys.masterKeyFile) else {
      throw missingKey
    }
    if !isToDatabase {
      // Before anything is made.
      let source = try await openDatabase(asTarget: false)
      return try await closing(source) {
        try await HubMove.refuseLiving(on: source)
        _ = try DataDirectory.make(at: directory.path)
        let claim = try self.claim()
        defer { withExtendedLifetime(claim) {} }
        try copyKey()
        // Where there is a hub, it may be one that was moved away: no target.
        if !FileManager.default.fileExists(atPath: directory.database) {
          try directory.setMoved(nil)
        }
        let file = try await openFile(asTarget: true)
        return try await closing(file) {
          var move = HubMove(from: source, to: file)
          move.closeSource = { [note] in try await source.noteMoved(note) }
          return try await body(move)
        }
      }
    }
    let claim = try self.claim()
    defer { withExtendedLifetime(claim) {} }
    let file = try await openFile(asTarget: false)
    return try await closing(file) {
      let target = try await openDatabase(asTarget: true)
      return try await closing(target) {
        var move = HubMove(from: file, to: target)
        move.closeSource = { [directory, note] in try directory.setMoved(note) }
        return try await body(move)
      }
    }
  }

  /// What the source says of itself from then on.
  private var note: String {
    "to \(target)" + (isToDatabase ? "" : " on \(ProcessInfo.processInfo.hostName)")
      + " at \(Date().formatted(.iso8601))"
  }

  private var missingKey: CommandFailure {
    CommandFailure(
      "the master key of \(source) is not here: copy master.key of one of its nodes to "
        + "\(keys.masterKeyFile), or set \(Setting.masterKey.variable)", exitCode: .usage)
  }

  private func copyKey() throws {
    guard masterKey == nil, keys.path != directory.path else { return }
    let key = try Data(contentsOf: URL(fileURLWithPath: keys.masterKeyFile))
    if let there = try? Data(contentsOf: URL(fileURLWithPath: directory.masterKeyFile)) {
      guard there == key else {
        throw CommandFailure(
          "\(directory.masterKeyFile) is another master key than \(keys.masterKeyFile), and would not "
            + "open what is moved: name a new directory", exitCode: .usage)
      }
      return
    }
    guard
      FileManager.default.createFile(
        atPath: directory.masterKeyFile, contents: key, attributes: [.posixPermissions: 0o600])
    else {
      throw CommandFailure("\(directory.masterKeyFile) cannot be written", exitCode: .usage)
    }
  }

  private func closing<Value>(
    _ store: some HubStore, _ body: () async throws -> Value
  ) async throws -> Value {
    do {
      let value = try await body()
      try await store.close()
      return value
    } catch {
      try? await store.close()
      throw error
    }
  }
}
