package import Foundation

/// What a store keeps for direct, scheduled and repeated sends; a part of ``HubStore``.
package protocol SendStore: Sendable {
  /// Keeps a notification with its targets, or recognises it as a repeat, in one transaction.
  func accept(_ submission: Submission) async throws -> Acceptance
  /// The next targets of a direct send after a number; at most `limit`. Their registration is
  /// their number, from 1.
  func directTargets(
    of id: NotificationID, hub: Hub.ID, after: RegistrationID, limit: Int
  ) async throws -> TargetPage
  /// Up to `limit` members of an audience, drawn at random; none is marked as a duplicate.
  func sample(_ query: AudienceQuery, limit: Int) async throws -> TargetPage

  /// When the next scheduled notification is due.
  func nextSchedule() async throws -> Date?
  /// Turns scheduled notifications that are due into accepted ones, the longest overdue first:
  /// they are `Enqueued`, and start at `now`.
  /// - Returns: At most `limit` of them.
  func releaseSchedules(asOf now: Date, limit: Int) async throws -> FoundNotifications
  /// Ends a notification that still waits for its time.
  /// - Returns: `false` when there is none of that id, or its time has come.
  func cancelSchedule(_ id: NotificationID, hub: Hub.ID, at: Date) async throws -> Bool

  /// What clients call registrations; those that have gone are left out.
  func registrationNames(
    _ numbers: [RegistrationID], hub: Hub.ID
  ) async throws -> [RegistrationID: String]
}

extension SendStore {
  /// Keeps a notification that goes to an audience; from here on it survives anything.
  package func accept(_ record: NotificationRecord) async throws {
    _ = try await accept(Submission(record: record))
  }
}
