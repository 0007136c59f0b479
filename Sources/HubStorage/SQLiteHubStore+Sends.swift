package import Foundation
package import HubCore
import NotificationHubs
import SQLDatabase

extension SQLiteHubStore {
  package func accept(_ submission: Submission) async throws -> Acceptance {
    try await write { session in
      try session.requireHub(submission.record.hub)
      return try session.accept(submission)
    }
  }

  package func directTargets(
    of id: NotificationID, hub: Hub.ID, after: RegistrationID, limit: Int
  ) async throws -> TargetPage {
    try await read { try $0.directTargets(of: id, hub: hub, after: after, limit: limit) }
  }

  package func sample(_ query: AudienceQuery, limit: Int) async throws -> TargetPage {
    // Not in a transaction, as `targets` is not: see `ReadSession.withBitmaps`.
    try await readers.perform { try $0.sample(query, limit: limit) }
  }

  package func nextSchedule() async throws -> Date? {
    try await read { session in
      let row = try session.connection.statement(
        "SELECT MIN(due_at) FROM notification WHERE state = 'Scheduled'")
      guard try row.step(), let due = row.optionalInteger(0) else { return nil }
      return Date(milliseconds: due)
    }
  }

  package func releaseSchedules(asOf now: Date, limit: Int) async throws -> FoundNotifications {
    try await write { try $0.releaseSchedules(asOf: now, limit: limit) }
  }

  package func cancelSchedule(
    _ id: NotificationID, hub: Hub.ID, at: Date
  ) async throws -> Bool {
    try await write { try $0.cancelSchedule(id, hub: hub, at: at) }
  }

  package func registrationNames(
    _ numbers: [RegistrationID], hub: Hub.ID
  ) async throws -> [RegistrationID: String] {
    let coding = coding
    return try await read { try $0.registrationNames(numbers, hub: hub, coding: coding) }
  }
}
