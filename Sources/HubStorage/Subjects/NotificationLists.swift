import Foundation
package import HubCore
import NotificationHubs
import SQLDatabase

extension SubjectStore {
  package func notifications(
    _ filter: NotificationFilter, in order: NotificationOrder, hub: Hub.ID,
    after: ListPosition?, limit: Int
  ) async throws -> NotificationPage {
    try await reading(#function) {
      try $0.notifications(filter, in: order, hub: hub, after: after, limit: limit)
    }
  }
}

/// Maximum number of notifications read for one page without their payloads.
private let notificationStretch = 5_000

extension SubjectReading {
  /// The next notifications of a list. Times limit the range of the index that is read; state, kind,
  /// tag and search are compared row by row.
  func notifications(
    _ filter: NotificationFilter, in order: NotificationOrder, hub: Hub.ID,
    after: ListPosition?, limit: Int
  ) throws -> NotificationPage {
    guard try hasHub(hub) else { return NotificationPage() }
    let row = try sql.statement(filter.listing(in: order))
    var from = filter.from?.milliseconds ?? .min
    var until = filter.until.map { $0.milliseconds - 1 } ?? .max
    // Until the first page has begun, every number at the end of the range is still to come.
    var number: Int64 = order == .newestFirst ? .max : .min
    switch (order, after) {
    case (.newestFirst, let after?) where after.time <= until:
      (until, number) = (after.time, after.number)
    case (.scheduled, let after?) where after.time >= from:
      (from, number) = (after.time, after.number)
    default: break
    }
    // One more than needed tells whether there are more.
    let isSearch = filter.search != nil
    let stretch = isSearch ? SearchBudget.rows : notificationStretch
    try row.bind(hub, from, until, number, Int64(stretch + 1))
    var page = NotificationPage()
    var numbers: [Int64] = []
    var last: ListPosition?
    var seen = 0
    var budget = SearchBudget()
    while try row.step() {
      if page.notifications.count >= limit || seen == stretch || budget.isSpent {
        page.next = last
        break
      }
      seen += 1
      let number = row.integer(0)
      last = ListPosition(
        time: row.integer(order == .newestFirst ? 6 : 10), number: number)
      let expression = try row.optionalBytes(4).map { bytes in
        var reader = ByteReader(bytes)
        return try reader.expression()
      }
      var summary = summary(row, expression)
      guard filter.concerns(summary, expression) else { continue }
      if isSearch {
        let body = filter.hidesText ? nil : row.optionalBytes(11)
        budget.take(bytes: body?.count ?? 0)
        summary.read(body)
      }
      guard filter.finds(summary) else {
        if summary.textState == .off { page.unsearched += 1 }
        continue
      }
      page.notifications.append(summary)
      numbers.append(number)
    }
    for (index, number) in numbers.enumerated() {
      page.notifications[index].outcomes = try NotificationTable(sql).outcomes(of: number)
      if !isSearch {
        let body = filter.hidesText ? nil : try NotificationTable(sql).body(of: number)
        page.notifications[index].read(body)
      }
    }
    return page
  }

  private func summary(
    _ row: borrowing Statement, _ expression: TagExpression?
  ) -> NotificationSummary {
    func date(_ column: Int32) -> Date? {
      row.optionalInteger(column).map(Date.init(milliseconds:))
    }
    let due = date(10)
    let platform = row.integer(2)
    // One unreadable row must not hide the others.
    let format: NotificationRequest.Format? =
      platform == 0 ? .template : (try? PushPlatform(code: platform)).map { .native($0) }
    return NotificationSummary(
      notificationID: row.text(1), state: .init(rawValue: row.text(5)),
      kind: .init(
        isScheduled: due != nil, isDirect: row.integer(9) != 0, expression: expression),
      format: format?.word ?? "", tags: row.optionalText(3), enqueueTime: date(6),
      startTime: date(7), endTime: date(8), dueTime: due)
  }
}

extension NotificationFilter {
  func listing(in order: NotificationOrder) -> String {
    let columns = """
      SELECT id, public_id, format, tags, expression, state, enqueued_at, started_at, ended_at,
        is_direct, due_at\(search == nil || hidesText ? "" : ", body") FROM notification WHERE hub = ?1
      """
    // The conditions on state and end match those of the indexes letter for letter.
    switch order {
    case .newestFirst:
      let isUnfinished = states.map { $0.allSatisfy { !$0.isFinal } } ?? false
      return columns + (isUnfinished ? " AND ended_at IS NULL" : "") + """
         AND enqueued_at >= ?2 AND enqueued_at <= ?3 AND (enqueued_at < ?3 OR id < ?4)
        ORDER BY enqueued_at DESC, id DESC LIMIT ?5
        """
    case .scheduled:
      return columns + """
         AND state = 'Scheduled'
        AND due_at >= ?2 AND due_at <= ?3 AND (due_at > ?2 OR id > ?4)
        ORDER BY due_at, id LIMIT ?5
        """
    }
  }
}

extension NotificationTable {
  fileprivate func body(of notification: Int64) throws -> [UInt8]? {
    let row = try connection.statement(
      "SELECT body FROM notification WHERE id = ?1", notification)
    return try row.step() ? row.optionalBytes(0) : nil
  }

  /// Number of targets of a notification by outcome, named as in telemetry.
  fileprivate func outcomes(of notification: Int64) throws -> [String: Int] {
    let row = try connection.statement(
      "SELECT outcome, total FROM notification_count WHERE notification = ?1", notification)
    var outcomes: [String: Int] = [:]
    while try row.step() {
      let outcome = NotificationOutcome(code: row.integer(0)).inExtendedTelemetry
      outcomes[outcome.name, default: 0] += Int(row.integer(1))
    }
    return outcomes
  }
}
