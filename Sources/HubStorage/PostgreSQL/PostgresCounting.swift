import HubCore
import NotificationHubs
import SQLDatabase

/// Exact counts of an audience.
struct PostgresCounting: PostgresSubject {
  let session: PostgresSession

  init(_ session: PostgresSession) { self.session = session }

  /// - Returns: `isWhole` is true when those of all slots are counted, because there are few.
  func counts(
    _ query: AudienceQuery, table: Int
  ) throws -> (counts: AudienceCounts, isWhole: Bool) {
    var counts = AudienceCounts()
    guard try hasHub(query.hub), let audience = try PostgresTargets(session).audience(query) else {
      return (counts, true)
    }
    var sql = SQLBuilder()
    sql += "SELECT r.platform, r.template IS NULL, COALESCE(r.name, ''), COUNT(*)"
    sql += " FROM registration r WHERE r.hub = \(sql.bind(query.hub))"
    if audience.only == nil {
      let slots = PostgresArray.int2(slots.slots(inTable: table).map(Int64.init))
      sql += " AND r.slot = ANY(\(sql.bind(slots))::int2[])"
    }
    audience.writeMembers(to: &sql)
    sql += " GROUP BY 1, 2, 3"
    let row = try sql.statement(on: connection)
    while try row.step() {
      // A row with an unknown platform is not counted.
      guard let platform = try? PushPlatform(code: row.integer(0)) else { continue }
      let count = Int(row.integer(3))
      if row.integer(1) != 0 {
        counts.native[platform, default: 0] += count
      } else {
        counts.templates[.init(platform: platform, name: row.text(2)), default: 0] += count
      }
    }
    return (counts, audience.only != nil)
  }
}
