import Cryptography
import Foundation
import HubCore
import HubStorage
import SQLDatabase
import SecurePushBackend
import Wire

/// The password of a sealed backup, which never stands in the words of a command.
struct BackupPassword {
  static let variable = "BELFRY_BACKUP_PASSWORD"
  let file: String?
  let context: CommandContext

  /// Whether there is one to open a backup with, which has to be sealed then.
  var isGiven: Bool { file != nil || context.environment[Self.variable] != nil }

  /// What was given; `nil` where somebody has to be asked.
  private func given() throws -> String? {
    try file.map { try NewPassword.firstLine(of: $0) } ?? context.environment[Self.variable]
  }

  func new() throws -> String {
    let password = try given() ?? NewPassword.ask("password of the backup")
    try NewPassword.check(password)
    return password
  }

  func known() throws -> String {
    if let password = try given() { return password }
    guard isatty(0) == 1, let password = HiddenInput.ask("password of the backup: ") else {
      throw UsageError(
        "the backup is sealed with a password: give --password-file FILE, or \(Self.variable)")
    }
    return password
  }
}

extension BackupPart {
  /// Opens a database for a look.
  /// - Throws: What is wrong with it, or that it is of a newer version.
  /// - Returns: The connection, and the version of its tables.
  func open(_ path: String) throws -> (connection: SQLiteConnection, schema: Int) {
    if self == .hub {
      let file = try StoreFile(path: path)
      return (file.connection, file.schema)
    }
    var options = SQLiteConnection.Options()
    options.isReadOnly = true
    do throws(SQLError) {
      let connection = try SQLiteConnection(path: path, options: options)
      let schema = try connection.schemaVersion()
      let known = BackendStore.newestSchema
      guard schema <= known else {
        throw SQLError(
          kind: .newerSchema(found: schema, known: known), code: 0,
          message: "it has schema version \(schema), this belfry knows up to \(known)")
      }
      return (connection, schema)
    } catch {
      throw CommandFailure("\(path) cannot be opened: \(error)")
    }
  }

  /// Proves that the key in a directory opens what a database there has sealed.
  /// - Throws: ``StoreError/sealedSecret`` when it does not.
  func checkKey(in directory: DataDirectory, of path: String, masterKey: String?) throws {
    switch self {
    case .hub: try StoreFile(path: path).check(try directory.sealing(masterKey: masterKey))
    case .backend:
      do {
        let key = try MasterKey.load(file: directory.path + "/" + Self.backendKey.rawValue)
        try BackendStore.check(key, opens: try open(path).connection)
      } catch let error as CryptographyError {
        guard error.kind == .sealBroken else { throw CommandFailure("\(error)", exitCode: .usage) }
        throw StoreError.sealedSecret
      }
    default: break
    }
  }
}

struct BackupCommand: Subcommand {
  static let about = CommandHelp(
    "backup", "copy a hub with its keys into one file, also while it serves",
    discussion: """
      The file holds the database as it is at one moment, the master key, the authority of
      tlsSelfSigned and the operators: all that a server needs besides its configuration. Of an app
      backend (its --store) it holds messages, users and key. The copy is checked before the file
      has its name.

      With its keys the file opens everything: keep it as you keep master.key, or seal it with
      --encrypt, or leave the keys out and keep them elsewhere. The password is asked for, or is the
      first line of --password-file, or stands in BELFRY_BACKUP_PASSWORD.

      A hub in PostgreSQL is backed up with PostgreSQL's own tools. docs/operate/backup.md has all of
      it.
      """,
    examples: [
      "belfry backup /backup/hub.backup --data /var/lib/belfry",
      "belfry backup hub.backup --encrypt --password-file /etc/belfry/backup-password",
      "belfry backup - --encrypt | ssh vault 'cat > hub.backup'",
      "belfry backup hub.backup --without-master-key",
    ])

  @Argument("FILE", "the file to write; - for standard output") var file: String
  @Option("--data", "DIR", "the data directory of a hub (or BELFRY_DATA), or a backend's --store")
  var data: String?
  @Option("--config", "FILE", "a configuration file, which names the data directory")
  var config: String?
  @Flag("--without-master-key", "leave the keys out: what they seal stays sealed") var withoutKeys
  @Flag("--encrypt", "seal the file with a password") var encrypts
  @Option("--password-file", "FILE", "the password is the file's first line; - for stdin")
  var passwordFile: String?
  @Option(
    "--scratch", "DIR",
    "where the database is copied to first, unsealed (default: in the data directory)")
  var scratch: String?
  @Flag("--force", "replace FILE if it is there") var force

