package import Foundation
package import HubCore
import NotificationHubs
import SQLDatabase

extension SQLiteHubStore {
  package func notification(
    _ id: NotificationID, hub: Hub.ID
  ) async throws -> NotificationRecord? {
    try await read { session in
      guard try session.hasHub(hub) else { return nil }
      return try session.connection.notifications(
        where: "hub = ?1 AND public_id = ?2", hub, id.rawValue
      ).first
    }
  }

  package func unfinishedNotifications() async throws -> FoundNotifications {
    try await read { session in
      try session.connection.findNotifications(
        where: "ended_at IS NULL AND state <> 'Scheduled'", nil, nil)
    }
  }

  package func checkpoint(_ checkpoint: Checkpoint) async throws {
    try await write { try $0.apply(checkpoint) }
  }

  package func dueRetries(
    of lane: LaneKey, asOf now: Date, limit: Int
  ) async throws -> [DueRetries] {
    try await read { try $0.dueRetries(of: lane, asOf: now, limit: limit) }
  }

  package func nextRetry(of lane: LaneKey) async throws -> Date? {
    try await read { try $0.nextRetry(of: lane) }
  }

  package func retryLanes() async throws -> [LaneKey: Date] {
    try await read { try $0.retryLanes() }
  }

  package func retries(
    of lane: LaneKey, notification: NotificationID, limit: Int
  ) async throws -> [DueRetries] {
    try await read { try $0.retries(of: lane, notification: notification, limit: limit) }
  }

  package func waitingRetries(_ id: NotificationID, hub: Hub.ID) async throws -> Int {
    try await read { session in
      guard let number = try session.connection.notificationNumber(id, hub: hub) else { return 0 }
      let row = try session.connection.statement(
        "SELECT COUNT(*) FROM retry WHERE notification = ?1")
      try row.bind(number, at: 1)
      return try row.step() ? Int(row.integer(0)) : 0
    }
  }

  package func failures(
    _ id: NotificationID, hub: Hub.ID, after: RegistrationID, limit: Int
  ) async throws -> [Checkpoint.Failure] {
    try await read { session in
      guard let number = try session.connection.notificationNumber(id, hub: hub) else { return [] }
      let row = try session.connection.statement(
        """
        SELECT registration, outcome, status, reason FROM notification_failure
        WHERE notification = ?1 AND registration > ?2 ORDER BY registration LIMIT ?3
        """)
      try row.bind(number, at: 1)
      try row.bind(after, at: 2)
      try row.bind(Int64(max(0, limit)), at: 3)
      var failures: [Checkpoint.Failure] = []
      while try row.step() {
        failures.append(
          Checkpoint.Failure(
            registration: row.integer(0),
            outcome: NotificationOutcome(code: row.integer(1)),
            status: UInt16(clamping: row.integer(2)), reason: row.optionalText(3)))
      }
      return failures
    }
  }
}

extension NotificationOutcome {
  /// The outcome of a column; one that a newer build has written counts as unknown.
  init(code: Int64) {
    self = UInt8(exactly: code).flatMap(NotificationOutcome.init(rawValue:)) ?? .unknownError
  }
}
