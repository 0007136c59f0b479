import Foundation
package import NotificationHubs

/// The device that an explanation is about.
package enum ExplainedDevice: Hashable, Sendable {
  /// An installation's id.
  case installation(String)
  /// The id of a registration for clients.
  case registration(String)
}

extension HubService {
  /// Maximum number of a device's registrations that are examined.
  private static let candidateLimit = 100

  /// Explains why a device did or did not get a notification, from the data stored now.
  ///
  /// - Throws: ``HubFailure``: 404 for a notification that this hub does not know, 503 when the
  ///   store cannot answer.
  package func explain(
    _ id: NotificationID, hub: Hub, device: ExplainedDevice
  ) async throws(HubFailure) -> NotificationExplanation {
    try await answering {
      guard let record = try await store.notification(id, hub: hub.id) else {
        throw HubFailure(
          status: 404,
          message: "Notification not found: this hub has never taken one of that id, or it has "
            + "been erased")
      }
      var found = ExplainedFacts(record: record.shown(limits), now: clock.now())
      found.status = await dispatcher.status()
      found.platforms = Set(try await store.credentials(hub: hub.id).map(\.platform))
      try await read(device, hub: hub, into: &found)
      return Explainer(found, device: device).explanation()
    }
  }

  private func read(
    _ device: ExplainedDevice, hub: Hub, into found: inout ExplainedFacts
  ) async throws {
    let id = found.record.id
    var filter = OutcomeFilter()
    switch device {
    case .installation(let name):
      filter.installation = name
      found.installation = try await store.installation(name, hub: hub.id)
      found.registrations = try await store.registrations(
        .tag(.installation(name)), hub: hub.id, asOf: .distantPast, after: 0,
        limit: Self.candidateLimit
      ).registrations
    case .registration(let name):
      filter.registrationID = name
      found.registrations =
        try await store.registration(
          name, hub: hub.id, asOf: .distantPast
        ).map { [$0] } ?? []
    }
    if found.record.request.isDirect {
      try await readDirect(hub: hub, into: &found)
      return
    }
    for kept in try await store.outcomes(
      of: id, hub: hub.id, filter, after: 0, limit: Self.candidateLimit
    ).outcomes { found.outcomes[kept.failure.registration] = kept }
    for registration in found.registrations {
      let number = registration.number
      found.retries[number] = try await store.retry(of: id, hub: hub.id, registration: number)
      found.confirmed[number] = try await confirmation(of: registration, hub: hub)
      if found.outcomes[number]?.failure.outcome == .skipped {
        found.twins[number] = try await twin(of: registration, found.record, hub: hub)
      }
    }
  }

  /// The time when a registration was last written, or confirmed unchanged.
  private func confirmation(of registration: StoredRegistration, hub: Hub) async throws -> Date? {
    let kind: AudienceQuery.Kind =
      registration.draft.kind == .native ? .native(registration.draft.platform) : .template
    let page = try await store.targets(
      AudienceQuery(hub: hub.id, kind: kind, expression: nil, asOf: .distantPast),
      after: registration.number - 1, limit: 1)
    guard let target = page.targets.first, target.registration == registration.number else {
      return nil
    }
    return Date(timeIntervalSince1970: Double(target.confirmedAt) / 1000)
  }

  /// The registration that received the push in place of a skipped one.
  private func twin(
    of registration: StoredRegistration, _ record: NotificationRecord, hub: Hub
  ) async throws -> StoredRegistration? {
    let text = RegistrationFilter.text(registration.draft.channel)
    guard let filter = try? RegistrationFilter(parsing: text) else { return nil }
    let same = try await store.registrations(
      .device(filter), hub: hub.id, asOf: .distantPast, after: 0, limit: Self.candidateLimit
    ).registrations
    return same.first { other in
      other.number < registration.number && other.draft.kind == .native
        && other.draft.platform == registration.draft.platform
        && record.request.expression?.matches(Set(other.draft.tags)) ?? true
    }
  }

  /// Finds the device's handle among the targets of a direct send.
  private func readDirect(hub: Hub, into found: inout ExplainedFacts) async throws {
    let id = found.record.id
    let handles = Set(found.registrations.map(\.draft.channel.handle))
    var next: RegistrationID? = 0
    while let after = next, found.directTargets.isEmpty {
      let page = try await store.directTargets(of: id, hub: hub.id, after: after, limit: 1_000)
      found.directTargets = page.targets.map { target in
        let handle = String(decoding: page.handles[target.handle], as: UTF8.self).firstLine
        return (registration: target.registration, handle: handle)
      }.filter { handles.contains($0.handle) }
      next = page.next
    }
    for target in found.directTargets {
      let number = target.registration
      let kept = try await store.outcomes(
        of: id, hub: hub.id, OutcomeFilter(), after: number - 1, limit: 1)
      if let first = kept.outcomes.first, first.failure.registration == number {
        found.outcomes[number] = first
      }
      found.retries[number] = try await store.retry(of: id, hub: hub.id, registration: number)
    }
  }
}

/// The facts that an explanation is based on.
struct ExplainedFacts {
  let record: NotificationRecord
  let now: Date
  var status = DispatchStatus()
  /// The platforms for which the hub has a credential.
  var platforms: Set<PushPlatform> = []
  var installation: Installation?
  var registrations: [StoredRegistration] = []
  /// For a direct send: the targets with the device's handle.
  var directTargets: [(registration: RegistrationID, handle: String)] = []
  var outcomes: [RegistrationID: KeptOutcome] = [:]
  var retries: [RegistrationID: Checkpoint.Retry] = [:]
  var confirmed: [RegistrationID: Date] = [:]
  var twins: [RegistrationID: StoredRegistration] = [:]
}
