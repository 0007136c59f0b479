import SQLDatabase

extension Schema {
  /// Version 8: feedback about handles that a push service has replaced.
  @Sendable static func addReplacement(_ connection: any SQLConnection) throws {
    try connection.execute("ALTER TABLE feedback ADD COLUMN new_handle TEXT")
  }
}
