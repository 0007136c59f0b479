import SQLDatabase

extension Schema {
  /// Version 17: finds what still uses a template, so that one that nobody uses can go.
  @Sendable static func addUses(_ connection: any SQLConnection) throws {
    for sql in [
      """
      CREATE INDEX registration_template ON registration (template)
      WHERE template IS NOT NULL
      """,
      """
      CREATE INDEX removed_registration_template ON removed_registration (template)
      WHERE template IS NOT NULL
      """,
      // So far a change of an installation with a dead handle gave it a fingerprint although its
      // document names templates that no registration has; of secondary tiles no column tells.
      """
      UPDATE installation SET fingerprint = 0 WHERE NOT EXISTS (
        SELECT 1 FROM registration WHERE registration.installation = installation.id
          AND registration.installation <> 0
          AND template IS NULL AND tile IS NULL AND platform NOT IN (2, 3))
        OR EXISTS (SELECT 1 FROM registration WHERE registration.installation = installation.id
          AND registration.installation <> 0 AND tile IS NOT NULL)
      """,
      // Installations whose registrations do not say all that their document does.
      "CREATE INDEX installation_apart ON installation (hub) WHERE fingerprint = 0",
    ] { try connection.execute(sql) }
  }
}
