import Cryptography
import HubCore
import HubStorage
import Synchronization

/// An open store of either engine, with the parts that only one of them has.
struct OpenedStore {
  let store: any HubStore
  let keys: MasterKeyRing
  /// The commits that a file had lost when it was opened; usually `nil`.
  var discarded: DiscardedCommits?
  /// The migration of a file when it was opened; usually `nil`.
  var upgrade: StoreUpgrade?
  /// The database that nodes share; `nil` for a file.
  var shared: PostgresHubStore?

  /// Opens the store; the only place that chooses the engine.
  static func open(_ options: HubRuntime.Options, mayMigrate: Bool) async throws -> OpenedStore {
    guard let address = try options.data.postgres(options.database) else {
      var storage = options.storage
      storage.mayMigrate = mayMigrate
      let (store, keys) = try await options.data.openStore(
        masterKey: options.masterKey, options: storage)
      return OpenedStore(
        store: store, keys: keys, discarded: store.discarded, upgrade: store.upgrade)
    }
    var storage = PostgresHubStore.Options()
    storage.slots = options.databaseSlots ?? storage.slots
    storage.mayMigrate = mayMigrate
    let (store, keys) = try await options.data.openPostgres(
      address, masterKey: options.masterKey, options: storage, mayMake: options.mayMake)
    if mayMigrate, options.mayMake { try options.data.note(database: address) }
    if let wanted = options.databaseSlots, wanted != store.slots {
      options.log(
        .warning, "database.slots",
        "databaseSlots is \(wanted), and this database was made with \(store.slots), which stays: set it "
          + "to that, or leave it out")
    }
    return OpenedStore(store: store, keys: keys, shared: store)
  }
}

extension HubStore {
  /// Closes the store after `body`, whatever comes of that.
  func closing<Value>(after body: () async throws -> Value) async throws -> Value {
    do {
      let value = try await body()
      try await close()
      return value
    } catch {
      try? await close()
      throw error
    }
  }
}

/// Seals the store's secrets under the master keys.
final class MasterKeySealing: SecretSealing {
  private let ring: MasterKeyRing
  private let sealer: SecretSealer
  private let sealed = Atomic(false)

  /// Whether anything was sealed with the keys, and may be in the store.
  var hasSealed: Bool { sealed.load(ordering: .relaxed) }

  init(_ ring: MasterKeyRing) {
    self.ring = ring
    sealer = SecretSealer(ring: ring)
  }

  func keys() -> [String] {
    // A file that cannot be read changes nothing.
    _ = try? ring.readAgain()
    return ring.ids
  }

  func seal(_ plaintext: [UInt8], context: String, under key: String) throws -> [UInt8] {
    sealed.store(true, ordering: .relaxed)
    return try sealer.seal(plaintext, context: context, under: key)
  }

  func open(_ sealed: [UInt8], context: String) throws -> [UInt8] {
    try sealer.open(sealed, context: context)
  }

  func key(of sealed: [UInt8], context: String) throws -> String {
    try sealer.key(of: sealed, context: context)
  }

  func head(of key: String) -> [UInt8] { SecretSealer.head(of: key) }
}
