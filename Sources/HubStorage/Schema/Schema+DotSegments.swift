import NotificationHubs
import SQLDatabase

extension Schema {
  /// Version 13: devices whose id is `.`, `..` or another that no request can name end now, so that
  /// the next clearing removes them. Earlier versions took such ids; URL layers turned a request to
  /// delete one into one to delete the hub.
  @Sendable static func endDotSegments(_ connection: any SQLConnection) throws {
    try connection.execute(
      """
      UPDATE registration SET expires_at = 1 WHERE installation IN
        (SELECT id FROM installation WHERE public_id IN ('.', '..'))
      """)
    try connection.execute(
      "UPDATE installation SET expires_at = 1 WHERE public_id IN ('.', '..')")
    var numbers: [Int64] = []
    do {
      let row = try connection.statement(
        "SELECT id, public_id FROM registration WHERE public_id IS NOT NULL")
      while try row.step() {
        if row.text(1).hasDotSegment { numbers.append(row.integer(0)) }
      }
    }
    for number in numbers {
      let end = try connection.statement("UPDATE registration SET expires_at = 1 WHERE id = ?1")
      try end.bind(number, at: 1)
      try end.run()
    }
  }
}