  func run(in context: CommandContext) async throws {
    if passwordFile != nil, !encrypts { throw UsageError("--password-file goes with --encrypt") }
    if file == "-", context.isTerminal { throw UsageError("a backup is nothing for a terminal") }
    if file != "-", !force, FileManager.default.fileExists(atPath: file) {
      throw CommandFailure(
        "\(file) is there already; name another, or say --force", exitCode: .usage)
    }
    let place = HubPlace(data: data, config: config)
    let configuration = try place.configuration(context.environment)
    let directory = try place.local(in: context).directory
    if try directory.postgres(configuration.text(.database)) != nil {
      throw CommandFailure(
        "the hub is kept in PostgreSQL: back it up with pg_dump or pg_basebackup, and keep "
          + "\(directory.masterKeyFile) besides, without which its keys and credentials cannot be read; "
          + "belfry backup is for hubs in a file", exitCode: .usage)
    }
    let password = encrypts ? try BackupPassword(file: passwordFile, context: context).new() : nil
    var backup = Backup(directory: directory, context: context)
    backup.masterKey = configuration.text(.masterKey)
    backup.hasKeys = !withoutKeys
    backup.scratch = scratch
    let header = try backup.write(to: file, password: password)
    let text =
      "\(header.size.megabytes) of \(directory.path)"
      + (encrypts ? ", sealed with a password" : "")
      + (withoutKeys ? ", without keys" : "")
    if file == "-" { context.note(text) } else { context.print("backed up \(text), to \(file)") }
    if let operators = configuration.text(.operators) {
      context.note("not in it: \(operators), which the setting operators names; keep it besides")
    }
    if !withoutKeys, header.entry(.hub) != nil, header.entry(.masterKey) == nil {
      context.note("not in it: the master key, which the setting masterKey holds; keep it besides")
    }
  }
}

/// Makes a backup of a data directory.
struct Backup {
  let directory: DataDirectory
  let context: CommandContext
  /// See ``DataDirectory/openStore(masterKey:options:)``.
  var masterKey: String?
  var hasKeys = true
  var scratch: String?
  /// See ``BackupWriter``; tests take a small one.
  var cost = BackupFile.standardCost

  private func path(_ part: BackupPart) -> String { directory.path + "/" + part.rawValue }

  /// - Throws: ``CommandFailure`` or ``StoreError``; the file is as it was then.
  func write(to file: String, password: String?) throws -> BackupHeader {
    try directory.checkUser()
    let parts = BackupPart.allCases.filter {
      FileManager.default.fileExists(atPath: path($0)) && (hasKeys || !$0.isKey)
        && !($0 == .masterKey && masterKey != nil)
    }
    guard parts.contains(where: \.isDatabase) else {
      throw CommandFailure(
        "no Belfry has run in \(directory.path) yet. Name its data directory with --data DIR",
        exitCode: .usage)
    }
    let folder = (scratch ?? directory.path) + "/.belfry-backup"
    let claim = try makeFolder(folder)
    defer {
      clear(folder)
      _ = unlink(folder + "/lock")
      _ = rmdir(folder)
      withExtendedLifetime(claim) {}
    }
    let key = try? read(.masterKey)
    var entries: [BackupHeader.Entry] = []
    var contents: [BackupPart: [UInt8]] = [:]
    for part in parts {
      if part.isDatabase {
        entries.append(try copy(part, into: folder))
      } else {
        let bytes = Array(try read(part))
        contents[part] = bytes
        entries.append(
          .init(
            part: part, size: Int64(bytes.count), sha256: Hex.encode(Digest.sha256(bytes))))
      }
    }
    let header = BackupHeader(
      made: Date().formatted(.iso8601), belfry: BelfryVersion.current, entries: entries)
    try checkRoom(header.size, at: file)
    let output = try OutputFile(file)
    var bar = ProgressBar()
    do {
      let writer = try BackupWriter(header, to: output, password: password, cost: cost)
      var done: Int64 = 0
      for entry in header.entries {
        try pieces(of: entry.part, contents[entry.part], in: folder) { bytes in
          try writer.write(bytes)
          done += Int64(bytes.count)
          bar.show(Double(done) / Double(header.size), done.megabytes)
        }
      }
      // Rows under the old key, and a file that has only the new one, would be a backup of nothing.
      guard (try? read(.masterKey)) == key else {
        throw CommandFailure("the master key was replaced meanwhile: make the backup again")
      }
      try writer.finish()
    } catch {
      bar.clear()
      output.discard()
      throw error
    }
    bar.clear()
    return header
  }

