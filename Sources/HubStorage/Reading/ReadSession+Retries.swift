import Foundation
import HubCore
import NotificationHubs
import SQLDatabase

extension ReadSession {
  /// See ``HubStore/nextRetry(of:)``.
  func nextRetry(of lane: LaneKey) throws -> Date? {
    let row = try connection.statement(
      """
      SELECT due FROM retry JOIN notification ON notification.id = retry.notification
      WHERE retry.hub = ?1 AND platform = ?2 AND ended_at IS NULL ORDER BY due LIMIT 1
      """)
    try row.bind(lane.hub, at: 1)
    try row.bind(lane.platform.code, at: 2)
    guard try row.step(), let due = row.optionalInteger(0) else { return nil }
    return Date(milliseconds: due)
  }

  /// See ``HubStore/retryLanes()``.
  func retryLanes() throws -> [LaneKey: Date] {
    let row = try connection.statement(
      """
      SELECT retry.hub, platform, MIN(due) FROM retry
        JOIN notification ON notification.id = retry.notification
      WHERE ended_at IS NULL GROUP BY retry.hub, platform
      """)
    var lanes: [LaneKey: Date] = [:]
    while try row.step() {
      // A row of no platform that this build knows must not keep the others from being delivered;
      // its notification's window ends it.
      guard let platform = try? PushPlatform(code: row.integer(1)) else { continue }
      let lane = LaneKey(hub: row.integer(0), platform: platform)
      lanes[lane] = Date(milliseconds: row.integer(2))
    }
    return lanes
  }

  /// See ``HubStore/dueRetries(of:asOf:limit:)``.
  func dueRetries(of lane: LaneKey, asOf now: Date, limit: Int) throws -> [DueRetries] {
    let row = try connection.statement(
      """
      SELECT notification, registration, attempts, public_id, retry.hub, is_direct
      FROM retry JOIN notification ON notification.id = retry.notification
      WHERE retry.hub = ?3 AND platform = ?4 AND due <= ?1 AND ended_at IS NULL
      ORDER BY due LIMIT ?2
      """)
    try row.bind(now.milliseconds, at: 1)
    try row.bind(Int64(max(0, limit)), at: 2)
    try row.bind(lane.hub, at: 3)
    try row.bind(lane.platform.code, at: 4)
    return try targets(of: try groups(row))
  }

  /// See ``HubStore/retries(of:notification:limit:)``.
  func retries(
    of lane: LaneKey, notification: NotificationID, limit: Int
  ) throws -> [DueRetries] {
    guard try hasHub(lane.hub) else { throw StoreError.noHub }
    guard let number = try connection.notificationNumber(notification, hub: lane.hub) else {
      return []
    }
    let row = try connection.statement(
      """
      SELECT notification, registration, attempts, public_id, retry.hub, is_direct
      FROM retry JOIN notification ON notification.id = retry.notification
      WHERE notification = ?1 AND retry.hub = ?3 AND platform = ?4 AND ended_at IS NULL
      ORDER BY registration LIMIT ?2
      """)
    try row.bind(number, at: 1)
    try row.bind(Int64(max(0, limit)), at: 2)
    try row.bind(lane.hub, at: 3)
    try row.bind(lane.platform.code, at: 4)
    return try targets(of: try groups(row))
  }

  /// Retries of one notification, by its number.
  private struct Group {
    let id: NotificationID
    let hub: Hub.ID
    let isDirect: Bool
    var attempts: [RegistrationID: Int] = [:]
  }

  private func groups(_ row: borrowing Statement) throws -> [Int64: Group] {
    var groups: [Int64: Group] = [:]
    while try row.step() {
      let number = row.integer(0)
      var group =
        groups[number]
        ?? Group(
          id: NotificationID(rawValue: row.text(3)), hub: row.integer(4),
          isDirect: row.integer(5) != 0)
      group.attempts[row.integer(1)] = Int(row.integer(2))
      groups[number] = group
    }
    return groups
  }

  private func targets(of groups: [Int64: Group]) throws -> [DueRetries] {
    try groups.sorted { $0.key < $1.key }.map { _, group in
      let numbers = group.attempts.keys.sorted()
      let page =
        group.isDirect
        ? try directTargets(of: group.id, hub: group.hub, numbers: numbers)
        : try page(of: numbers, isNative: nil)
      let live = Set(page.targets.map(\.registration) + page.unreadable.map(\.registration))
      return DueRetries(
        notification: group.id, hub: group.hub, page: page, attempts: group.attempts,
        gone: group.attempts.keys.filter { !live.contains($0) }.sorted())
    }
  }
}
