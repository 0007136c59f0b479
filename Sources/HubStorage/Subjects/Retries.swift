package import Foundation
package import HubCore
import NotificationHubs
import SQLDatabase

/// Retries, and the targets of direct sends.
extension SubjectStore {
  package func dueRetries(
    of lane: LaneKey, asOf now: Date, limit: Int
  ) async throws -> [DueRetries] {
    let source = ownRetries
    return try await polling(#function) { session in
      try RetryReader(session).retries(
        in: source, "r.hub = ?1 AND r.platform = ?2 AND r.due <= ?3 ORDER BY r.due LIMIT ?4",
        lane.hub, lane.platform.code, now.milliseconds, Int64(max(0, limit)))
    }
  }

  package func retries(
    of lane: LaneKey, notification: NotificationID, part: Int, limit: Int
  ) async throws -> [DueRetries] {
    let source = ownRetries
    return try await polling(#function) { session in
      try session.requireHub(lane.hub)
      return try RetryReader(session).retries(
        in: source,
        """
        r.hub = ?1 AND r.platform = ?2 AND n.hub = ?1 AND n.public_id = ?3
          AND \(session.sql.dialect.retryPart) = ?4 ORDER BY r.registration LIMIT ?5
        """, lane.hub, lane.platform.code, notification.rawValue, Int64(part),
        Int64(max(0, limit)))
    }
  }

  package func nextRetry(of lane: LaneKey) async throws -> Date? {
    let source = ownRetries
    return try await polling(#function) { session in
      try session.sql.numbers(
        "SELECT r.due FROM \(source) WHERE r.hub = ?1 AND r.platform = ?2 ORDER BY r.due LIMIT 1",
        lane.hub, lane.platform.code
      ).first.map(Date.init(milliseconds:))
    }
  }

  package func retryLanes() async throws -> [LaneKey: Date] {
    let source = ownRetries
    return try await polling(#function) { session in
      let row = try session.sql.statement(
        "SELECT r.hub, r.platform, MIN(r.due) FROM \(source) GROUP BY r.hub, r.platform")
      var lanes: [LaneKey: Date] = [:]
      while try row.step() {
        // A row with a platform unknown to this build must not keep the others from being
        // delivered; it ends with its notification's delivery window.
        guard let platform = try? PushPlatform(code: row.integer(1)) else { continue }
        lanes[LaneKey(hub: row.integer(0), platform: platform)] = Date(milliseconds: row.integer(2))
      }
      return lanes
    }
  }

  package func directTargets(
    of id: NotificationID, hub: Hub.ID, after: RegistrationID, limit: Int
  ) async throws -> TargetPage {
    try await polling(#function) { session in
      guard limit > 0 else { return TargetPage() }
      var page = try RetryReader(session).directTargets(
        of: id, hub: hub, "t.number > ?3 ORDER BY t.number LIMIT ?4", after, Int64(limit) + 1)
      if page.targets.count > limit {
        page.targets.removeLast()
        page.next = page.targets.last?.registration
      }
      return page
    }
  }

  /// See ``OutcomeStore/retry(of:hub:registration:)``.
  package func retry(
    of id: NotificationID, hub: Hub.ID, registration: RegistrationID
  ) async throws -> Checkpoint.Retry? {
    try await reading(#function) { session in
      let row = try session.sql.statement(
        """
        SELECT r.attempts, r.due, r.outcome, r.status, r.reason, r.platform
        FROM retry r JOIN notification n ON n.id = r.notification
        WHERE n.hub = ?1 AND n.public_id = ?2 AND r.registration = ?3
        """, hub, id.rawValue, registration)
      guard try row.step() else { return nil }
      return Checkpoint.Retry(
        registration: registration, platform: try PushPlatform(code: row.integer(5)),
        attempts: Int(clamping: row.integer(0)), due: Date(milliseconds: row.integer(1)),
        answer: row.optionalInteger(2).map { code in
          Checkpoint.Answer(
            outcome: NotificationOutcome(code: code), status: UInt16(clamping: row.integer(3)),
            reason: row.optionalText(4))
        })
    }
  }
}

