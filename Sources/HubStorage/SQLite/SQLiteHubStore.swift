package import HubCore
package import SQLDatabase

/// The embedded engine of ``HubStore``: one SQLite file. Bitmaps of tags answer who matches an
/// expression.
///
/// What it keeps stands in `Subjects`, a file for each: calls, SQL and rows together.
package struct SQLiteHubStore: HubStore {
  package struct Options: Sendable {
    /// Memory for the bitmaps of tags, in bytes.
    package var audienceBytes = 32 << 20
    /// Memory for pages of the database on the writing side, in KiB.
    package var writerCache = 64 << 10
    /// Memory for pages of the database of each reading thread, in KiB.
    package var readerCache = 4 << 10
    /// Threads that read.
    package var readers = 2
    /// How long to wait for another process's lock, in milliseconds.
    package var lockTimeout: Int32 = 5_000
    /// Pages of 4 KiB in the log that are worth copying into the file.
    package var logPages = 16_384
    /// How many changes of tags' members gather in the log before they are merged.
    package var tagLogLimit = 65_536
    /// How many changes of devices' keys gather in the log before they go into the index: a device
    /// has a key for its id, its user and each handle, of some 40 bytes in memory.
    package var keyLogLimit = 262_144
    /// The most different tags that one hub may have.
    package var tagsPerHub = 5_000_000
    /// The most different templates that one hub may have.
    package var templatesPerHub = 100_000
    /// How much work may wait for the writing thread.
    package var limits = JobLimits()
    /// How much work shares a transaction, and for how long it is given more: the work of others
    /// waits for that.
    package var group = JobGroup(jobs: 512, rows: 16_384, bytes: 8 << 20)
    package var groupTime = Duration.milliseconds(50)
    /// The most installations that are read for one page of a list with a filter.
    package var stretch = 5_000
    /// The most names of templates that a hub's registrations are counted by at once; with more,
    /// their rows are read.
    package var countedNames = 1_000
    /// The largest size of the file in pages of 4 KiB, for tests of a full disk.
    package var maximumPages: Int?
    /// Whether a database of an older version is brought up to date. A command must not do that
    /// while a server of the older version works with it.
    package var mayMigrate = true
    /// Whether it may be the target of a move that is not finished, which nobody else can open.
    package var takesMove = false
    /// Whether a database that is brought up to date is kept as it was beside it; see
    /// ``StoreUpgrade``.
    package var keepsUpgradeCopy = true
    /// The room on the disk in bytes, in place of what the system says, for tests of a full one.
    package var availableBytes: Int64?
    /// A file system registered with the engine, for tests of disks that fail.
    package var fileSystem: String?
    /// Steps of the schema after this version's, for tests of upgrades.
    var laterSteps: [Migration] = []
    var steps: [Migration] { Schema.migrations + laterSteps }

    package init() {}
  }

  let engine: StoreEngine
  private let interceptor: (any StoreInterceptor)?

  package var clock: HubClock { .system }
  /// Makes and reads the ids of registrations.
  package var coding: RegistrationIDCoding { engine.coding }
  /// What had been acknowledged and was not there when the database was opened; `nil` as a rule.
  package var discarded: DiscardedCommits? { engine.discarded }
  /// What opening it has brought up to date; `nil` as a rule.
  package var upgrade: StoreUpgrade? { engine.upgrade }

  /// Opens the file, creating it when there is none, and brings its schema up to date.
  ///
  /// - Throws: ``StoreError``; a file that did not exist before does not exist then either.
  package static func open(
    at path: String, sealing: any SecretSealing, options: Options = Options()
  ) async throws -> SQLiteHubStore {
    SQLiteHubStore(
      engine: try await StoreEngine.open(at: path, sealing: sealing, options: options),
      interceptor: nil)
  }

  /// The same open file, with something in front of every call, for tests.
  package func intercepted(by interceptor: any StoreInterceptor) -> SQLiteHubStore {
    SQLiteHubStore(engine: engine, interceptor: interceptor)
  }

  // MARK: Work

  /// Does `body` in a transaction; returns once it is durable.
  func write<Value: Sendable>(
    _ call: String = #function, as label: JobLabel = .asked(),
    _ body: @escaping @Sendable (WriteSession) throws -> Value
  ) async throws -> Value {
    try await intercepted(call) { [engine] in try await engine.writer.perform(label, body) }
  }

  /// Does `body` in a transaction, so that it sees one state of the database throughout.
  func read<Value: Sendable>(
    _ call: String = #function, as label: JobLabel = .asked(),
    _ body: @escaping @Sendable (ReadSession) throws -> Value
  ) async throws -> Value {
    try await readFreely(call, as: label) { session in
      try session.connection.reading { try body(session) }
    }
  }

  /// Does `body` without a transaction: evaluation of an audience starts and ends its own.
  func readFreely<Value: Sendable>(
    _ call: String = #function, as label: JobLabel = .asked(),
    _ body: @escaping @Sendable (ReadSession) throws -> Value
  ) async throws -> Value {
    try await intercepted(call) { [engine] in try await engine.readers.perform(label, body) }
  }

  /// Lets the interceptor have its say.
  private func intercepted<Value: Sendable>(
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

/// Stands in front of every call of a store.
package protocol StoreInterceptor: Sendable {
  /// - Parameter call: The call's name with its labels, `checkpoint(_:)` say. One that works in
  ///   several steps comes here with each.
  func intercept<Value: Sendable>(
    _ call: String, _ body: @Sendable () async throws -> Value
  ) async throws -> Value
}
