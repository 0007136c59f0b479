package import Foundation
package import HubCore
package import NotificationHubs

extension SQLiteHubStore {
  package func reserveRegistrationID(hub: Hub.ID) async throws -> String {
    let coding = coding
    return try await write { session in
      try session.requireHub(hub)
      let number = try session.nextRegistration()
      // The number counts as given out once the row that says so is written.
      try session.state.write(to: session.connection)
      return coding.id(of: number, hub: hub)
    }
  }

  package func createRegistration(
    _ draft: RegistrationDraft, hub: Hub.ID, at: Date
  ) async throws -> StoredRegistration {
    let coding = coding
    let new = WriteSession.ClientRegistration(draft, hub: hub, at: at)
    return try await write { try $0.create(new, coding: coding) }
  }

  package func putRegistration(
    _ id: String, _ draft: RegistrationDraft, hub: Hub.ID, condition: ETagCondition, at: Date
  ) async throws -> RegistrationWrite {
    let coding = coding
    let new = WriteSession.ClientRegistration(draft, hub: hub, at: at)
    return try await write { try $0.put(id, new, condition: condition, coding: coding) }
  }

  package func deleteRegistration(
    _ id: String, hub: Hub.ID, condition: ETagCondition, at: Date
  ) async throws -> RegistrationWrite {
    let coding = coding
    return try await write { session in
      guard try session.hasHub(hub) else { return .missing }
      return try session.deleteRegistration(
        id, hub: hub, condition: condition, at: at, coding: coding)
    }
  }

  package func registration(
    _ id: String, hub: Hub.ID, asOf: Date
  ) async throws -> StoredRegistration? {
    let coding = coding
    return try await read { session in
      let reader = RegistrationReader(
        connection: session.connection, templates: session.templates, coding: coding)
      guard try session.hasHub(hub), let found = try reader.registration(id, hub: hub),
        !found.isOver(at: asOf)
      else {
        return nil
      }
      return found.stored
    }
  }

  package func registrations(
    _ query: RegistrationQuery, hub: Hub.ID, asOf: Date, after: RegistrationID, limit: Int
  ) async throws -> RegistrationPage {
    let coding = coding
    return try await read { session in
      guard try session.hasHub(hub) else { return RegistrationPage() }
      return try session.registrations(
        query, hub: hub, asOf: asOf, after: after, limit: limit, coding: coding)
    }
  }
}
