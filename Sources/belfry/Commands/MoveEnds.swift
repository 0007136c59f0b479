import Foundation
import HubCore
import HubStorage

/// The source and target of a move: a data directory with a file, and a PostgreSQL database.
struct MoveEnds {
  /// The directory whose file is one end.
  private let directory: DataDirectory
  /// The address of the database at the other end.
  private let address: String
  /// The directory with the master key.
  private let keys: DataDirectory
  private let masterKey: String?
  private let isToDatabase: Bool
  private let slots: Int?

  /// - Throws: ``UsageError`` or ``CommandFailure``, before anything is created.
  init(from source: String, to target: String, masterKey: String?, slots: Int?) throws {
    self.masterKey = masterKey
    self.slots = slots
    if let address = try Self.address(target, "--to") {
      let isDatabase = try Self.address(source, "--from") != nil
      let from = DataDirectory(path: URL(fileURLWithPath: source).standardizedFileURL.path)
      guard try !isDatabase && (!from.isUsed || from.postgres(nil) == nil) else {
        throw UsageError(
          "both ends are PostgreSQL databases: pg_dump and pg_restore copy one to another")
      }
      directory = try DataDirectory.existing(at: source, option: "--from")
      (self.address, keys, isToDatabase) = (address, directory, true)
      return
    }
    let to = DataDirectory(path: URL(fileURLWithPath: target).standardizedFileURL.path)
    isToDatabase = false
    directory = to
    if let address = try Self.address(source, "--from") {
      (self.address, keys) = (address, to)
    } else {
      let node = try DataDirectory.existing(at: source, option: "--from")
      guard let address = try node.postgres(nil) else {
        throw UsageError("both ends are files: with the server stopped, copy the directory")
      }
      (self.address, keys) = (address, node)
    }
    guard try !to.isUsed || to.postgres(nil) == nil else {
      throw UsageError("\(to.path) is the directory of a node; name a new one")
    }
  }

  /// The address of a database; `nil` for a directory.
  private static func address(_ text: String, _ option: String) throws -> String? {
    guard DatabaseAddress.isAddress(text), !text.hasPrefix("/"), !text.hasPrefix(".") else {
      return nil
    }
    if let fault = DatabaseAddress.fault(text) { throw UsageError("\(option) \(fault)") }
    if DatabaseAddress.hasPassword(text) {
      throw UsageError(
        "\(option): other users of this machine can read a password in the command line: pass it "
          + "in PGPASSWORD or the file that PGPASSFILE names")
    }
    return text
  }

  private var database: String { DatabaseAddress.shown(address) }
  var source: String { isToDatabase ? directory.path : database }
  var target: String { isToDatabase ? database : directory.path }

  private var next: String {
    isToDatabase
      ? "copy \(directory.path)/master.key to the data directory of each node, then `belfry serve --data "
        + "DIR --database '\(database)'`"
      : "`belfry serve --data \(CurlCommand.word(directory.path))`"
  }

  /// The message if the same move has already been completed; `nil` if it has not.
  func done() async throws -> String? {
    let note =
      isToDatabase ? directory.moved : try await withSourceDatabase { try await $0.moved() }
    guard let note, note.hasPrefix("to \(target) ") else { return nil }
    return "this move is done: \(source) was moved \(note). Next: \(next)"
  }

  /// The advice on next steps.
  var advice: String {
    """
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
    options.slots = slots ?? options.slots
    options.takesMove = asTarget
    options.mayMigrate = asTarget
    options.answerTime = nil
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

  /// Keeps servers from using the directory.
  private func claim() throws -> DirectoryClaim {
    do {
      return try directory.claim(for: .moving)
    } catch {
      throw CommandFailure(
        "a server serves from \(directory.path): stop it first, so that nothing changes meanwhile",
        exitCode: .unreachable)
    }
  }

  // MARK: Work

  /// The rows to be moved; no target is created.
  func preview() async throws -> [(String, Int64)] {
    let isNew =
      isToDatabase
      ? try isNewDatabase() : !FileManager.default.fileExists(atPath: directory.database)
    guard isNew else { return try await withMove { try await $0.preview() } }
    try checkKey()
    return isToDatabase
      ? try await withSourceFile { try await HubMove.counts(of: $0) }
      : try await withSourceDatabase { try await HubMove.counts(of: $0) }
  }

  func withMove<Value>(_ body: (HubMove) async throws -> Value) async throws -> Value {
    try checkKey()
    if isToDatabase {
      return try await withSourceFile { source in
        let target = try await openDatabase(asTarget: true)
        return try await target.closing {
          var move = HubMove(from: source, to: target)
          move.closeSource = { [directory, note] in try directory.setMoved(note) }
          return try await body(move)
        }
      }
    }
    // Any problem with the source is detected before anything is created.
    return try await withSourceDatabase { source in
      try await HubMove.refuseLiving(on: source)
      _ = try DataDirectory.make(at: directory.path)
      let claim = try self.claim()
      defer { withExtendedLifetime(claim) {} }
      try copyKey()
      // If the target has a hub, it may be one that was moved away, which cannot be a target.
      if !FileManager.default.fileExists(atPath: directory.database) {
        try directory.setMoved(nil)
      }
      let target = try await openFile(asTarget: true)
      return try await target.closing {
        var move = HubMove(from: source, to: target)
        move.closeSource = { [note] in try await source.noteMoved(note) }
        return try await body(move)
      }
    }
  }

  private func withSourceFile<Value>(
    _ body: (SQLiteHubStore) async throws -> Value
  ) async throws -> Value {
    let claim = try self.claim()
    defer { withExtendedLifetime(claim) {} }
    let store = try await openFile(asTarget: false)
    return try await store.closing { try await body(store) }
  }

  private func withSourceDatabase<Value>(
    _ body: (PostgresHubStore) async throws -> Value
  ) async throws -> Value {
    let store = try await openDatabase(asTarget: false)
    return try await store.closing { try await body(store) }
  }

  /// The note left at the source.
  private var note: String {
    "to \(target)" + (isToDatabase ? "" : " on \(ProcessInfo.processInfo.hostName)")
      + " at \(Date().formatted(.iso8601))"
  }

  private func checkKey() throws {
    guard masterKey == nil, !FileManager.default.fileExists(atPath: keys.masterKeyFile) else {
      return
    }
    throw CommandFailure(
      "the master key of \(source) is not here: copy master.key of one of its nodes to "
        + "\(keys.masterKeyFile), or set \(Setting.masterKey.variable)", exitCode: .usage)
  }

  private func copyKey() throws {
    guard masterKey == nil, keys.path != directory.path else { return }
    let key = try String(contentsOfFile: keys.masterKeyFile, encoding: .utf8)
    if let there = try? String(contentsOfFile: directory.masterKeyFile, encoding: .utf8) {
      guard there == key else {
        throw CommandFailure(
          "\(directory.masterKeyFile) is another master key than \(keys.masterKeyFile), and would not "
            + "open what is moved: name a new directory", exitCode: .usage)
      }
      return
    }
    try OutputFile.write(key, to: directory.masterKeyFile)
  }
}
