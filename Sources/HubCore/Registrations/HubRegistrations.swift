import Foundation
package import NotificationHubs

/// Registrations that clients write themselves (docs/protocol/rest.md, section 3).
package struct HubRegistrations: HubSubject {
  package let service: HubService

  /// Creates a new registration, even for a device that has one already (docs/protocol/rest.md,
  /// section 3.4).
  ///
  /// - Parameter body: An Atom document in any of the forms of docs/protocol/rest.md, section 3.2.
  /// - Throws: 400 with the first fault; nothing is written in this case.
  package func create(
    hub: Hub, body: [UInt8]
  ) async throws(HubFailure) -> StoredRegistration {
    let registration = try await reading(body) {
      try Self.decoded(body)
    }
    return try await create(hub: hub, registration)
  }

  /// As ``create(hub:body:)``, for a parsed description.
  package func create(
    hub: Hub, _ registration: Registration
  ) async throws(HubFailure) -> StoredRegistration {
    let now = clock.now()
    let draft = try Self.draft(registration, hub: hub, at: now)
    try limits.checkRetired(draft.platform)
    return try await answering {
      try await store.createRegistration(draft, hub: hub.id, at: now)
    }
  }

  /// An id for a registration that the caller will write (docs/protocol/rest.md, section 3.5).
  package func reserveID(hub: Hub) async throws(HubFailure) -> String {
    try await answering { try await store.reserveRegistrationID(hub: hub.id) }
  }

  /// Replaces a registration, or creates it (docs/protocol/rest.md, section 3.6).
  ///
  /// - Parameters:
  ///   - id: The id from the path, decoded.
  ///   - condition: The condition of `If-Match`; without one a missing registration is created.
  /// - Throws: 400 with the first fault, 404 when it must exist and does not, 412 when its etag
  ///   differs.
  package func put(
    hub: Hub, id: String, condition: ETagCondition, body: [UInt8]
  ) async throws(HubFailure) -> StoredRegistration {
    let registration = try await reading(body) {
      try Self.decoded(body)
    }
    return try await put(hub: hub, id: id, condition: condition, registration)
  }

  /// As ``put(hub:id:condition:body:)``, for a parsed description.
  package func put(
    hub: Hub, id: String, condition: ETagCondition, _ registration: Registration
  ) async throws(HubFailure) -> StoredRegistration {
    let now = clock.now()
    let draft = try Self.draft(registration, hub: hub, at: now)
    try limits.checkRetired(draft.platform)
    guard Self.isUsable(id) else {
      throw HubFailure(
        status: 400,
        message: "A registration id has 1 to \(Self.maximumIDLength) characters, none of them a "
          + "control character or a backslash; '.' and '..' are not allowed.")
    }
    return try await written {
      try await store.putRegistration(id, draft, hub: hub.id, condition: condition, at: now)
    }
  }

  /// - Throws: 404 without a text.
  package func get(
    hub: Hub, id: String
  ) async throws(HubFailure) -> StoredRegistration {
    let now = clock.now()
    let found = try await answering {
      try await store.registration(id, hub: hub.id, asOf: now)
    }
    guard let found else { throw .noRegistration }
    return found
  }

  /// Deletes a registration (docs/protocol/rest.md, section 3.8).
  ///
  /// - Throws: 404, 412 when its etag differs.
  package func delete(
    hub: Hub, id: String, condition: ETagCondition
  ) async throws(HubFailure) {
    let now = clock.now()
    _ = try await written {
      try await store.deleteRegistration(id, hub: hub.id, condition: condition, at: now)
    }
  }

  /// One page of a list (docs/protocol/rest.md, section 3.9).
  ///
  /// - Parameter after: The number of the last registration of the previous page; 0 at the
  ///   beginning.
  /// - Throws: 400 for a malformed tag that no registration has. The name of an installation's
  ///   template is also a tag, whatever its characters, so that the grammar alone cannot decide.
  package func list(
    hub: Hub, _ query: RegistrationQuery, after: RegistrationID, limit: Int
  ) async throws(HubFailure) -> RegistrationPage {
    let now = clock.now()
    let page = try await answering {
      try await store.registrations(query, hub: hub.id, asOf: now, after: after, limit: limit)
    }
    dispatcher.note(page.unreadable, hub: hub.id)
    if case .tag(let tag) = query, !tag.isValid, after == 0, page.registrations.isEmpty,
      !page.hasMore
    {
      throw HubFailure(status: 400, message: Tag.invalid(tag.rawValue).message)
    }
    return page
  }

  // MARK: Checks

  /// Maximum length of an id that a client can choose, in UTF-16 code units.
  private static let maximumIDLength = 260

  private static func isUsable(_ id: String) -> Bool {
    (1...maximumIDLength).contains(id.utf16.count) && id.isPathSegment
      && id.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
  }

  private static func decoded(_ body: [UInt8]) throws(HubFailure) -> Registration {
    do { return try Registration.decodeRequest(body) } catch {
      throw HubFailure(status: 400, message: error.message)
    }
  }

  private static func draft(
    _ registration: Registration, hub: Hub, at now: Date
  ) throws(HubFailure) -> RegistrationDraft {
    let valid: Registration
    do { valid = try registration.validated() } catch {
      throw HubFailure(status: 400, message: error.message)
    }
    if let template = valid.template {
      let faults = template.hubFaults(on: valid.platform, named: "template")
      if !faults.isEmpty {
        throw HubFailure(status: 400, message: faults.joined(separator: "\r\n"))
      }
    }
    // Whole milliseconds, as stores keep them: the reply to a write equals that to a later read.
    let expiresAt = hub.registrationTTL.map {
      Date(timeIntervalSince1970: ((now.timeIntervalSince1970 + $0) * 1000).rounded(.down) / 1000)
    }
    return RegistrationDraft(valid, expiresAt: expiresAt)
  }

  private func written(
    _ write: () async throws -> RegistrationWrite
  ) async throws(HubFailure) -> StoredRegistration {
    switch try await answering(write) {
    case .done(let stored): return stored
    case .missing: throw .noRegistration
    case .stale: throw .staleRegistration
    }
  }
}

extension HubService {
  package var registrations: HubRegistrations { HubRegistrations(service: self) }
}

extension HubFailure {
  /// 404 with an empty message, as recorded: there is no such registration.
  package static let noRegistration = HubFailure(status: 404, message: "")
  /// 412: the registration was written by another client.
  package static let staleRegistration = HubFailure(
    status: 412,
    message: "The ETag is not that of the registration any more. Read it and try again")
}
