import Foundation
package import HubCore
import NotificationHubs
import SQLDatabase

/// Feedback from push services about handles.
extension SubjectStore {
  package func feedbackHours(hub: Hub.ID) async throws -> [FeedbackHour] {
    try await reading(#function) { session in
      try session.sql.rows(
        """
        SELECT hour, COUNT(*), MAX(at) FROM feedback
        WHERE hub = ?1 AND hour >= (SELECT MAX(hour) FROM feedback WHERE hub = ?1) - ?2
        GROUP BY hour ORDER BY hour
        """, hub, Int64(HandleFeedback.lifetime / 3600)
      ) { row in
        FeedbackHour(
          hour: row.integer(0), count: Int(row.integer(1)),
          modifiedAt: Date(milliseconds: row.integer(2)))
      }
    }
  }

  package func feedback(
    hub: Hub.ID, hour: Int64, after: Int64, limit: Int
  ) async throws -> [HandleFeedback] {
    let coding = coding
    return try await reading(#function) { session in
      try session.sql.rows(
        """
        SELECT id, at, outcome, platform, handle, installation, notification, registration,
          public_id, new_handle
        FROM feedback
        WHERE hub = ?1 AND hour = ?2 AND id > ?3 ORDER BY id LIMIT ?4
        """, hub, hour, after, Int64(limit)
      ) { row in
        HandleFeedback(
          number: row.integer(0), at: Date(milliseconds: row.integer(1)),
          outcome: NotificationOutcome(rawValue: UInt8(clamping: row.integer(2)))
            ?? .unknownError,
          platform: try PushPlatform(code: row.integer(3)),
          handle: String(row.text(4).prefix { $0 != "\n" }),
          registration: row.integer(7) == 0
            ? nil : row.optionalText(8) ?? coding.id(of: row.integer(7), hub: hub),
          installation: row.isNull(5) ? nil : row.text(5),
          notification: NotificationID(rawValue: row.text(6)),
          newHandle: row.optionalText(9))
      }
    }
  }
}

/// Feedback from deliveries.
struct FeedbackWriter: WritingSubject {
  let session: WriteSession

  init(_ session: WriteSession) { self.session = session }

  /// Stores feedback on handles from a page of deliveries, before the dead ones are deleted.
  /// Targets of a direct send are not registrations: their handle is the one that the send named.
  func addFeedback(_ checkpoint: Checkpoint, of notification: Int64) throws {
    let news = checkpoint.handleNews
    guard !news.isEmpty else { return }
    let row = try connection.statement(
      """
      INSERT INTO feedback
        (id, hub, hour, at, outcome, platform, handle, registration, public_id, installation,
        notification, new_handle, number)
      SELECT (SELECT COALESCE(MAX(id), 0) + 1 FROM feedback), ?1, ?2, ?3, ?4, r.platform, r.handle,
        r.id, r.public_id,
        (SELECT i.public_id FROM installation i WHERE i.id = r.installation), ?6, ?8,
        (SELECT COALESCE(MAX(number), 0) + 1 FROM feedback WHERE hub = ?1)
      FROM registration r
      WHERE r.id = ?5 AND NOT EXISTS (SELECT 1 FROM notification WHERE id = ?7 AND is_direct = 1)
      UNION ALL
      SELECT (SELECT COALESCE(MAX(id), 0) + 1 FROM feedback), ?1, ?2, ?3, ?4, n.format, t.handle,
        0, NULL, NULL, ?6, ?8,
        (SELECT COALESCE(MAX(number), 0) + 1 FROM feedback WHERE hub = ?1)
      FROM notification_target t JOIN notification n ON n.id = t.notification
      WHERE t.notification = ?7 AND t.number = ?5
      """)
    let hour = checkpoint.at.milliseconds / 3_600_000
    for item in news {
      try row.run(
        checkpoint.hub, hour, checkpoint.at.milliseconds, Int64(item.outcome.rawValue),
        item.registration, checkpoint.notification.rawValue, notification, item.newHandle)
    }
    try forgetFeedback(hub: checkpoint.hub, before: hour - Int64(HandleFeedback.lifetime / 3600))
  }

  private func forgetFeedback(hub: Hub.ID, before hour: Int64) throws {
    try execute("DELETE FROM feedback WHERE hub = ?1 AND hour < ?2", hub, hour)
    // By the hub's own numbers, which are indexed: no row that is kept is read.
    try execute(
      """
      DELETE FROM feedback WHERE hub = ?1
        AND number <= (SELECT MAX(number) FROM feedback WHERE hub = ?1) - ?2
      """, hub, Int64(HandleFeedback.limit))
  }
}
