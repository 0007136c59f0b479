/// One numbered step of a schema; once released it never changes.
package struct Migration: Sendable {
  /// From 1, without gaps.
  package let version: Int
  package let apply: @Sendable (any SQLConnection) throws -> Void

  package init(version: Int, apply: @escaping @Sendable (any SQLConnection) throws -> Void) {
    self.version = version
    self.apply = apply
  }
}

extension SQLConnection {
  /// Migrates the schema to the last of `migrations`, each in a transaction of its own.
  /// - Throws: ``SQLError/Kind/newerSchema(found:known:)`` when the database is ahead of this
  ///   build; it is left unchanged.
  package func migrate(with migrations: [Migration]) throws {
    let known = migrations.last?.version ?? 0
    let found = try schemaVersion()
    guard found <= known else {
      throw SQLError(
        kind: .newerSchema(found: found, known: known), code: 0,
        message: "schema version \(found), known up to \(known)")
    }
    for migration in migrations where migration.version > found {
      try writing {
        // Another process may have been faster between our check and our lock.
        guard try schemaVersion() < migration.version else { return }
        try migration.apply(self)
        try setSchemaVersion(migration.version)
      }
    }
  }
}
