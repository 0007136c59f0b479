package import Foundation
package import HubCore
package import NotificationHubs
import SQLDatabase

extension PostgresHubStore {
  package func reserveRegistrationID(hub: Hub.ID) async throws -> String {
    try await write(as: .asked(.devices), ifUnclear: .again) { session in
      try session.requireHub(hub)
      return session.coding.id(
        of: try PostgresRegistrations(session).newRegistrationNumber(), hub: hub)
    }
  }

  package func createRegistration(
    _ draft: RegistrationDraft, hub: Hub.ID, at: Date
  ) async throws -> StoredRegistration {
    let new = ClientContent(draft, hub: hub, at: at)
    // The number is allocated first, so that a creation with an unknown outcome can be looked up.
    let number = try await engine.perform(
      .single, on: engine.writers, as: .asked(.devices), ifUnclear: .again
    ) {
      try PostgresRegistrations($0).newRegistrationNumber()
    }
    return try await write(
      as: new.label,
      ifUnclear: .look { session in
        try PostgresRegistrations(session).reader().registration(number, hub: hub)?.stored
      }
    ) { session in
      try session.lockHub(hub)
      try session.requireHub(hub)
      let id = session.coding.id(of: number, hub: hub)
      try PostgresDevices(session).lock(new.locks(id: id))
      return try PostgresRegistrations(session).insert(new, as: number, id: id, publicID: nil)
    }
  }

  package func putRegistration(
    _ id: String, _ draft: RegistrationDraft, hub: Hub.ID, condition: ETagCondition, at: Date
  ) async throws -> RegistrationWrite {
    let new = ClientContent(draft, hub: hub, at: at)
    return try await write(as: new.label) { session in
      try session.lockHub(hub)
      try session.requireHub(hub)
      return try PostgresRegistrations(session).put(id, new, condition: condition)
    }
  }

  package func deleteRegistration(
    _ id: String, hub: Hub.ID, condition: ETagCondition, at: Date
  ) async throws -> RegistrationWrite {
    try await write(as: .asked(.devices, rows: JobLabel.unknownRows)) { session in
      guard try session.hasHub(hub) else { return .missing }
      return try PostgresRegistrations(session).deleteRegistration(
        id, hub: hub, condition: condition, at: at)
    }
  }

  package func registration(
    _ id: String, hub: Hub.ID, asOf: Date
  ) async throws -> StoredRegistration? {
    try await readFreely { session in
      guard try session.hasHub(hub),
        let found = try PostgresRegistrations(session).reader().registration(id, hub: hub),
        !found.isOver(at: asOf)
      else { return nil }
      return found.stored
    }
  }

  package func registrationNames(
    _ numbers: [RegistrationID], hub: Hub.ID
  ) async throws -> [RegistrationID: String] {
    try await readFreely { session in
      let row = try session.connection.statement(
        """
        SELECT r.id, r.public_id FROM unnest(?2::int2[], ?3::int8[]) AS w (slot, id)
        JOIN registration r ON r.hub = ?1 AND r.slot = w.slot AND r.id = w.id
        """, hub, PostgresArray.int2(numbers.map { session.slots.slot(ofNumber: $0) }),
        PostgresArray.int8(numbers))
      var names: [RegistrationID: String] = [:]
      while try row.step() {
        let number = row.integer(0)
        names[number] = row.optionalText(1) ?? session.coding.id(of: number, hub: hub)
      }
      return names
    }
  }

  package func registrations(
    _ query: RegistrationQuery, hub: Hub.ID, asOf: Date, after: RegistrationID, limit: Int
  ) async throws -> RegistrationPage {
    try await read { session in
      guard try session.hasHub(hub) else { return RegistrationPage() }
      return try PostgresRegistrations(session).registrations(
        query, hub: hub, asOf: asOf, after: after, limit: limit)
    }
  }

  package func devices(
    _ filter: RegistrationFilter, hub: Hub.ID, asOf: Date, limit: Int
  ) async throws -> FoundDevices {
    try await read { session in
      guard try session.hasHub(hub) else { return FoundDevices() }
      return try PostgresRegistrations(session).devices(filter, hub: hub, asOf: asOf, limit: limit)
    }
  }
}

extension PostgresHubStore {
  package func restoreRemoved(
    _ wave: RemovalWave, hub: Hub.ID, asOf now: Date, limit: Int
  ) async throws -> DeviceRestoration {
    try await write { try PostgresRemovals($0).restore(wave, hub: hub, asOf: now, limit: limit) }
  }
}
