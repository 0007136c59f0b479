package import HubCore
import SQLDatabase
import Synchronization

extension PostgresSession: SubjectReading, SubjectWriting {
  var sql: any SQLConnection { connection }

  func changeDirectory() throws {
    try execute("UPDATE directory SET version = version + 1")
    changesDirectory = true
  }

  func nextHub() throws -> Hub.ID {
    guard let number = try first("SELECT nextval('hub_id_seq')") else {
      throw StoreError.corrupt("a sequence gives no number")
    }
    return number
  }

  func willDelete(_ hub: Hub.ID) throws { try lockHub(hub, alone: true) }

  func nodes(lacking key: String) throws -> [String] {
    try connection.rows(
      """
      SELECT name, address FROM node WHERE \(NodeTable.isAlive("node"))
        AND position(?1 IN keys) = 0 ORDER BY id
      """, key
    ) { $0.text(0) + ($0.text(1).isEmpty ? "" : " (\($0.text(1)))") }
  }
}

extension PostgresHubStore: SubjectStore {
  package var coding: RegistrationIDCoding { engine.shared.coding }

  package func reading<Value: Sendable>(
    _ call: String, _ body: @escaping @Sendable (any SubjectReading) throws -> Value
  ) async throws -> Value {
    try await read(call) { try body($0) }
  }

  package func writing<Value: Sendable>(
    _ call: String, _ body: @escaping @Sendable (any SubjectWriting) throws -> Value
  ) async throws -> Value {
    try await write(call) { try body($0) }
  }
}

/// Caches the version of hubs, policies and credentials, which every node that changes them raises.
///
/// Asked with every request: changes of this process are visible at once, those of others within
/// ``interval``.
final class DirectoryMark: Sendable {
  private struct State {
    var version: Int?
    var nextLook = ContinuousClock.now
    /// Rises with each change of this process, and invalidates a version that was read before.
    var changes = 0
  }

  private let state = Mutex(State())

  private static let interval = Duration.milliseconds(100)

  /// Reads the version again when next asked.
  func look() {
    state.withLock { state in
      state.version = nil
      state.changes += 1
    }
  }

  /// - Returns: The version, unless it must be read; and the value to pass to
  ///   ``note(_:readAfter:)``.
  fileprivate func known() -> (version: Int?, changes: Int) {
    state.withLock { ($0.nextLook > .now ? $0.version : nil, $0.changes) }
  }

  fileprivate func note(_ version: Int, readAfter changes: Int) {
    state.withLock { state in
      guard state.changes == changes else { return }
      state.version = version
      state.nextLook = .now + Self.interval
    }
  }
}

extension PostgresHubStore {
  package func directoryVersion() async throws -> Int {
    let mark = engine.shared.directory
    return try await intercepted(#function) { [engine] in
      guard !engine.shared.isClosing.load(ordering: .relaxed) else { throw StoreError.closed }
      let (known, changes) = mark.known()
      if let known { return known }
      let version = try await engine.perform(.single, on: engine.readers, ifUnclear: .again) {
        session in
        Int(try session.first("SELECT version FROM directory") ?? 0)
      }
      mark.note(version, readAfter: changes)
      return version
    }
  }

  package func statistics() async -> StoreStatistics {
    var statistics = engine.shared.statistics.withLock { $0 }
    statistics.add(engine.counts)
    return statistics
  }

  package func inTurn<Value: Sendable>(
    bytes: Int, _ work: @escaping @Sendable () throws -> Value
  ) async throws -> Value {
    try await engine.documents.read(bytes: bytes, work)
  }

  /// The condition of the database and of this node. A fault counts until something works again. In
  /// a node the heartbeat tries, and callers do not wait for it; in another process this call
  /// tries.
  package func condition() async -> StoreCondition {
    guard !engine.shared.isClosing.load(ordering: .relaxed) else {
      return .unavailable(reason: StoreError.closed.description)
    }
    if heart == nil, engine.shared.health.condition != nil {
      _ = try? await engine.perform(.single, on: engine.readers, ifUnclear: .again) { session in
        try session.first("SELECT 1")
      }
    }
    // Waiting work is refused even when no other request comes.
    do { try engine.refuseIfHung() } catch {
      return engine.shared.health.condition ?? .unavailable(reason: "\(error)")
    }
    if let fault = engine.shared.health.condition { return fault }
    return heart?.trouble.map { .leaseLost(reason: $0) } ?? .healthy
  }

  /// A condition that an operator should look at now; usually `nil`.
  package var lockWarning: StoreWarning? {
    guard engine.shared.health.hasWaitedForLocks else { return nil }
    return StoreWarning(
      code: "database-lock-held",
      text: "another session of the database holds locks that writes wait for: they are refused "
        + "after \(PostgresHealth.lockWait.components.seconds) s; see "
        + "docs/operate/troubleshooting.md for who it is")
  }

