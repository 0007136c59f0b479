import Cryptography
import Foundation
import HubCore
import HubStorage

/// Where one Belfry keeps what it knows: the database, the master key, and the address at which it
/// serves at the moment.
struct DataDirectory: Sendable {
  let path: String

  var database: String { path + "/belfry.sqlite" }
  var masterKeyFile: String { path + "/master.key" }
  private var addressFile: String { path + "/address" }

  /// Takes the directory, making it (mode 0700) when it is missing.
  /// - Throws: ``CommandFailure`` when that cannot be done.
  static func make(at path: String) throws -> DataDirectory {
    let full = URL(fileURLWithPath: path).standardizedFileURL.path
    do {
      try FileManager.default.createDirectory(
        atPath: full, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw CommandFailure(
        "the data directory \(full) cannot be made: \(Configuration.reason(error)). "
          + "Name another with --data DIR", exitCode: .usage)
    }
    guard FileManager.default.isWritableFile(atPath: full) else {
      throw CommandFailure(
        "the data directory \(full) is not writable. Name another with --data DIR",
        exitCode: .usage)
    }
    return DataDirectory(path: full)
  }

  /// Who may sign in at the portal, unless a setting names another file.
  var operators: String { path + "/operators" }

  /// Whether a Belfry has run here before.
  var isUsed: Bool { FileManager.default.fileExists(atPath: database) }

  /// Takes the directory of a Belfry that has run before.
  /// - Throws: ``CommandFailure`` when there is none.
  static func existing(at path: String) throws -> DataDirectory {
    let directory = DataDirectory(path: URL(fileURLWithPath: path).standardizedFileURL.path)
    guard directory.isUsed else {
      throw CommandFailure(
        "no Belfry has run in \(directory.path) yet. Name its data directory with --data DIR",
        exitCode: .usage)
    }
    return directory
  }

  /// Claims the directory for one server: two that deliver from one database would send everything
  /// twice. The claim ends with the returned value, or with the process, however that ends.
  func claim() throws -> DirectoryClaim { try DirectoryClaim(file: path + "/lock") }

  /// Whether a server works in the directory at the moment.
  var isServed: Bool {
    guard FileManager.default.fileExists(atPath: path + "/lock") else { return false }
    return (try? claim()) == nil
  }

  /// Opens the database; it and the key are made when both are missing.
  ///
  /// - Parameter masterKey: The text of the key, when it comes from outside; otherwise the file
  ///   `master.key` here.
  func openStore(
    masterKey: String?, options: SQLiteHubStore.Options = .init()
  ) async throws -> SQLiteHubStore {
    let key: MasterKey
    do {
      if let masterKey {
        key = try MasterKey(text: masterKey, origin: "the setting masterKey")
      } else if FileManager.default.fileExists(atPath: database) {
        // A new key beside an old database would only hide that the right one is missing.
        key = try MasterKey.load(file: masterKeyFile)
      } else {
        key = try MasterKey.loadOrCreate(file: masterKeyFile).key
      }
    } catch {
      throw CommandFailure("\(error)", exitCode: .usage)
    }
    return try await SQLiteHubStore.open(
      at: database, sealing: MasterKeySealing(sealer: SecretSealer(key: key)), options: options)
  }

  /// Notes where the server listens, so that commands given the directory find it.
  func publish(address: String) throws {
    let line = Data((address + "\n").utf8)
    do {
      try line.write(to: URL(fileURLWithPath: addressFile), options: .atomic)
    } catch {
      // A full disk has no room for another file, but the last one's is there after a crash.
      guard let file = FileHandle(forUpdatingAtPath: addressFile) else { throw error }
      try file.write(contentsOf: line)
      try file.truncate(atOffset: UInt64(line.count))
    }
  }

  func withdrawAddress() {
    try? FileManager.default.removeItem(atPath: addressFile)
  }

  /// The base URL of the server that works in this directory; `nil` when none has said so.
  var address: String? {
    (try? String(contentsOfFile: addressFile, encoding: .utf8))?
      .trimmingCharacters(in: .whitespacesAndNewlines)
  }
}

/// Seals the store's secrets under the master key.
private struct MasterKeySealing: SecretSealing {
  let sealer: SecretSealer

  func seal(_ plaintext: [UInt8], context: String) throws -> [UInt8] {
    try sealer.seal(plaintext, context: context)
  }

  func open(_ sealed: [UInt8], context: String) throws -> [UInt8] {
    try sealer.open(sealed, context: context)
  }
}

/// A lock on a directory and a file in it that the system lifts when the process ends, `kill -9`
/// included. The directory's own counts where the file has been deleted under a running server; the
/// file's where a file system does not lock directories, and for earlier versions.
final class DirectoryClaim: Sendable {
  private let descriptors: [Int32]

  /// - Throws: ``CommandFailure`` when another process holds it.
  init(file: String) throws {
    let folder = URL(fileURLWithPath: file).deletingLastPathComponent().path
    let directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    let descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    let descriptors = [directory, descriptor].filter { $0 >= 0 }
    func end(_ failure: CommandFailure) -> CommandFailure {
      for descriptor in descriptors { close(descriptor) }
      return failure
    }
    guard descriptor >= 0 else {
      throw end(
        CommandFailure(
          "\(file) cannot be made: \(String(cString: strerror(errno)))", exitCode: .usage))
    }
    for descriptor in descriptors where flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      if descriptor == directory, errno != EWOULDBLOCK { continue }
      throw end(
        CommandFailure(
          "another Belfry serves from \(folder); stop it, or name another directory with "
            + "--data DIR", exitCode: .unreachable))
    }
    self.descriptors = descriptors
  }

  deinit { for descriptor in descriptors { close(descriptor) } }
}
