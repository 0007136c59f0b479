import Cryptography
import Foundation
import HubCore
import HubStorage
import SQLDatabase
import SecurePushBackend

/// The possible parts of a backup: files of a data directory, under their own names.
enum BackupPart: String, CaseIterable, Codable {
  case hub = "belfry.sqlite"
  case backend = "backend.sqlite"
  case masterKey = "master.key"
  case backendKey = "backend.key"
  case authority = "tls-ca.pem"
  case authorityKey = "tls-ca-key.pem"
  case operators = "operators"
  case users = "users"

  var isDatabase: Bool { self == .hub || self == .backend }
  /// Whether the file gives access by itself. The authority's certificate belongs to its key: a
  /// server refuses to start with one but not the other.
  var isKey: Bool {
    switch self {
    case .masterKey, .backendKey, .authority, .authorityKey: true
    case .hub, .backend, .operators, .users: false
    }
  }
}

extension BackupPart {
  /// Opens a database to inspect it.
  /// - Throws: An error that describes the damage, or says that the database is of a newer version.
  /// - Returns: The connection, and the schema version.
  func open(_ path: String) throws -> (connection: SQLiteConnection, schema: Int) {
    if self == .hub {
      let file = try StoreFile(path: path)
      if try file.hasUnfinishedMove() {
        file.connection.close()
        throw CommandFailure("\(path): \(StoreError.unfinishedMove)", exitCode: .usage)
      }
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

  /// Verifies that the key in a directory opens the sealed values of its database.
  /// - Throws: ``StoreError/sealedSecret`` if it does not.
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
