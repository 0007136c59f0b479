package import Foundation
package import HubCore

extension MortalStore {
  package func accept(_ submission: Submission) async throws -> Acceptance {
    try await ask { try await $0.accept(submission) }
  }
  package func directTargets(
    of id: NotificationID, hub: Hub.ID, after: RegistrationID, limit: Int
  ) async throws -> TargetPage {
    try await ask { try await $0.directTargets(of: id, hub: hub, after: after, limit: limit) }
  }
  package func sample(_ query: AudienceQuery, limit: Int) async throws -> TargetPage {
    try await ask { try await $0.sample(query, limit: limit) }
  }
  package func nextSchedule() async throws -> Date? {
    try await ask { try await $0.nextSchedule() }
  }
  package func releaseSchedules(asOf now: Date, limit: Int) async throws -> FoundNotifications {
    try await ask { try await $0.releaseSchedules(asOf: now, limit: limit) }
  }
  package func cancelSchedule(
    _ id: NotificationID, hub: Hub.ID, at: Date
  ) async throws -> Bool {
    try await ask { try await $0.cancelSchedule(id, hub: hub, at: at) }
  }
  package func registrationNames(
    _ numbers: [RegistrationID], hub: Hub.ID
  ) async throws -> [RegistrationID: String] {
    try await ask { try await $0.registrationNames(numbers, hub: hub) }
  }

  package func outcomes(
    of id: NotificationID, hub: Hub.ID, _ filter: OutcomeFilter, after: RegistrationID, limit: Int
  ) async throws -> OutcomePage {
    try await ask {
      try await $0.outcomes(of: id, hub: hub, filter, after: after, limit: limit)
    }
  }
  package func retry(
    of id: NotificationID, hub: Hub.ID, registration: RegistrationID
  ) async throws -> Checkpoint.Retry? {
    try await ask { try await $0.retry(of: id, hub: hub, registration: registration) }
  }
  package func clearOutcomes(before: Date, keeping maximum: Int) async throws -> Bool {
    try await ask { try await $0.clearOutcomes(before: before, keeping: maximum) }
  }
}
