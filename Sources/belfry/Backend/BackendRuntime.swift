import Cryptography
import Foundation
import HTTPServer
import HubStorage
import NotificationHubs
import SQLDatabase
import SecurePushBackend

/// The app backend with its store and listener, as served by `belfry backend`, and by `belfry up`
/// next to the hub. It only has a connection string of its hub.
final class BackendRuntime: Sendable {
  struct Options: Sendable {
    /// The directory of the database and of the key that seals payloads.
    var directory: DataDirectory
    /// The address of a PostgreSQL database; `nil` for an SQLite file in the directory.
    var database: String?
    var address = "127.0.0.1"
    /// The port; 0 picks a free one.
    var port: UInt16 = 8090
    /// The certificate for HTTPS; `nil` serves plain HTTP.
    var certificate: CertificateSource?
    var signIn: SignIn
    var configuration = BackendConfiguration()
    /// The proxies whose statements about the client are trusted.
    var trustedProxies = TrustedProxies()
    /// The maximum number of concurrent connections per client address.
    var connectionsPerAddress = 256
    var log: @Sendable (String) -> Void = { _ in }
  }

  /// The base URL; paths begin with `/api`.
  let url: String
  private let store: BackendStore
  private let listener: HTTPListener
  private let secure: SecureListener?
  private let upkeep: Task<Void, Never>

  private init(
    store: BackendStore, listener: HTTPListener, secure: SecureListener?, upkeep: Task<Void, Never>
  ) {
    self.upkeep = upkeep
    self.store = store
    self.listener = listener
    self.secure = secure
    url = listener.url
  }

  static func start(_ options: Options, hub: NotificationHubClient) async throws -> BackendRuntime {
    let descriptors = try DescriptorLimit.require()
    let store = try await open(options.directory, database: options.database)
    if let address = options.database { try options.directory.note(database: address) }
    var configuration = HTTPConfiguration()
    configuration.host = options.address
    configuration.port = options.port
    configuration.maxBodyBytes = 256 * 1024
    configuration.maxConnections = min(1000, DescriptorLimit.connections(within: descriptors))
    configuration.maxConnectionsPerAddress = options.connectionsPerAddress
    configuration.limitsLoopback = false
    configuration.trustedProxies = options.trustedProxies
    let certificates = try options.certificate.map {
      try CertificateStore($0, at: Date(), log: options.log)
    }
    configuration.tls = certificates?.first
    let api = BackendAPI(
      hub: hub, store: store, signIn: options.signIn, configuration: options.configuration,
      transport: ClientTransport.shared,
      report: { options.log("backend: \($0)") })
    do {
      let listener = try HTTPListener(
        configuration, handler: ProxiedHandler(options.trustedProxies, next: api))
      let secure = certificates.map { SecureListener(listener, certificates: $0, log: options.log) }
      return BackendRuntime(
        store: store, listener: listener, secure: secure, upkeep: Task { await api.keepUp() })
    } catch {
      throw CommandFailure(error.description, exitCode: .unreachable)
    }
  }

  /// Opens the store of an existing backend.
  /// - Throws: ``CommandFailure`` if there is none; nothing is created.
  static func openExisting(
    _ directory: DataDirectory, database address: String?
  ) async throws -> BackendStore {
    try directory.checkUser()
    let name = address == nil ? "backend.sqlite" : "backend.key"
    guard FileManager.default.fileExists(atPath: "\(directory.path)/\(name)") else {
      throw CommandFailure(
        "no backend has run in \(directory.path): there is no \(name). Name its directory with "
          + "--store DIR"
          + (address == nil ? ", and where it keeps its data in PostgreSQL --database URL" : ""),
        exitCode: .usage)
    }
    return try await open(directory, database: address, mayMake: false)
  }

  /// Opens the store. A new one gets a new key, which is stored in the directory for both engines.
  /// - Parameter mayMake: Whether an empty PostgreSQL database may be set up for a backend.
  static func open(
    _ directory: DataDirectory, database address: String?, mayMake: Bool = true
  ) async throws -> BackendStore {
    let file = directory.path + "/backend.sqlite"
    let keyFile = directory.path + "/backend.key"
    var isMade = false
    do {
      if let address {
        // Any problem with the database is detected before a key is created.
        let connection = try PostgresConnection(address: address, component: "backend")
        defer { connection.close() }
        guard try mayMake || connection.schemaVersion() > 0 else {
          throw CommandFailure(
            "no backend is in the database \(DatabaseAddress.shown(address)): name another with "
              + "--database URL", exitCode: .usage)
        }
      }
      // A new key next to an old database would hide that the right one is missing.
      let key: MasterKey
      if FileManager.default.fileExists(atPath: file) {
        key = try MasterKey.load(file: keyFile)
      } else {
        (key, isMade) = try MasterKey.loadOrCreate(file: keyFile)
      }
      return try await BackendStore(key: key) {
        if let address { return try PostgresConnection(address: address, component: "backend") }
        return try SQLiteConnection(path: file)
      }
    } catch let error as CryptographyError where error.kind == .sealBroken {
      if isMade { try? FileManager.default.removeItem(atPath: keyFile) }
      throw CommandFailure(
        address.map {
          "the database \(DatabaseAddress.shown($0)) was begun with another key: copy backend.key "
            + "from the directory of the backend that has used it to \(keyFile), and start again"
        } ?? "\(keyFile) is not the key of \(file): put back the one that was beside it",
        exitCode: .usage)
    } catch let error as CryptographyError {
      throw CommandFailure(error.message, exitCode: .usage)
    } catch let error as SQLError {
      guard let address else {
        throw CommandFailure("\(file) cannot be opened: \(error)", exitCode: .usage)
      }
      // A user without permission to create the tables has not sealed anything.
      if isMade, error.kind == .notAllowed { try? FileManager.default.removeItem(atPath: keyFile) }
      throw CommandFailure(
        "the database \(DatabaseAddress.shown(address)): "
          + "\(PostgresRefusal.opening(error, address: address))", exitCode: .unreachable)
    }
  }

  func stop(within limit: Duration) async {
    upkeep.cancel()
    await secure?.stop(within: limit)
    await listener.stop(within: limit)
    await upkeep.value
    await store.close()
  }
}
