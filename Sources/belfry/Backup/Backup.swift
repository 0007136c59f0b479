import Cryptography
import Foundation
import HubCore
import HubStorage
import SQLDatabase
import Wire

/// Creates a backup of a data directory.
struct Backup {
  let directory: DataDirectory
  let context: CommandContext
  /// The address of the PostgreSQL database with the hub; `nil` for the file in the directory.
  var database: String?
  /// See ``DataDirectory/openStore(masterKey:options:)``.
  var masterKey: String?
  var hasKeys = true
  var scratch: String?
  /// Options of the file that a database is copied into; tests name a faulty disk.
  var storage = SQLiteHubStore.Options()
  /// See ``BackupWriter``; tests use a low one.
  var cost = BackupFile.standardCost

  private func path(_ part: BackupPart) -> String { directory.path + "/" + part.rawValue }

  /// - Throws: ``CommandFailure`` or ``StoreError``; the file is then unchanged.
  func write(to file: String, password: String?) async throws -> BackupHeader {
    try directory.checkUser()
    let parts = BackupPart.allCases.filter {
      FileManager.default.fileExists(atPath: path($0)) && (hasKeys || !$0.isKey)
        && !($0 == .masterKey && masterKey != nil) || $0 == .hub && database != nil
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
    // Copying may take hours: a name that cannot be written is found before.
    let output = try OutputFile(file)
    var isWritten = false
    defer { if !isWritten { output.discard() } }
    let key = try? read(.masterKey)
    var entries: [BackupHeader.Entry] = []
    var contents: [BackupPart: [UInt8]] = [:]
    for part in parts {
      if part.isDatabase {
        entries.append(try await copy(part, into: folder))
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
    try checkRoom(header.size, at: file, "or name another disk")
    var bar = ProgressBar()
    defer { bar.clear() }
    let writer = try BackupWriter(header, to: output, password: password, cost: cost)
    var done: Int64 = 0
    for entry in header.entries {
      try pieces(of: entry.part, contents[entry.part], in: folder) { bytes in
        try writer.write(bytes)
        done += Int64(bytes.count)
        bar.show(Double(done) / Double(header.size), done.megabytes)
      }
    }
    // Rows under the old key with a file that has only the new one would be a useless backup.
    guard (try? read(.masterKey)) == key else {
      throw CommandFailure("the master key was replaced meanwhile: make the backup again")
    }
    try writer.finish()
    isWritten = true
    return header
  }

  /// Creates the folder for the copies until they are in the file, and claims it.
  private func makeFolder(_ folder: String) throws -> DirectoryClaim {
    // A user who can rename entries there could replace the folder with a link, and have other
    // files removed.
    if let scratch, let fault = FileOwner.distrust(scratch) {
      throw CommandFailure(
        "\(fault): name a directory of your own with --scratch DIR", exitCode: .usage)
    }
    guard mkdir(folder, 0o700) == 0 || errno == EEXIST else {
      throw CommandFailure(
        "\(folder) cannot be made: \(String(cString: strerror(errno))). Name another directory with "
          + "--scratch DIR", exitCode: .usage)
    }
    // In a directory that others can write to, another user may have created it, or a link, first.
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
    // Leftovers of a backup that was killed.
    clear(folder)
    return claim
  }

  /// Removes only the files that a backup creates.
  private func clear(_ folder: String) {
    for part in BackupPart.allCases {
      for end in ["", "-journal", "-wal", "-shm", "-mark"] {
        _ = unlink(folder + "/" + part.rawValue + end)
      }
    }
  }

  private func copy(_ part: BackupPart, into folder: String) async throws -> BackupHeader.Entry {
    let copy = folder + "/" + part.rawValue
    if part == .hub, let database {
      try await copyDatabase(database, to: copy)
    } else {
      try copyFile(part, to: copy)
    }
    // A backup found to be damaged only when it is needed is worse than none.
    let (connection, schema) = try part.open(copy)
    defer { connection.close() }
    let faults = connection.faults(comparesIndexes: true)
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

  private func copyFile(_ part: BackupPart, to copy: String) throws {
    let connection = try part.open(path(part)).connection
    defer { connection.close() }
    try checkRoom(try connection.size(), at: copy, Self.otherFolder)
    var bar = ProgressBar()
    bar.show(nil, "copying \(part.rawValue)")
    defer { bar.clear() }
    do throws(SQLError) {
      try connection.writeCopy(to: copy)
    } catch {
      guard error.kind != .full else { throw Self.fullDisk(of: copy) }
      throw CommandFailure("\(path(part)) cannot be copied: \(StoreError.orRefusal(error))")
    }
  }

  /// Writes what the database has at one moment into a new file, as ``HubMove`` does, while nodes
  /// serve.
  private func copyDatabase(_ address: String, to copy: String) async throws {
    func failure(_ error: any Error) -> CommandFailure {
      CommandFailure(
        "the database \(DatabaseAddress.shown(address)): \(error)", exitCode: .unreachable)
    }
    let snapshot: PostgresSnapshot
    do { snapshot = try PostgresSnapshot(of: address) } catch { throw failure(error) }
    defer { withExtendedLifetime(snapshot) {} }
    var options = PostgresHubStore.Options()
    options.snapshot = snapshot.name
    options.mayMigrate = false
    options.answerTime = nil
    (options.batchWriters, options.writers) = (1, 1)
    let (source, keys) = try await directory.openPostgres(
      address, masterKey: masterKey, options: options, mayMake: false)
    try await source.closing {
      do {
        try await directory.refuseMoved(source)
        let target = try await SQLiteHubStore.open(
          at: copy, sealing: MasterKeySealing(keys), options: storage)
        try await target.closing {
          let lines = MoveProgressLines(context)
          defer { lines.clear() }
          _ = try await HubMove(from: source, to: target).run { lines.show($0) }
        }
      } catch let refusal as MoveRefusal where refusal == .numbersUsed {
        throw CommandFailure("\(refusal), and `pg_dump` backs up all")
      } catch let refusal as MoveRefusal {
        throw CommandFailure(
          "the copy is not what the database has: make the backup again (\(refusal))")
      } catch let error as PostgresSnapshot.Lost {
        throw failure(error)
      } catch let error as StoreError {
        // Of both stores: the condition of the database shows whether it is at fault. Nobody else
        // has the copy open.
        guard error != .locked, await source.condition() == .healthy else { throw failure(error) }
        throw error == .diskFull ? Self.fullDisk(of: copy) : error
      }
    }
  }

  /// The error for a copy that finds no room where it is written.
  private static func fullDisk(of copy: String) -> CommandFailure {
    let folder = URL(fileURLWithPath: copy).deletingLastPathComponent().path
    return CommandFailure(
      "the disk of \(folder) is full: make room, \(otherFolder)")
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

  private static let otherFolder = "or name another directory with --scratch DIR"

  private func checkRoom(_ size: Int64, at path: String, _ otherwise: String) throws {
    if path == "-" { return }
    let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
    try context.checkRoom(size, in: folder, advice: "make room, \(otherwise)")
  }
}

extension CommandContext {
  /// - Throws: ``CommandFailure`` if there is too little space for that many bytes.
  func checkRoom(_ size: Int64, in folder: String, advice: String) throws {
    // A reserve for directories, and for other programs that write in the meantime.
    let needed = size + 4_000_000
    guard let room = room(folder), room < needed else { return }
    throw CommandFailure(
      "\(needed.megabytes) are needed in \(folder), where \(room.megabytes) are free: \(advice); nothing "
        + "was changed")
  }
}
