import HubCore
import NotificationHubs
import SQLDatabase
import Wire

/// The audience of a query, as a condition on the rows of `registration`, called `r`.
struct PostgresAudience {
  let query: AudienceQuery
  /// The installations that an implicit tag stands for; their rows are found by these.
  let installations: [Tag: [Int64]]
  /// The installations that everyone in the audience belongs to; `nil` when the expression does not
  /// tell.
  let only: [Int64]?

  func write(to sql: inout SQLBuilder) {
    sql += "r.hub = \(sql.bind(query.hub))"
    writeRest(to: &sql)
  }

  /// Writes everything but the hub.
  func writeRest(to sql: inout SQLBuilder) {
    switch query.kind {
    case .native(let platform):
      sql += " AND r.template IS NULL AND r.platform = \(sql.bind(platform.code))"
    case .template: sql += " AND r.template IS NOT NULL"
    }
    writeMembers(to: &sql)
  }

  /// Writes everything but the hub and the kind.
  func writeMembers(to sql: inout SQLBuilder) {
    sql += " AND (r.expires_at IS NULL OR r.expires_at > \(sql.bind(query.asOf.milliseconds)))"
    guard let expression = query.expression else { return }
    sql += " AND "
    write(expression, to: &sql)
  }

  /// Writes an expression. Its tags are bound as parameters and never become part of the SQL text.
  func write(_ expression: TagExpression, to sql: inout SQLBuilder) {
    switch expression {
    case .tag(let tag):
      if let numbers = installations[tag] {
        let list = sql.bind(PostgresArray.int8(numbers))
        sql += "(r.installation <> 0 AND r.installation = ANY(\(list)::int8[]))"
      } else {
        sql += "r.tags @> \(sql.bind(PostgresArray.text([tag.folded])))::text[]"
      }
    case .not(let inner):
      sql += "NOT ("
      write(inner, to: &sql)
      sql += ")"
    case .and(let left, let right): write(left, " AND ", right, to: &sql)
    case .or(let left, let right): write(left, " OR ", right, to: &sql)
    }
  }

  private func write(
    _ left: TagExpression, _ word: String, _ right: TagExpression, to sql: inout SQLBuilder
  ) {
    sql += "("
    write(left, to: &sql)
    sql += word
    write(right, to: &sql)
    sql += ")"
  }
}

extension TagExpression {
  /// All tags that occur in it, negated or not.
  var allTags: [Tag] {
    switch self {
    case .tag(let tag): [tag]
    case .not(let inner): inner.allTags
    case .and(let left, let right), .or(let left, let right): left.allTags + right.allTags
    }
  }
}
