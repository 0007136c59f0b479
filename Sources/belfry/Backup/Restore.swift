import Cryptography
import Foundation
import HubCore
import HubStorage

/// Creates a data directory from a backup.
struct Restore {
  let file: String
  let context: CommandContext
  var password: () throws -> String
  /// Whether the backup must be sealed, as a password implies.
  var expectsSeal = false
  var masterKeyFile: String?
  /// The text of the key, if it comes from outside.
  var masterKey: String?

  /// The permitted contents of an otherwise empty directory: a lock without holder, a volume's own
  /// folder, and leftovers of a restore that was killed.
  private static let draft = "restore.part"
  private static let nothing: Set = ["lock", "lost+found", draft]

  /// Reads the whole backup.
  func verify() throws -> BackupHeader {
    let reader = try BackupReader(file, password: password, expectsSeal: expectsSeal)
    try read(reader, "checked") { _, _ in }
    return reader.header
  }

  /// Restores the backup into a directory. Root continues as the directory's owner: see
  /// ``DataDirectory/becomeOwner()``.
  /// - Throws: ``CommandFailure``; the directory is then unchanged.
  /// - Returns: The backup's header and the full path of the directory.
  func restore(to path: String) throws -> (header: BackupHeader, directory: String) {
    let target = DataDirectory(path: URL(fileURLWithPath: path).standardizedFileURL.path)
    try target.checkUser(onlyReads: true)
    let reader = try BackupReader(file, password: password, expectsSeal: expectsSeal)
    let key = try outsideKey(for: reader.header)
    try target.becomeOwner()
    let wasThere = FileManager.default.fileExists(atPath: target.path)
    if wasThere {
      guard !target.isServed else { throw Self.served(target) }
      try checkIsEmpty(target)
    }
    try read(reader, "checked") { _, _ in }
    let directory = try DataDirectory.make(at: target.path)
    guard let claim = try? directory.claim(for: .restoring) else { throw Self.served(directory) }
    // The lock file is ours: the directory is otherwise empty, or the restore ends here.
    defer { withExtendedLifetime(claim) { _ = unlink(directory.path + "/lock") } }
    // Reading took time, in which another process may have used the directory.
    try checkIsEmpty(directory)
    do {
      try context.checkRoom(
        reader.header.size, in: directory.path, advice: "make room, or name another directory")
      let draft = directory.path + "/" + Self.draft
      try? FileManager.default.removeItem(atPath: draft)
      defer { try? FileManager.default.removeItem(atPath: draft) }
      try write(reader, key, to: try DataDirectory.make(at: draft))
      try moveIntoPlace(from: draft, to: directory.path)
    } catch {
      if !wasThere {
        _ = unlink(directory.path + "/lock")
        _ = rmdir(directory.path)
      }
      throw error
    }
    return (reader.header, directory.path)
  }

  private static func served(_ target: DataDirectory) -> CommandFailure {
    CommandFailure(
      "a server works in \(target.path): restore into another directory, then stop the server and "
        + "start it there; nothing was changed", exitCode: .usage)
  }

  private func checkIsEmpty(_ target: DataDirectory) throws {
    guard let names = try? FileManager.default.contentsOfDirectory(atPath: target.path) else {
      throw CommandFailure("\(target.path) is no directory that can be read", exitCode: .usage)
    }
    if let name = names.sorted().first(where: { !Self.nothing.contains($0) }) {
      throw CommandFailure(
        "\(target.path) is not empty, it has \(name): restore into another directory, or move away "
          + "what is there; nothing was changed", exitCode: .usage)
    }
  }

  /// Reads the key from outside, so that an unusable backup is detected before anything is written.
  /// - Returns: The keys in the file that `--master-key` names, which may be a pipe and is read
  ///   once.
  private func outsideKey(for header: BackupHeader) throws -> MasterKeyRing? {
    let key = header.key
    let isOutside = key == .masterKey && masterKey != nil
    if header.entry(key) != nil {
      guard masterKeyFile == nil else {
        throw UsageError("the backup has its own \(key.rawValue): leave --master-key out")
      }
    } else if masterKeyFile == nil, !isOutside {
      throw CommandFailure(
        "the backup was made without its keys: name the \(key.rawValue) that was kept with --master-key "
          + "FILE" + (key == .masterKey ? ", or set \(Setting.masterKey.variable)" : ""),
        exitCode: .usage)
    }
    guard let masterKeyFile else { return nil }
    do { return try MasterKeyRing(file: masterKeyFile) } catch {
      throw CommandFailure("\(error); nothing was changed", exitCode: .usage)
    }
  }

  private func read(
    _ reader: BackupReader, _ word: String, _ take: (BackupPart, [UInt8]) throws -> Void
  ) throws {
    var bar = ProgressBar()
    var done: Int64 = 0
    defer { bar.clear() }
    try reader.readParts { part, bytes in
      try take(part, bytes)
      done += Int64(bytes.count)
      bar.show(Double(done) / Double(max(reader.header.size, 1)), "\(done.megabytes) \(word)")
    }
  }

  /// Writes all parts, and verifies the keys.
  private func write(
    _ reader: BackupReader, _ key: MasterKeyRing?, to draft: DataDirectory
  ) throws {
    var open: (part: BackupPart, file: FileHandle)?
    func file(_ part: BackupPart) throws -> FileHandle {
      if let open, open.part == part { return open.file }
      let new = try FileHandle.privateFile(draft.path + "/" + part.rawValue)
      open = (part, new)
      return new
    }
    do {
      try read(reader, "written") { part, bytes in
        let file = try file(part)
        if bytes.isEmpty { try file.synchronize() } else { try file.write(contentsOf: bytes) }
      }
      if let key {
        let file = try file(reader.header.key)
        try file.write(contentsOf: Data(key.text.utf8))
        try file.synchronize()
      }
    } catch let error where !(error is CommandFailure) {
      throw CommandFailure(
        "\(draft.path) cannot be written: \(Configuration.reason(error)); nothing was changed")
    }
    do {
      for part in reader.header.entries.map(\.part) where part.isDatabase {
        // If two databases were backed up without keys, only one key is given.
        if part == .backend, reader.header.entry(.hub) != nil,
          reader.header.entry(.backendKey) == nil
        {
          continue
        }
        try part.checkKey(
          in: draft, of: draft.path + "/" + part.rawValue, masterKey: masterKey)
      }
    } catch StoreError.sealedSecret {
      throw CommandFailure(
        "this master key does not open what the backup has sealed: give the one that was in use when it was "
          + "made; nothing was changed")
    }
  }

  /// Files with the database's name mark a directory as usable, so that file is moved last.
  private func moveIntoPlace(from draft: String, to directory: String) throws {
    for part in BackupPart.allCases.filter({ !$0.isDatabase }) + [.backend, .hub] {
      let source = draft + "/" + part.rawValue
      guard FileManager.default.fileExists(atPath: source) else { continue }
      guard rename(source, directory + "/" + part.rawValue) == 0 else {
        throw CommandFailure(
          "\(directory)/\(part.rawValue) cannot be made: \(String(cString: strerror(errno)))")
      }
    }
    try OutputFile.syncNames(in: directory)
  }
}
