package import Foundation
package import HubCore
package import NotificationHubs
import SQLDatabase

extension PostgresHubStore {
  package func targets(
    _ query: AudienceQuery, after: RegistrationID, limit: Int
  ) async throws -> TargetPage {
    try await readFreely(as: .delivery(of: query.hub)) {
      try PostgresTargets($0).targets(query, after: after, limit: limit)
    }
  }

  package func count(_ query: AudienceQuery) async throws -> Int {
    try await readFreely { session in
      guard try session.hasHub(query.hub),
        let audience = try PostgresTargets(session).audience(query)
      else {
        return 0
      }
      var sql = SQLBuilder()
      sql += "SELECT COUNT(*) FROM registration r WHERE "
      audience.write(to: &sql)
      let row = try sql.statement(on: session.connection)
      return try row.step() ? Int(row.integer(0)) : 0
    }
  }

  package func sample(_ query: AudienceQuery, limit: Int) async throws -> TargetPage {
    try await readFreely { session in
      guard limit > 0, try session.hasHub(query.hub),
        let audience = try PostgresTargets(session).audience(query)
      else { return TargetPage() }
      let sql = try PostgresTargets(session).sampleStatement(
        audience, limit: min(limit, PostgresTargets.pageLimit))
      var builder = PostgresPageBuilder(templates: session.shared.templates, revision: .oldest)
      let row = try sql.statement(on: session.connection)
      while try row.step() { try builder.append(row) }
      return builder.page
    }
  }
}

extension PostgresHubStore {
  /// Counts table by table, so that other reads get their turn. When the time is up, extrapolates
  /// from the tables counted so far: devices are distributed over the slots, and slots over the
  /// tables, by the hash of their id.
  package func counts(
    of expression: TagExpression?, hub: Hub.ID, asOf: Date
  ) async throws -> AudienceCounts {
    let shared = engine.shared
    let start = ContinuousClock.now
    // Any kind will do, because it is left out of the condition.
    let query = AudienceQuery(hub: hub, kind: .template, expression: expression, asOf: asOf)
    var counts = AudienceCounts()
    let tables = shared.slots.tableCount
    for table in 0..<tables {
      let (found, isWhole) = try await readFreely {
        try PostgresCounting($0).counts(query, table: table)
      }
      counts.add(found)
      if isWhole { break }
      let counted = table + 1
      if counted < tables, ContinuousClock.now - start >= shared.options.countTime {
        counts.extrapolate(from: counted, to: tables)
        break
      }
    }
    return counts
  }
}
