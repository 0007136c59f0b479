import HubCore
package import SQLDatabase

/// The engine of a hub that runs on several nodes: one PostgreSQL database, of which each node is a
/// client. Expressions of tags are evaluated there, in SQL; no node keeps what another may change.
///
/// What it keeps stands beside this file, a file for each subject as in `Subjects` for SQLite.
package struct PostgresHubStore: HubStore {
  package struct Options: Sendable {
    /// Into how many parts devices are cut, as a power of two up to 256. It counts when the
    /// database is made, and is fixed from then on.
    package var slots = 16
    /// Connections that write installations, many in a transaction.
    package var batchWriters = 2
    /// The installations that share a transaction: the work of others waits for that.
    package var batch = JobGroup(jobs: 128, rows: 4_096, bytes: 4 << 20)
    /// Connections for all other writes, each in a transaction of its own.
    package var writers = 4
    package var readers = 4
    /// How much work may wait for connections that write.
    package var limits = JobLimits()
    /// The most installations that are read for one page of a list with a filter.
    package var stretch = 5_000
    /// How long an audience is counted, before what is counted tells about the rest.
    package var countTime = Duration.seconds(1)
    /// How long work waits for a database that has gone away, before it is refused.
    package var patience = Duration.seconds(5)
    /// How long an answer to a statement is waited for, before its connection counts as lost: longer
    /// than any takes on a server that works. There is no limit while tables are changed, and none
    /// (`nil`) for those of a move, which may count whole tables.
    package var answerTime: Duration? = .seconds(60)
    /// Whether a database of an older version is brought up to date.
    package var mayMigrate = true
    /// Whether it may be the target of a move that is not finished, which nobody else can open.
    package var takesMove = false
    /// Steps of the schema after this version's, for tests of upgrades.
    var laterSteps: [Migration] = []

    package init() {}
  }

  let engine: PostgresEngine
  private let interceptor: (any StoreInterceptor)?

  /// Connects, and brings the schema up to date; an empty database is given one.
  ///
  /// - Parameter address: As ``PostgresConnection`` takes it.
  /// - Throws: ``StoreError``, whose text says what to do.
  package static func open(
    address: String, sealing: any SecretSealing, options: Options = Options()
  ) async throws -> PostgresHubStore {
    PostgresHubStore(
      engine: try await PostgresEngine.open(address: address, sealing: sealing, options: options),
      interceptor: nil)
  }

  /// Into how many parts its devices are cut; see ``Options/slots``.
  package var slots: Int { engine.shared.slots.count }

  /// The same open store, with something in front of every call, for tests.
  package func intercepted(by interceptor: any StoreInterceptor) -> PostgresHubStore {
    PostgresHubStore(engine: engine, interceptor: interceptor)
  }

  // MARK: Work

  /// Does `body` in a transaction; returns once it is durable. `body` is called again when other
  /// transactions were in its way, or the connection was lost before its commit.
  ///
  /// - Parameter unclear: What to do when the connection was lost while it was being committed.
  func write<Value: Sendable>(
    _ call: String = #function, as label: JobLabel = .asked(),
    ifUnclear unclear: UnclearCommit<Value> = .mark,
    _ body: @escaping @Sendable (PostgresSession) throws -> Value
  ) async throws -> Value {
    try await intercepted(call) { [engine] in
      try await engine.perform(.writing, on: engine.writers, as: label, ifUnclear: unclear, body)
    }
  }

  /// Does `body` in a transaction, so that it sees one state of the database throughout.
  func read<Value: Sendable>(
    _ call: String = #function, as label: JobLabel = .asked(),
    _ body: @escaping @Sendable (PostgresSession) throws -> Value
  ) async throws -> Value {
    try await intercepted(call) { [engine] in
      try await engine.perform(.reading, on: engine.readers, as: label, ifUnclear: .again, body)
    }
  }

  /// Does `body` without a transaction: each statement sees the state of its moment.
  func readFreely<Value: Sendable>(
    _ call: String = #function, as label: JobLabel = .asked(),
    _ body: @escaping @Sendable (PostgresSession) throws -> Value
  ) async throws -> Value {
    try await intercepted(call) { [engine] in
      try await engine.perform(.single, on: engine.readers, as: label, ifUnclear: .again, body)
    }
  }

  /// Lets the interceptor have its say.
  func intercepted<Value: Sendable>(
    _ call: String, _ body: @Sendable () async throws -> Value
  ) async throws -> Value {
    try engine.refuseIfHung()
    // Its statements are of tables that are not there any more in that form.
    if let newer = heart?.newerVersion {
      throw StoreError.newerSchema(found: newer, known: engine.shared.version)
    }
    guard let interceptor else { return try await body() }
    return try await interceptor.intercept(call, body)
  }

  package func close() async throws {
    await heart?.stop()
    await engine.close()
  }
}

/// What to do when the connection was lost while a transaction was being committed, so that nobody
/// knows whether it was.
enum UnclearCommit<Value: Sendable>: Sendable {
  /// The caller is told that it is not known.
  case refuse
  /// Doing it a second time changes nothing.
  case again
  /// The transaction writes a mark, by which the next connection finds out; see `commit_mark`.
  case mark
  /// Looks, on a new connection, whether it was; `nil` when it was not, and is to be done again.
  /// The lost transaction may still be ending: the work itself must meet it at a row or a key.
  case look(@Sendable (PostgresSession) throws -> Value?)
}
