import HubCore
import SQLDatabase

/// A warning to operators about an open database.
package struct StoreWarning: Hashable, Sendable {
  /// The code in the health report.
  package let code: String
  /// Says which setting to change.
  package let text: String
}

/// Warnings about the configuration of a database and of the connection to it.
struct PostgresWarnings: PostgresSubject {
  let session: PostgresSession

  init(_ session: PostgresSession) { self.session = session }

  /// `nil` when an acknowledged commit survives the loss of the server.
  func durabilityWarning() throws -> StoreWarning? {
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
  func lockWarning(_ options: PostgresHubStore.Options) throws -> StoreWarning? {
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

  func encryptionWarning() -> StoreWarning? {
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
