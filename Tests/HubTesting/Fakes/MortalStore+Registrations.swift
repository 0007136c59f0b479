package import Foundation
package import HubCore
package import NotificationHubs

extension MortalStore {
  package func reserveRegistrationID(hub: Hub.ID) async throws -> String {
    try await ask { try await $0.reserveRegistrationID(hub: hub) }
  }
  package func createRegistration(
    _ draft: RegistrationDraft, hub: Hub.ID, at: Date
  ) async throws -> StoredRegistration {
    try await ask { try await $0.createRegistration(draft, hub: hub, at: at) }
  }
  package func putRegistration(
    _ id: String, _ draft: RegistrationDraft, hub: Hub.ID, condition: ETagCondition, at: Date
  ) async throws -> RegistrationWrite {
    try await ask {
      try await $0.putRegistration(id, draft, hub: hub, condition: condition, at: at)
    }
  }
  package func deleteRegistration(
    _ id: String, hub: Hub.ID, condition: ETagCondition, at: Date
  ) async throws -> RegistrationWrite {
    try await ask {
      try await $0.deleteRegistration(id, hub: hub, condition: condition, at: at)
    }
  }
  package func registration(
    _ id: String, hub: Hub.ID, asOf: Date
  ) async throws -> StoredRegistration? {
    try await ask { try await $0.registration(id, hub: hub, asOf: asOf) }
  }
  package func registrations(
    _ query: RegistrationQuery, hub: Hub.ID, asOf: Date, after: RegistrationID, limit: Int
  ) async throws -> RegistrationPage {
    try await ask {
      try await $0.registrations(query, hub: hub, asOf: asOf, after: after, limit: limit)
    }
  }
}
