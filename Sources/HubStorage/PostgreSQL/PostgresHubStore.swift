import HubCore
package import SQLDatabase

/// The engine of a hub that runs on several nodes: one PostgreSQL database, of which each node is a
/// client. Tag expressions are evaluated there, in SQL; no node caches anything that another may
/// change.
///
/// Its calls are extensions in files beside this one; the statements of a subject are a type on a
/// session, for example ``PostgresOutcomes``.
package struct PostgresHubStore: HubStore {
  package struct Options: Sendable {
    /// Number of slots that devices are divided into, a power of two up to 256. It takes effect
    /// when the database is created, and is fixed from then on.
    package var slots = 16
    /// Connections that write installations, many in a transaction.
    package var batchWriters = 2
    /// Maximum size of a transaction of installations: other work waits for it.
    package var batch = JobGroup(jobs: 128, rows: 4_096, bytes: 4 << 20)
    /// When their transactions run side by side. One that waits for a lock delays the others by its
    /// `patience` at most.
    package var coalescing = BatchCoalescing(enough: 64, patience: .milliseconds(20))
    /// Connections for all other writes, each in a transaction of its own.
    package var writers = 4
    package var readers = 4
    /// Limits on the work that waits for a connection for writing.
    package var limits = JobLimits()
    /// Maximum number of installations read for one page of a filtered list.
    package var stretch = 5_000
    /// Time limit for counting an audience, after which the rest is extrapolated.
    package var countTime = Duration.seconds(1)
    /// Maximum time that work waits for an unreachable database before it is refused.
    package var patience = Duration.seconds(5)
    /// Time limit for the reply to a statement, after which its connection counts as lost: longer
    /// than any statement takes on a working server. There is no limit while tables are changed,
    /// and none (`nil`) for statements of a move, which may count whole tables.
    package var answerTime: Duration? = .seconds(60)
    /// Whether a database of an older version is migrated.
    package var mayMigrate = true
    /// Whether it may be the target of an unfinished move, which nobody else can open.
    package var takesMove = false
    /// The name of a ``PostgresSnapshot`` that everything is read from; `nil` reads the current state.
    package var snapshot: String?
    /// Schema steps after this version's, for tests of upgrades.
    var laterSteps: [Migration] = []

    package init() {}
  }

  let engine: PostgresEngine
  private let interceptor: (any StoreInterceptor)?

  /// Connects, and migrates the schema; an empty database is given one.
  ///
  /// - Parameter address: An address as ``PostgresConnection`` takes it.
  /// - Throws: ``StoreError``, whose text says what to do.
  package static func open(
    address: String, sealing: any SecretSealing, options: Options = Options()
  ) async throws -> PostgresHubStore {
    PostgresHubStore(
      engine: try await PostgresEngine.open(address: address, sealing: sealing, options: options),
      interceptor: nil)
  }

  /// Number of slots that its devices are divided into; see ``Options/slots``.
  package var slots: Int { engine.shared.slots.count }

  /// The same open store with an interceptor in front of every call, for tests.
  package func intercepted(by interceptor: any StoreInterceptor) -> PostgresHubStore {
    PostgresHubStore(engine: engine, interceptor: interceptor)
  }

  // MARK: Work

  /// Runs `body` in a transaction; returns once it is durable. `body` is called again after a
  /// conflict with other transactions, or when the connection was lost before the commit.
  ///
  /// - Parameter unclear: The behaviour when the connection is lost during the commit.
  func write<Value: Sendable>(
    _ call: String = #function, as label: JobLabel = .asked(),
    ifUnclear unclear: UnclearCommit<Value> = .mark,
    _ body: @escaping @Sendable (PostgresSession) throws -> Value
  ) async throws -> Value {
    try await intercepted(call) { [engine] in
      try await engine.perform(.writing, on: engine.writers, as: label, ifUnclear: unclear, body)
    }
  }

  /// Runs `body` in a transaction, so that it sees one state of the database throughout.
  func read<Value: Sendable>(
    _ call: String = #function, as label: JobLabel = .asked(),
    _ body: @escaping @Sendable (PostgresSession) throws -> Value
  ) async throws -> Value {
    try await intercepted(call) { [engine] in
      try await engine.perform(.reading, on: engine.readers, as: label, ifUnclear: .again, body)
    }
  }

  /// Runs `body` without a transaction: each statement sees the state of its moment.
  func readFreely<Value: Sendable>(
    _ call: String = #function, as label: JobLabel = .asked(),
    _ body: @escaping @Sendable (PostgresSession) throws -> Value
  ) async throws -> Value {
    try await intercepted(call) { [engine] in
      try await engine.perform(.single, on: engine.readers, as: label, ifUnclear: .again, body)
    }
  }

  /// Calls the interceptor.
  func intercepted<Value: Sendable>(
    _ call: String, _ body: @Sendable () async throws -> Value
  ) async throws -> Value {
    try engine.refuseIfHung()
    // Its statements expect tables that no longer have that form.
    if let newer = heartbeat?.newerVersion {
      throw StoreError.newerSchema(found: newer, known: engine.shared.version)
    }
    guard let interceptor else { return try await body() }
    return try await interceptor.intercept(call, body)
  }

  package func close() async throws {
    await heartbeat?.stop()
    await engine.close()
  }
}

/// The behaviour when the connection is lost during a commit, so that its outcome is unknown.
enum UnclearCommit<Value: Sendable>: Sendable {
  /// Tells the caller that the outcome is unknown.
  case refuse
  /// Repeats the work, which is idempotent.
  case again
  /// Writes a mark in the transaction, by which the next connection finds out; see `commit_mark`.
  case mark
  /// Checks on a new connection whether it was committed; `nil` means that it was not, and is
  /// repeated. The lost transaction may still be ending: the work itself must conflict with it on a
  /// row or a key.
  case look(@Sendable (PostgresSession) throws -> Value?)
}