  /// Where the copies stand until they are in the file; nobody else uses it meanwhile.
  private func makeFolder(_ folder: String) throws -> DirectoryClaim {
    guard mkdir(folder, 0o700) == 0 || errno == EEXIST else {
      throw CommandFailure(
        "\(folder) cannot be made: \(String(cString: strerror(errno))). Name another directory with "
          + "--scratch DIR", exitCode: .usage)
    }
    // In a directory that others write to, somebody could have made it, or a link, first.
    var own = stat()
    guard lstat(folder, &own) == 0, own.st_mode & S_IFMT == S_IFDIR, own.st_mode & 0o077 == 0,
      own.st_uid == geteuid()
    else {
      throw CommandFailure(
        "\(folder) belongs to somebody else, or others may read it: name another directory with "
          + "--scratch DIR", exitCode: .usage)
    }
    guard let claim = try? DirectoryClaim(file: folder + "/lock") else {
      throw CommandFailure(
        "another backup is under way in \(folder); wait for its end", exitCode: .unreachable)
    }
    // What a backup has left that was killed.
    clear(folder)
    return claim
  }

  /// Removes what a backup makes there, and nothing else.
  private func clear(_ folder: String) {
    for part in BackupPart.allCases {
      for end in ["", "-journal", "-wal", "-shm"] { _ = unlink(folder + "/" + part.rawValue + end) }
    }
  }

  private func copy(_ part: BackupPart, into folder: String) throws -> BackupHeader.Entry {
    let (connection, schema) = try part.open(path(part))
    defer { connection.close() }
    try checkRoom(try connection.size(), at: folder + "/" + part.rawValue)
    let copy = folder + "/" + part.rawValue
    var bar = ProgressBar()
    bar.show(nil, "copying \(part.rawValue)")
    defer { bar.clear() }
    do throws(SQLError) {
      try connection.writeCopy(to: copy)
    } catch {
      throw CommandFailure("\(path(part)) cannot be copied: \(StoreError.orRefusal(error))")
    }
    // A backup that turns out to be damaged when it is needed is worse than none.
    let faults = try part.open(copy).connection.faults(comparesIndexes: true)
    guard faults.isEmpty else {
      throw CommandFailure(
        "\(path(part)) is damaged (\(faults[0])): no backup was made. Restore an earlier one, or save with "
          + "`belfry export` what can be read")
    }
    if hasKeys {
      try part.checkKey(in: directory, of: copy, masterKey: masterKey)
    }
    let digest = try SHA256Stream()
    var size: Int64 = 0
    try pieces(of: part, nil, in: folder) { bytes in
      digest.update(bytes)
      size += Int64(bytes.count)
    }
    return .init(
      part: part, size: size, sha256: Hex.encode(digest.finish()), schema: schema)
  }

  private func read(_ part: BackupPart) throws -> Data {
    do {
      return try Data(contentsOf: URL(fileURLWithPath: path(part)))
    } catch {
      throw CommandFailure(
        "\(path(part)) cannot be read: \(Configuration.reason(error)). Run it as the user of the server",
        exitCode: .usage)
    }
  }

  private func pieces(
    of part: BackupPart, _ bytes: [UInt8]?, in folder: String, _ take: ([UInt8]) throws -> Void
  ) throws {
    if let bytes { return try take(bytes) }
    let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: folder + "/" + part.rawValue))
    defer { try? file.close() }
    while let piece = try file.read(upToCount: BackupFile.piece), !piece.isEmpty {
      try take(Array(piece))
    }
  }

  private func checkRoom(_ size: Int64, at path: String) throws {
    if path == "-" { return }
    let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
    try context.checkRoom(size, in: folder, advice: "make room, or name another disk")
  }
}

extension CommandContext {
  /// - Throws: ``CommandFailure`` when there is too little room for so many bytes.
  func checkRoom(_ size: Int64, in folder: String, advice: String) throws {
    // Something for directories, and for others who write meanwhile.
    let needed = size + 4_000_000
    guard let room = room(folder), room < needed else { return }
    throw CommandFailure(
      "\(needed.megabytes) are needed in \(folder), where \(room.megabytes) are free: \(advice); nothing "
        + "was changed")
  }
}
