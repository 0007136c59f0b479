import Cryptography
import Foundation
import HubCore
import HubStorage
import NotificationHubs

/// Where one Belfry keeps what it knows: the database, the master key, and the address at which it
/// serves at the moment.
struct DataDirectory: Sendable {
  let path: String

  var database: String { path + "/belfry.sqlite" }
  var masterKeyFile: String { path + "/master.key" }
  private var addressFile: String { path + "/address" }

  /// Takes the directory, making it (mode 0700) when it is missing.
  /// - Throws: ``CommandFailure`` when that cannot be done; see ``checkUser(onlyReads:)``.
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

  /// Who may sign in at the portal, unless a setting names another file.
  var operators: String { path + "/operators" }

  /// Whether a Belfry has run here before, as far as this user may know.
  var isUsed: Bool { FileManager.default.fileExists(atPath: database) || isNode || isClosed }

  /// Whether a Belfry has run here that keeps its hubs in PostgreSQL.
  private var isNode: Bool { FileManager.default.fileExists(atPath: databaseFile) }
  /// The address of the PostgreSQL database that the server here uses. It may hold a password, and
  /// is as secret as the master key beside it.
  private var databaseFile: String { path + "/database" }

  /// Takes the directory of a Belfry that has run before.
  /// - Parameter option: What names another.
  /// - Throws: ``CommandFailure`` when there is none; see ``checkUser(onlyReads:)``.
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
  /// twice. The claim ends with the returned value, or with the process, however that ends.
  /// - Parameter purpose: `nil` for a look.
  func claim(for purpose: DirectoryClaim.Purpose? = nil) throws -> DirectoryClaim {
    try DirectoryClaim(file: path + "/lock", for: purpose)
  }

  /// Whether a server works in the directory at the moment.
  var isServed: Bool {
    guard FileManager.default.fileExists(atPath: path + "/lock") else { return false }
    return (try? claim()) == nil
  }

  /// The PostgreSQL database that a server here works on; `nil` for the file in the directory.
  /// - Parameters:
  ///   - address: What the configuration says. Without, it is what the last server was given.
  ///   - part: The file that there would be in its place.
  ///   - option: What names another directory.
  func postgres(
    _ address: String?, part: BackupPart = .hub, option: String = "--data"
  ) throws -> String? {
    let hasFile = FileManager.default.fileExists(atPath: "\(path)/\(part.rawValue)")
    guard let address else {
      // `belfry up` keeps a hub in PostgreSQL and its app backend in a file in one directory.
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

  /// Where the hub in the file here was moved by `belfry move`, and when; `nil` as a rule.
  var moved: String? {
    guard FileManager.default.fileExists(atPath: movedFile) else { return nil }
    return (try? String(contentsOfFile: movedFile, encoding: .utf8))?
      .trimmingCharacters(in: .whitespacesAndNewlines) ?? "away"
  }

  /// Closes the directory to servers: its hub was moved away.
  /// - Parameter note: Where to, and when; `nil` opens it again, for another hub.
  func setMoved(_ note: String?) throws {
    guard let note else {
      _ = unlink(movedFile)
      return
    }
    try OutputFile.write(note + "\n", to: movedFile)
  }

  /// - Parameter shared: The PostgreSQL database that is to be used; `nil` for the file here.
  /// - Throws: ``CommandFailure`` where the hub was moved away.
  func refuseMoved(_ shared: PostgresHubStore?) async throws {
    let note = if let shared { try await shared.moved() } else { moved }
    guard let note else { return }
    throw CommandFailure(
      "the hub in \(shared == nil ? path : "this database") was moved \(note): use it there. To use "
        + "this copy again, "
        + (shared == nil ? "remove \(movedFile)" : "`DROP TABLE moved` in the database")
        + "; where both are served, everything is sent twice", exitCode: .usage)
  }

  /// Notes the address of the database, so that commands given the directory find it.
  func note(database address: String) throws {
    try OutputFile.write(address + "\n", to: databaseFile)
  }

  /// Opens the PostgreSQL database. The key is made when it is missing and the database is new; all
  /// nodes of one have the same.
  /// - Parameter mayMake: An empty database is made one of a hub; otherwise it is refused.
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
            + "another with --database URL", exitCode: .usage)
      }
      guard mayMake || !lacksKey else { throw noKey }
      // Only a database that nobody has used takes a new key; any other refuses it.
      let keys = try keyRing(masterKey, mayMake: mayMake)
      let own = MasterKeySealing(keys)
      sealing = own
      let store = try await PostgresHubStore.open(
        address: address, sealing: own, options: options)
      return (store, keys)
    } catch {
      let isSealed = (error as? StoreError) == .sealedSecret
      // A key that has sealed something may be that of the new database, whatever went wrong then.
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

  /// What is said of a target before the move into it is done.
  private func unfinishedMove(in place: String) -> CommandFailure {
    CommandFailure("\(place): \(StoreError.unfinishedMove)", exitCode: .usage)
  }

  /// Opens the database; it and the key are made when both are missing.
  ///
  /// - Parameter masterKey: See ``keyRing(_:mayMake:)``.
  func openStore(
    masterKey: String?, options: SQLiteHubStore.Options = .init()
  ) async throws -> (store: SQLiteHubStore, keys: MasterKeyRing) {
    let keys: MasterKeyRing
    do {
      // A new key beside an old database would only hide that the right one is missing.
      keys = try keyRing(masterKey, mayMake: !FileManager.default.fileExists(atPath: database))
    } catch {
      throw CommandFailure("\(error)", exitCode: .usage)
    }
    do {
      let store = try await SQLiteHubStore.open(
        at: database, sealing: MasterKeySealing(keys), options: options)
      return (store, keys)
    } catch StoreError.unfinishedMove {
      throw unfinishedMove(in: path)
    }
  }

  /// What seals secrets under the master key, which has to be there.
  /// - Parameter masterKey: See ``keyRing(_:mayMake:)``.
  func sealing(masterKey: String?) throws -> any SecretSealing {
    do { return MasterKeySealing(try keyRing(masterKey, mayMake: false)) } catch {
      throw CommandFailure("\(error)", exitCode: .usage)
    }
  }

  /// The keys that open what the store here has sealed.
  /// - Parameters:
  ///   - masterKey: Their text, when they come from outside; otherwise the file `master.key` here.
  ///   - mayMake: A key is made where there is none.
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

  /// The ids of the master keys that the server here has, as it notes them for `belfry key rotate`.
  /// Empty while it starts.
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
    servedKeys = []
    try? FileManager.default.removeItem(atPath: addressFile)
  }

  /// The base URL of the server that works in this directory; `nil` when none has said so. After
  /// a crash it is that of the last one, whose port somebody else may have by now.
  var address: String? {
    (try? String(contentsOfFile: addressFile, encoding: .utf8))?
      .trimmingCharacters(in: .whitespacesAndNewlines).harmless
  }

  /// Where the server is reached that works here at this moment, for what carries a key.
  var servedEndpoint: ServiceEndpoint? {
    isServed ? address.flatMap { ServiceEndpoint(parsing: $0) } : nil
  }
}
