package import Foundation
package import HubCore
import NotificationHubs
import SQLDatabase

/// Outcomes of a notification for single devices.
extension PostgresHubStore {
  package func outcomes(
    of id: NotificationID, hub: Hub.ID, _ filter: OutcomeFilter, after: RegistrationID, limit: Int
  ) async throws -> OutcomePage {
    try await read {
      try PostgresOutcomes($0).outcomes(of: id, hub: hub, filter, after: after, limit: limit)
    }
  }

  package func clearOutcomes(before: Date, keeping maximum: Int) async throws -> Bool {
    try await clearing { try PostgresOutcomes($0).clearOutcomes(before: before, keeping: maximum) }
  }
}
