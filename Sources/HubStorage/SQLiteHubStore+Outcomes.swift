package import Foundation
package import HubCore

extension SQLiteHubStore {
  package func outcomes(
    of id: NotificationID, hub: Hub.ID, _ filter: OutcomeFilter, after: RegistrationID, limit: Int
  ) async throws -> OutcomePage {
    let coding = coding
    return try await read {
      try $0.outcomes(of: id, hub: hub, filter, after: after, limit: limit, coding: coding)
    }
  }

  package func retry(
    of id: NotificationID, hub: Hub.ID, registration: RegistrationID
  ) async throws -> Checkpoint.Retry? {
    try await read { try $0.retry(of: id, hub: hub, registration: registration) }
  }

  package func clearOutcomes(before: Date, keeping maximum: Int) async throws -> Bool {
    try await write { try $0.clearOutcomes(before: before, keeping: maximum) }
  }
}