  /// Whether every role of the server may connect to the database, and so hold its locks.
  package func isOpenToAll() async throws -> Bool {
    try await read { session in
      try session.first(
        "SELECT has_database_privilege('public', current_database(), 'CONNECT')::int") == 1
    }
  }

  /// Warnings to operators about the configuration of the database and of the connection to it.
  package func warnings() async throws -> [StoreWarning] {
    let options = engine.shared.options
    return try await read { session in
      [
        try session.durabilityWarning(), try session.lockWarning(options),
        session.encryptionWarning(), try session.serverWarning(),
      ].compactMap(\.self)
    }
  }

  /// Number of client connections of the server, and the limit without those reserved for
  /// superusers.
  package func connections() async throws -> (used: Int, limit: Int, version: String) {
    try await read { session in
      let row = try session.connection.statement(
        """
        SELECT (SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
          current_setting('max_connections')::BIGINT
            - current_setting('superuser_reserved_connections')::BIGINT,
          current_setting('server_version')
        """)
      guard try row.step() else { return (0, 0, "") }
      return (Int(row.integer(0)), Int(row.integer(1)), row.text(2))
    }
  }
}

/// A warning to operators about an open database.
package struct StoreWarning: Hashable, Sendable {
  /// The code in the health report.
  package let code: String
  /// Says which setting to change.
  package let text: String
}

extension PostgresSession {
  /// `nil` when an acknowledged commit survives the loss of the server.
  fileprivate func durabilityWarning() throws -> StoreWarning? {
    let row = try connection.statement(
      """
      SELECT current_setting('synchronous_standby_names'), current_setting('synchronous_commit'),
        current_setting('fsync')
      """)
    guard try row.step() else { return nil }
    let (standbys, commit, fsync) = (row.text(0), row.text(1), row.text(2))
    let text: String
    if fsync == "off" {
      text = "fsync is off: a power cut can lose or damage everything; set it to on"
    } else if ["off", "local"].contains(commit) {
      text =
        "synchronous_commit is \(commit): the last sends that were accepted can be lost with "
        + "the server; set it to on"
    } else if standbys.isEmpty {
      text =
        "synchronous_standby_names is empty: when the server is lost for good, so are the last "
        + "sends that were accepted, whatever standby is promoted; name a synchronous standby there"
    } else {
      return nil
    }
    return StoreWarning(code: "database-not-synchronous", text: text)
  }

  /// A statement over all slots locks each of their tables and indexes. When the server's lock
  /// table is full, statements fail, those of other programs included.
  fileprivate func lockWarning(_ options: PostgresHubStore.Options) throws -> StoreWarning? {
    let row = try connection.statement(
      """
      SELECT (SELECT COUNT(DISTINCT i.inhrelid) + COUNT(x.indexrelid) FROM pg_inherits i
          LEFT JOIN pg_index x ON x.indrelid = i.inhrelid
          WHERE i.inhparent = 'registration'::regclass),
        (SELECT COUNT(*) FROM node n WHERE \(NodeTable.isAlive("n"))),
        current_setting('max_locks_per_transaction')::int8,
        current_setting('max_connections')::int8 + current_setting('max_prepared_transactions')::int8
      """)
    guard try row.step() else { return nil }
    // There may be no nodes yet.
    let nodes = max(1, row.integer(1))
    let needed = nodes * options.locks(onRelations: row.integer(0))
    let (limit, places) = (row.integer(2), max(1, row.integer(3)))
    guard needed > limit * places else { return nil }
    return StoreWarning(
      code: "database-locks",
      text: "\(nodes) nodes may want \(needed) locks at once, and the server has room for "
        + "\(limit * places): statements fail when it is full; set max_locks_per_transaction to "
        + "\((needed + places - 1) / places) and restart the server")
  }

  func serverWarning() throws -> StoreWarning? {
    guard try PostgresSchema.cluster(of: connection) == nil else { return nil }
    return StoreWarning(
      code: "database-server-unknown",
      text:
        "Belfry cannot detect a move to another PostgreSQL server, because its role may not call "
        + "pg_control_system(): GRANT EXECUTE ON FUNCTION pg_control_system() TO that role, or run "
        + "`belfry database adopt` after a restore into another server, before the nodes start")
  }

  fileprivate func encryptionWarning() -> StoreWarning? {
    guard connection.isExposed else { return nil }
    return StoreWarning(
      code: "database-not-encrypted",
      text: "the connection to the database on another machine is not encrypted: who is between "
        + "reads and changes what passes; set up TLS there, and sslmode=verify-full in the address")
  }
}

extension PostgresHubStore.Options {
  /// Maximum number of locks that a node holds at once.
  /// - Parameter relations: Number of tables and indexes that a statement over all slots locks.
  func locks(onRelations relations: Int64) -> Int64 {
    Int64(writers + readers + batchWriters) * relations
      + Int64(batchWriters * PostgresInstallations.lockLimit)
  }
}
