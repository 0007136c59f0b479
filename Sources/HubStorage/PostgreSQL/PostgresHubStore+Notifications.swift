package import Foundation
package import HubCore
import NotificationHubs
import SQLDatabase

/// Notifications as their senders see them.
extension PostgresHubStore {
  package func accept(_ submission: Submission) async throws -> Acceptance {
    let submission = dated(submission)
    let (record, node) = (submission.record, heartbeat?.livingID)
    return try await write(
      as: submission.label,
      ifUnclear: .look { session in
        try NotificationTable(session.connection).notificationNumber(record.id, hub: record.hub).map
        { _ in .accepted }
      },
      { session in
        try session.lockHub(record.hub)
        try session.requireHub(record.hub)
        return try PostgresNotifications(session).accept(submission, at: node)
      })
  }

  package func releaseSchedules(asOf now: Date, limit: Int) async throws -> FoundNotifications {
    let (node, steady) = (heartbeat?.livingID, steadyRelease(clock.steady()))
    return try await write(as: .delivery(rows: limit), ifUnclear: .again) { session in
      try PostgresNotifications(session).releaseSchedules(
        asOf: now, steadily: steady, limit: limit, at: node)
    }
  }

  private func dated(_ submission: Submission) -> Submission {
    var dated = submission
    dated.record.steadyRelease = submission.record.steadyRelease.map(steadyRelease)
    return dated
  }

  private func steadyRelease(_ moment: Date) -> Date {
    heartbeat?.isSettled == false ? NotificationRecord.unknownRelease : moment
  }
}