/// Targets of retries and of direct sends.
private struct RetryReader {
  let session: any TargetReading

  init(_ session: any TargetReading) { self.session = session }

  /// Retries of one part of a notification.
  private struct Group: Hashable {
    let notification: Int64
    let part: Int
    let id: NotificationID
    let hub: Hub.ID
    let isDirect: Bool
  }

  /// - Parameters:
  ///   - source: See ``SubjectStore/ownRetries``.
  ///   - condition: The condition with order and limit.
  func retries(
    in source: String, _ condition: String, _ values: any SQLValue...
  ) throws -> [DueRetries] {
    var groups: [Group: [RegistrationID: Int]] = [:]
    do {
      let row = try session.sql.statement(
        """
        SELECT r.notification, \(session.sql.dialect.retryPart), r.registration, r.attempts,
          n.public_id, r.hub, n.is_direct
        FROM \(source) WHERE \(condition)
        """, values: values)
      while try row.step() {
        let group = Group(
          notification: row.integer(0), part: Int(row.integer(1)),
          id: NotificationID(rawValue: row.text(4)), hub: row.integer(5),
          isDirect: row.integer(6) != 0)
        groups[group, default: [:]][row.integer(2)] = Int(row.integer(3))
      }
    }
    let sorted = groups.sorted {
      ($0.key.notification, $0.key.part) < ($1.key.notification, $1.key.part)
    }
    return try sorted.map { group, attempts in
      let numbers = attempts.keys.sorted()
      let page =
        group.isDirect
        ? try directTargets(of: group.id, hub: group.hub, numbers)
        : try session.targets(numbers, hub: group.hub)
      let live = Set(page.targets.map(\.registration) + page.unreadable.map(\.registration))
      return DueRetries(
        notification: group.id, part: group.part, hub: group.hub, page: page, attempts: attempts,
        gone: numbers.filter { !live.contains($0) })
    }
  }

  private func directTargets(
    of id: NotificationID, hub: Hub.ID, _ numbers: [Int64]
  ) throws -> TargetPage {
    let dialect = session.sql.dialect
    return try directTargets(
      of: id, hub: hub, "\(dialect.isOne("t.number", of: "?3")) ORDER BY t.number",
      dialect.list(numbers))
  }

  /// Targets of a direct send.
  /// - Parameters:
  ///   - condition: The condition on the rows of `notification_target`, called `t`, with their
  ///     order.
  ///   - values: The values from `?3` on.
  func directTargets(
    of id: NotificationID, hub: Hub.ID, _ condition: String, _ values: any SQLValue...
  ) throws -> TargetPage {
    let row = try session.sql.statement(
      """
      SELECT t.number, t.handle, t.is_duplicate, n.format
      FROM notification_target t JOIN notification n ON n.id = t.notification
      WHERE n.hub = ?1 AND n.public_id = ?2 AND n.is_direct = 1 AND \(condition)
      """, values: [hub, id.rawValue] + values)
    var page = TargetPage()
    while try row.step() {
      let start = page.handles.count
      row.withBytes(1) { page.handles.append(contentsOf: $0) }
      page.targets.append(
        Target(
          registration: row.integer(0), handle: start..<page.handles.count,
          platform: try PushPlatform(code: row.integer(3)), template: -1, variables: -1,
          confirmedAt: 0, isDuplicate: row.integer(2) != 0))
    }
    return page
  }
}

extension Dialect {
  /// The part of the work that a retry, called `r`, belongs to. The work of a file has one.
  fileprivate var retryPart: String { self == .postgres ? "r.part" : "0" }

  /// A condition: the number is one of a ``list(_:)``.
  fileprivate func isOne(_ number: String, of list: String) -> String {
    self == .postgres
      ? "\(number) = ANY(\(list)::int8[])" : "\(number) IN (SELECT value FROM json_each(\(list)))"
  }

  /// Numbers as one value of a statement.
  fileprivate func list(_ numbers: [Int64]) -> any SQLValue {
    self == .postgres
      ? PostgresArray.int8(numbers) : "[\(numbers.map(String.init).joined(separator: ","))]"
  }
}
