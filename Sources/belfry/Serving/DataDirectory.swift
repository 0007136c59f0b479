import Cryptography
import Foundation
import HubCore
import HubStorage
import NotificationHubs

/// The data directory of a Belfry server: the database, the master key, and the address at which it
/// currently serves.
struct DataDirectory: Sendable {
  let path: String

  var database: String { path + "/belfry.sqlite" }
  var masterKeyFile: String { path + "/master.key" }
  private var addressFile: String { path + "/address" }

  /// Opens the directory, creating it (mode 0700) if it is missing.
  /// - Throws: ``CommandFailure`` if that fails; see ``checkUser(onlyReads:)``.
  static func make(at path: String) throws -> DataDirectory {
    let full = URL(fileURLWithPath: path).standardizedFileURL.path
    try DataDirectory(path: full).checkUser()
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

  /// The operator file, unless a setting names another.
  var operators: String { path + "/operators" }

  /// Whether the directory has been used by a server, as far as this user can see.
  var isUsed: Bool { FileManager.default.fileExists(atPath: database) || isNode || isClosed }

  /// Whether the directory has been used by a server with its hubs in PostgreSQL.
  private var isNode: Bool { FileManager.default.fileExists(atPath: databaseFile) }
  /// The file with the address of the PostgreSQL database that the server here uses. It may contain
  /// a password, and is as secret as the master key beside it.
  private var databaseFile: String { path + "/database" }

  /// Opens the directory of an existing server.
  /// - Parameter option: The option that selects another directory.
  /// - Throws: ``CommandFailure`` if there is none; see ``checkUser(onlyReads:)``.
  static func existing(
    at path: String, onlyReads: Bool = false, option: String = "--data"
  ) throws -> DataDirectory {
    let directory = DataDirectory(path: URL(fileURLWithPath: path).standardizedFileURL.path)
    try directory.checkUser(onlyReads: onlyReads)
    guard directory.isUsed else {
      throw CommandFailure(
        "no Belfry has run in \(directory.path) yet. Name its data directory with \(option) DIR",
        exitCode: .usage)
    }
    return directory
  }

  /// Claims the directory for one server: two that deliver from one database would send everything
  /// twice. The claim ends with the returned value, or with the process in any way.
  /// - Parameter purpose: The purpose; `nil` to inspect the directory.
  func claim(for purpose: DirectoryClaim.Purpose? = nil) throws -> DirectoryClaim {
    try DirectoryClaim(file: path + "/lock", for: purpose)
  }

  /// Whether a server is currently using the directory.
  var isServed: Bool {
    guard FileManager.default.fileExists(atPath: path + "/lock") else { return false }
    return (try? claim()) == nil
  }

  /// The PostgreSQL database of a server here; `nil` for the file in the directory.
  /// - Parameters:
  ///   - address: The address in the configuration; by default that of the last server.
  ///   - part: The file that would be used instead.
  ///   - option: The option that selects another directory.
  func postgres(
    _ address: String?, part: BackupPart = .hub, option: String = "--data"
  ) throws -> String? {
    let hasFile = FileManager.default.fileExists(atPath: "\(path)/\(part.rawValue)")
    guard let address else {
      // `belfry up` can have a hub in PostgreSQL and its app backend in a file in the same
      // directory.
      guard isNode, !hasFile else { return nil }
      do {
        return try String(contentsOfFile: databaseFile, encoding: .utf8)
          .trimmingCharacters(in: .whitespacesAndNewlines)
      } catch {
        throw CommandFailure(
          "\(databaseFile) cannot be read: \(Configuration.reason(error)). Name the database with "
            + "--database URL", exitCode: .usage)
      }
    }
    if hasFile {
      throw CommandFailure(
        "\(path) has a database of its own, \(part.rawValue), which --database would leave unused. "
          + "Name another directory with \(option) DIR", exitCode: .usage)
    }
    return address
  }

  private var movedFile: String { path + "/moved" }

  /// The destination and time if `belfry move` has moved the hub in the file; usually `nil`.
  var moved: String? {
    guard FileManager.default.fileExists(atPath: movedFile) else { return nil }
    return (try? String(contentsOfFile: movedFile, encoding: .utf8))?
      .trimmingCharacters(in: .whitespacesAndNewlines) ?? "away"
  }

  /// Marks the hub here as moved, so that servers refuse the directory.
  /// - Parameter note: The destination and time; `nil` removes the mark, for another hub.
  func setMoved(_ note: String?) throws {
    guard let note else {
      _ = unlink(movedFile)
      return
    }
    try OutputFile.write(note + "\n", to: movedFile)
  }

  /// - Parameter shared: The PostgreSQL database to be used; `nil` for the file here.
  /// - Throws: ``CommandFailure`` if the hub was moved away.
  func refuseMoved(_ shared: PostgresHubStore?) async throws {
    let note = if let shared { try await shared.moved() } else { moved }
    guard let note else { return }
    throw CommandFailure(
      "the hub in \(shared == nil ? path : "this database") was moved \(note): use it there. To use "
        + "this copy again, "
        + (shared == nil ? "remove \(movedFile)" : "`DROP TABLE moved` in the database")
        + "; where both are served, everything is sent twice", exitCode: .usage)
  }

  /// Records the address of the database, so that commands given the directory find it.
  func note(database address: String) throws {
    try OutputFile.write(address + "\n", to: databaseFile)
  }

  /// Opens the PostgreSQL database. The key is created if it is missing and the database is new;
  /// all nodes of a database have the same key.
  /// - Parameter mayMake: Whether an empty database may be set up for a hub; otherwise it is
  ///   refused.
  func openPostgres(
    _ address: String, masterKey: String?, options: PostgresHubStore.Options, mayMake: Bool = true
  ) async throws -> (store: PostgresHubStore, keys: MasterKeyRing) {
    let shown = DatabaseAddress.shown(address)
    let lacksKey = masterKey == nil && !FileManager.default.fileExists(atPath: masterKeyFile)
    let noKey = CommandFailure(
      "the database \(shown) was made with a master key that is not here: copy master.key from the data "
        + "directory of another node to \(masterKeyFile), or set \(Setting.masterKey.variable)",
      exitCode: .usage)
    var sealing: MasterKeySealing?
    do {
      let isNew = try PostgresHubStore.isNew(at: address)
      guard mayMake || !isNew else {
        throw CommandFailure(
          "no hub is in the database \(shown): start `belfry serve --database URL` with it, or name "
            + "another in \(Setting.database.variable) (or the setting database)", exitCode: .usage)
      }
      guard mayMake || !lacksKey else { throw noKey }
      // Only an unused database accepts a new key; any other refuses it.
      let keys = try keyRing(masterKey, mayMake: mayMake)
      let own = MasterKeySealing(keys)
      sealing = own
      let store = try await PostgresHubStore.open(
        address: address, sealing: own, options: options)
      return (store, keys)
    } catch {
      let isSealed = (error as? StoreError) == .sealedSecret
      // A key that has sealed something may be that of the new database, whatever failed
      // afterwards.
      if lacksKey, let sealing, isSealed || !sealing.hasSealed {
        try? FileManager.default.removeItem(atPath: masterKeyFile)
      }
      switch error {
      case StoreError.sealedSecret where lacksKey: throw noKey
      case StoreError.sealedSecret:
        throw CommandFailure(
          "this is not the key of this database: copy master.key of another node "
            + (masterKey == nil
              ? "to \(masterKeyFile)"
              : "into \(Setting.masterKey.variable) (or the setting masterKey)")
            + ". The database \(shown): \(error)", exitCode: .usage)
      case StoreError.unfinishedMove: throw unfinishedMove(in: "the database \(shown)")
      case let error as CryptographyError:
        throw CommandFailure(error.message, exitCode: .usage)
      case let error as StoreError:
        throw CommandFailure("the database \(shown): \(error)", exitCode: .unreachable)
      default: throw error
      }
    }
  }

  /// The error for the target of an unfinished move.
  private func unfinishedMove(in place: String) -> CommandFailure {
    CommandFailure("\(place): \(StoreError.unfinishedMove)", exitCode: .usage)
  }

  /// Opens the database; it and the key are created if both are missing.
  ///
  /// - Parameter masterKey: See ``keyRing(_:mayMake:)``.
  func openStore(
    masterKey: String?, options: SQLiteHubStore.Options = .init()
  ) async throws -> (store: SQLiteHubStore, keys: MasterKeyRing) {
    let keys: MasterKeyRing
    do {
      // A new key next to an old database would hide that the right one is missing.
      keys = try keyRing(masterKey, mayMake: !FileManager.default.fileExists(atPath: database))
    } catch {
      throw CommandFailure("\(error)", exitCode: .usage)
    }
    do {
      var options = options
      options.release = BelfryVersion.current
      let store = try await SQLiteHubStore.open(
        at: database, sealing: MasterKeySealing(keys), options: options)
      return (store, keys)
    } catch StoreError.unfinishedMove {
      throw unfinishedMove(in: path)
    }
  }

  /// The sealing of secrets under the master key, which must exist.
  /// - Parameter masterKey: See ``keyRing(_:mayMake:)``.
  func sealing(masterKey: String?) throws -> any SecretSealing {
    do { return MasterKeySealing(try keyRing(masterKey, mayMake: false)) } catch {
      throw CommandFailure("\(error)", exitCode: .usage)
    }
  }

  /// The keys that open the sealed values of the store here.
  /// - Parameters:
  ///   - masterKey: Their text, if they come from outside; otherwise the file `master.key` here.
  ///   - mayMake: Whether a key is created if there is none.
  private func keyRing(
    _ masterKey: String?, mayMake: Bool
  ) throws(CryptographyError) -> MasterKeyRing {
    if let masterKey { return try MasterKeyRing(text: masterKey, origin: "the setting masterKey") }
    if mayMake, !FileManager.default.fileExists(atPath: masterKeyFile) {
      _ = try MasterKey.loadOrCreate(file: masterKeyFile)
    }
    return try MasterKeyRing(file: masterKeyFile)
  }

  private var keyNoteFile: String { path + "/key-ids" }

  /// The ids of the master keys that the server here has, recorded for `belfry key rotate`. Empty
  /// while it starts.
  var servedKeys: [String] {
    get {
      let text = try? String(contentsOfFile: keyNoteFile, encoding: .utf8)
      return text?.split(whereSeparator: \.isWhitespace).map(String.init) ?? []
    }
    nonmutating set {
      if newValue.isEmpty {
        try? FileManager.default.removeItem(atPath: keyNoteFile)
      } else {
        // Without it the key is not replaced; nothing else depends on it.
        try? Data((newValue.joined(separator: "\n") + "\n").utf8)
          .write(to: URL(fileURLWithPath: keyNoteFile), options: .atomic)
      }
    }
  }

  /// Records the address of the server, so that commands given the directory find it.
  func publish(address: String) throws {
    let line = Data((address + "\n").utf8)
    do {
      try line.write(to: URL(fileURLWithPath: addressFile), options: .atomic)
    } catch {
      // A full disk has no room for another file, but after a crash the last one's still exists.
      guard let file = FileHandle(forUpdatingAtPath: addressFile) else { throw error }
      try file.write(contentsOf: line)
      try file.truncate(atOffset: UInt64(line.count))
    }
  }

  func withdrawAddress() {
    servedKeys = []
    try? FileManager.default.removeItem(atPath: addressFile)
  }

  /// The base URL of the server in this directory; `nil` if none has recorded one. After a crash it
  /// is that of the last server, whose port may belong to another program by now.
  var address: String? {
    (try? String(contentsOfFile: addressFile, encoding: .utf8))?
      .trimmingCharacters(in: .whitespacesAndNewlines).harmless
  }

  /// The endpoint of the server that is currently running here, for requests that carry a key.
  var servedEndpoint: ServiceEndpoint? {
    isServed ? address.flatMap { ServiceEndpoint(parsing: $0) } : nil
  }

  /// ``servedEndpoint``, for what does nothing without it.
  /// - Parameter hint: More to say if no server runs.
  func requiredEndpoint(_ hint: @autoclosure () -> String = "") throws -> ServiceEndpoint {
    if let servedEndpoint { return servedEndpoint }
    throw CommandFailure(
      "no server runs on \(path) at the moment; start `belfry serve --data \(path)` or "
        + "`belfry up --data \(path)`" + hint(), exitCode: .unreachable)
  }
}
