import SQLDatabase

extension Schema {
  /// Version 14: which transaction wrote a registration last, and which accepted a notification or
  /// released it. What was written before was in the audience from the start.
  @Sendable static func addAudienceVersion(_ connection: any SQLConnection) throws {
    let type = connection.dialect
    for sql in [
      "ALTER TABLE registration ADD COLUMN written \(type.integer) NOT NULL DEFAULT 0",
      "ALTER TABLE notification ADD COLUMN audience_commit \(type.integer) NOT NULL DEFAULT 0",
    ] { try connection.execute(sql) }
  }
}
