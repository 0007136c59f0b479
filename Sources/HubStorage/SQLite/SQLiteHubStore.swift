package import HubCore
package import SQLDatabase

/// The embedded engine of ``HubStore``: one SQLite file. Bitmaps of tags determine which
/// registrations match an expression.
///
/// Its subjects are in `Subjects`, a file for each: calls, SQL and rows together. The statements of a
/// subject are a type on a session: ``OutcomeReader``, ``OutcomeWriter``.
package struct SQLiteHubStore: HubStore {
  package struct Options: Sendable {
    /// Memory for the bitmaps of tags, in bytes.
    package var audienceBytes = 32 << 20
    /// Page cache of the writing thread, in KiB.
    package var writerCache = 64 << 10
    /// Page cache of each reading thread, in KiB.
    package var readerCache = 4 << 10
    /// Number of reading threads.
    package var readers = 2
    /// Time to wait for another process's lock, in milliseconds.
    package var lockTimeout: Int32 = 5_000
    /// Number of 4 KiB pages in the log from which it is copied into the file.
    package var logPages = 16_384
    /// Number of changes of tag members that gather in the log before they are merged.
    package var tagLogLimit = 65_536
    /// Number of changes of device keys that gather in the log before they go into the index. A
    /// device has a key for its id, its user and each handle, each of some 40 bytes in memory.
    package var keyLogLimit = 262_144
    /// Number of these keys that a transaction writes to the index, if any.
    package var keyPortion = 2_048
    /// Maximum number of different tags of one hub.
    package var tagsPerHub = 5_000_000
    /// Maximum number of different templates of one hub.
    package var templatesPerHub = 100_000
    /// Limits on the work that waits for the writing thread.
    package var limits = JobLimits()
    /// Maximum size of a transaction that work shares, and the time during which more is added to
    /// it: other work waits for that.
    package var group = JobGroup(jobs: 512, rows: 16_384, bytes: 8 << 20)
    package var groupTime = Duration.milliseconds(50)
    /// Maximum number of installations read for one page of a filtered list.
    package var stretch = 5_000
    /// Maximum number of template names by which a hub's registrations are counted at once; with
    /// more, their rows are read.
    package var countedNames = 1_000
    /// The largest size of the file in pages of 4 KiB, for tests of a full disk.
    package var maximumPages: Int?
    /// The release, a part of each request's hash: after an update the next registration of every
    /// device is read and written.
    package var release = ""
    /// Whether a database of an older version is migrated. A command must not do that while a
    /// server of the older version uses it.
    package var mayMigrate = true
    /// Whether it may be the target of an unfinished move, which nobody else can open.
    package var takesMove = false
    /// Whether a copy of a database is kept beside it before it is migrated; see ``StoreUpgrade``.
    package var keepsUpgradeCopy = true
    /// The free disk space in bytes, in place of what the system reports, for tests of a full disk.
    package var availableBytes: Int64?
    /// The name of a VFS registered with SQLite, for tests of failing disks.
    package var fileSystem: String?
    /// Schema steps after this version's, for tests of upgrades.
    var laterSteps: [Migration] = []
    var steps: [Migration] { Schema.migrations + laterSteps }

    package init() {}
  }

  let engine: StoreEngine
  private let interceptor: (any StoreInterceptor)?

  package var clock: HubClock { .system }
  /// Makes and reads the ids of registrations.
  package var coding: RegistrationIDCoding { engine.coding }
  /// Acknowledged commits that were missing when the database was opened; usually `nil`.
  package var discarded: DiscardedCommits? { engine.discarded }
  /// The migration done at opening; usually `nil`.
  package var upgrade: StoreUpgrade? { engine.upgrade }

  /// Opens the file, creating it when there is none, and migrates its schema.
  ///
  /// - Throws: ``StoreError``. A file that did not exist before is not left behind.
  package static func open(
    at path: String, sealing: any SecretSealing, options: Options = Options()
  ) async throws -> SQLiteHubStore {
    SQLiteHubStore(
      engine: try await StoreEngine.open(at: path, sealing: sealing, options: options),
      interceptor: nil)
  }

  /// The same open file with an interceptor in front of every call, for tests.
  package func intercepted(by interceptor: any StoreInterceptor) -> SQLiteHubStore {
    SQLiteHubStore(engine: engine, interceptor: interceptor)
  }

  // MARK: Work

  /// Runs `body` in a transaction; returns once it is durable.
  func write<Value: Sendable>(
    _ call: String = #function, as label: JobLabel = .asked(),
    _ body: @escaping @Sendable (WriteSession) throws -> Value
  ) async throws -> Value {
    try await intercepted(call) { [engine] in try await engine.writer.perform(label, body) }
  }

  /// Runs `body` in a transaction, so that it sees one state of the database throughout.
  func read<Value: Sendable>(
    _ call: String = #function, as label: JobLabel = .asked(),
    _ body: @escaping @Sendable (ReadSession) throws -> Value
  ) async throws -> Value {
    try await readFreely(call, as: label) { session in
      try session.connection.reading { try body(session) }
    }
  }

  /// As ``read(_:as:_:)``, for a few rows that are found by their key: on this thread, if it can be
  /// done at once.
  func readRows<Value: Sendable>(
    _ call: String = #function,
    _ body: @escaping @Sendable (ReadSession) throws -> Value
  ) async throws -> Value {
    try await intercepted(call) { [engine] in
      if let value = try engine.rows.read(body) { return value }
      return try await engine.readers.perform(.asked()) { session in
        try session.connection.reading { try body(session) }
      }
    }
  }

  /// Runs `body` without a transaction: evaluation of an audience begins and ends its own.
  func readFreely<Value: Sendable>(
    _ call: String = #function, as label: JobLabel = .asked(),
    _ body: @escaping @Sendable (ReadSession) throws -> Value
  ) async throws -> Value {
    try await intercepted(call) { [engine] in try await engine.readers.perform(label, body) }
  }

  /// Calls the interceptor.
  func intercepted<Value: Sendable>(
    _ call: String, _ body: @Sendable () async throws -> Value
  ) async throws -> Value {
    do {
      guard let interceptor else { return try await body() }
      return try await interceptor.intercept(call, body)
    } catch let refusal as JobRefusal {
      throw StoreError(refusal)
    }
  }

  package func directoryVersion() async throws -> Int {
    guard let interceptor else { return try engine.directoryVersion() }
    return try await interceptor.intercept(#function) { [engine] in try engine.directoryVersion() }
  }

  package func condition() async -> StoreCondition {
    guard let interceptor else { return engine.condition() }
    do {
      return try await interceptor.intercept(#function) { [engine] in engine.condition() }
    } catch {
      return (error as? StoreError)?.condition ?? engine.condition()
    }
  }

  package func statistics() async -> StoreStatistics { engine.statistics }

  package func inTurn<Value: Sendable>(
    bytes: Int, _ work: @escaping @Sendable () throws -> Value
  ) async throws -> Value {
    try await engine.documents.read(bytes: bytes, work)
  }

  package func close() async throws { await engine.close() }
}

/// An interceptor in front of every call of a store.
package protocol StoreInterceptor: Sendable {
  /// - Parameter call: The call's name with its labels, for example `checkpoint(_:)`. A call with
  ///   several steps is reported with each.
  func intercept<Value: Sendable>(
    _ call: String, _ body: @Sendable () async throws -> Value
  ) async throws -> Value
}
