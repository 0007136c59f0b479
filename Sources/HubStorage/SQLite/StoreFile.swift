import HubCore
package import SQLDatabase

/// The file of an ``SQLiteHubStore``, for inspection or copying without opening it as a store:
/// nothing in it changes, and a server may be using it.
package struct StoreFile {
  /// The newest schema version that this build knows.
  package static var newestSchema: Int { Schema.migrations.count }

  package let connection: SQLiteConnection
  let path: String
  package let schema: Int

  /// - Throws: ``StoreError``, also for a file of a newer version.
  package init(path: String) throws {
    self.path = path
    do {
      var options = SQLiteConnection.Options()
      options.isReadOnly = true
      connection = try SQLiteConnection(path: path, options: options)
      guard try connection.applicationID() == Schema.applicationID else {
        throw StoreError.corrupt("it is not a database of Belfry")
      }
      schema = try connection.schemaVersion()
    } catch {
      throw StoreError.orRefusal(error)
    }
    guard schema <= Self.newestSchema else {
      throw StoreError.newerSchema(found: schema, known: Self.newestSchema)
    }
  }

  /// Whether it is the target of an unfinished move, which nobody can serve.
  package func hasUnfinishedMove() throws -> Bool { try MoveTable(connection).hasUnfinishedMove() }

  /// The names of the tables of this version that the file lacks.
  package func missingTables() throws -> [String] {
    do {
      let there = Set(
        try connection.rows("SELECT name FROM sqlite_schema WHERE type = 'table'") { $0.text(0) })
      return Schema.tables.filter { !there.contains($0) }
    } catch {
      throw StoreError.orRefusal(error)
    }
  }

  /// Verifies that a sealed word in the file opens.
  /// - Throws: ``StoreError/sealedSecret`` when it does not.
  package func check(_ sealing: any SecretSealing) throws {
    do {
      let row = try connection.statement("SELECT canary FROM store_state")
      guard try row.step(), let canary = row.optionalBytes(0) else { return }
      _ = try Canary.key(canary, sealing)
    } catch {
      throw StoreError.orRefusal(error)
    }
  }
}
