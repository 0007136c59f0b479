import Foundation
import HubCore
import NotificationHubs
import SQLDatabase

extension SQLConnection {
  func notificationNumber(_ id: NotificationID, hub: Hub.ID) throws -> Int64? {
    let row = try statement("SELECT id FROM notification WHERE hub = ?1 AND public_id = ?2")
    try row.bind(hub, at: 1)
    try row.bind(id.rawValue, at: 2)
    return try row.step() ? row.integer(0) : nil
  }

  /// Notifications with their counts, oldest first.
  /// - Throws: ``StoreError/corrupt(_:)`` when one cannot be read.
  func notifications(
    where condition: String, _ first: Int64?, _ second: String?
  ) throws -> [NotificationRecord] {
    let found = try findNotifications(where: condition, first, second)
    if let lost = found.unreadable.first { throw StoreError.corrupt(lost.reason) }
    return found.records
  }

  /// As ``notifications(where:_:_:)``, with those that cannot be read apart.
  func findNotifications(
    where condition: String, _ first: Int64?, _ second: String?
  ) throws -> FoundNotifications {
    let row = try statement(
      """
      SELECT id, hub, public_id, format, body, tags, expression, headers, expiry, state,
        enqueued_at, started_at, ended_at, position, is_audience_read, is_direct,
        due_at, kept, kept_cleared, last_registration
      FROM notification WHERE \(condition) ORDER BY id
      """)
    if let first { try row.bind(first, at: 1) }
    if let second { try row.bind(second, at: 2) }
    var found = FoundNotifications()
    while try row.step() {
      do {
        found.records.append(try record(row))
      } catch StoreError.corrupt(let reason) {
        found.unreadable.append(
          UnreadableNotification(
            id: NotificationID(rawValue: row.text(2)), hub: row.integer(1), reason: reason))
      }
    }
    return found
  }

  private func record(_ row: borrowing Statement) throws -> NotificationRecord {
    guard let state = NotificationState(rawValue: row.text(9)) else {
      throw StoreError.corrupt("a notification has an unknown state")
    }
    var record = NotificationRecord(
      id: NotificationID(rawValue: row.text(2)), hub: row.integer(1), request: try request(row),
      state: state, enqueuedAt: Date(milliseconds: row.integer(10)),
      scheduledFor: row.optionalInteger(16).map(Date.init(milliseconds:)),
      startedAt: row.optionalInteger(11).map(Date.init(milliseconds:)),
      endedAt: row.optionalInteger(12).map(Date.init(milliseconds:)), cursor: row.integer(13),
      isAudienceRead: row.integer(14) != 0, counts: try counts(of: row.integer(0)))
    record.keeping = row.optionalInteger(17).flatMap(OutcomeKeeping.init(code:))
    record.hasClearedOutcomes = row.integer(18) != 0
    record.lastRegistration = row.optionalInteger(19)
    return record
  }

  private func request(_ row: borrowing Statement) throws -> NotificationRequest {
    let format = row.integer(3)
    var headers = ByteReader(row.bytes(7))
    var request = NotificationRequest(
      format: format == 0 ? .template : .native(try PushPlatform(code: format)),
      body: row.bytes(4), tags: row.optionalText(5), headers: try headers.words(),
      expiry: row.optionalInteger(8), isDirect: row.integer(15) != 0)
    if let bytes = row.optionalBytes(6) {
      var reader = ByteReader(bytes)
      request.expression = try reader.expression()
    }
    return request
  }

  private func counts(of notification: Int64) throws -> [OutcomeKey: Int] {
    let row = try statement(
      """
      SELECT platform, is_template, outcome, total FROM notification_count
      WHERE notification = ?1
      """)
    try row.bind(notification, at: 1)
    var counts: [OutcomeKey: Int] = [:]
    while try row.step() {
      let key = OutcomeKey(
        platform: try PushPlatform(code: row.integer(0)), isTemplate: row.integer(1) != 0,
        outcome: NotificationOutcome(code: row.integer(2)))
      counts[key, default: 0] += Int(row.integer(3))
    }
    return counts
  }
}
