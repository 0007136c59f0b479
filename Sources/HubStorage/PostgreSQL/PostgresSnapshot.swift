import SQLDatabase

/// One state of a database, held for readers on other connections while nodes go on writing, as
/// `pg_dump` does. While it is held, the server keeps the rows that were replaced since, and its
/// tables are neither changed nor dropped.
package final class PostgresSnapshot {
  /// The name of the snapshot; see ``PostgresHubStore/Options/snapshot``.
  package let name: String
  private let connection: PostgresConnection

  /// - Parameter address: An address as ``PostgresConnection`` takes it.
  /// - Throws: ``StoreError``.
  package init(of address: String) throws {
    do {
      connection = try PostgresConnection(address: address, component: "hub")
      try connection.set(Self.settings(ofServer: connection.serverVersion))
      // In this mode the snapshot is that of its own statement, behind the locks.
      try connection.begin("BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY")
      try PostgresSchema.keepTables(connection)
      name = try connection.rows("SELECT pg_export_snapshot()") { $0.text(0) }[0]
    } catch {
      throw PostgresRefusal.opening(error, address: address)
    }
  }

  deinit { connection.close() }

  /// The transaction lasts as long as the readers need, and does nothing meanwhile.
  /// - Parameter version: As ``PostgresConnection/serverVersion``.
  static func settings(ofServer version: Int) -> [(name: String, value: String)] {
    [
      ("lock_timeout", "\(PostgresHealth.lockWait.components.seconds)s"),
      ("idle_in_transaction_session_timeout", "0"),
    ] + (version < 170_000 ? [] : [("transaction_timeout", "0")])
  }

  /// The snapshot has ended with its connection, and nothing can be read from it any more.
  package struct Lost: Error, CustomStringConvertible {
    package let description =
      "the database ended the backup's snapshot; make the backup again"
  }
}
