import SQLDatabase

extension Schema {
  /// Version 9: where pushes to a registration have succeeded, as ``PushEnvironment``; null where it
  /// was always the credential's own environment.
  @Sendable static func addEnvironment(_ connection: any SQLConnection) throws {
    try connection.execute(
      "ALTER TABLE registration ADD COLUMN environment \(connection.dialect.integer)")
  }
}
