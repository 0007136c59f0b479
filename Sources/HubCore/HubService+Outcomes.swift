package import NotificationHubs

extension HubService {
  /// What became of a notification device by device, as far as it is kept.
  ///
  /// - Parameters:
  ///   - after: 0 for the first page, then ``DeviceOutcomePage/next``.
  /// - Throws: ``HubFailure``: 404 for an id that this hub does not know, 503 when the store cannot
  ///   answer.
  package func deviceOutcomes(
    of id: NotificationID, hub: Hub, _ filter: OutcomeFilter, after: RegistrationID, limit: Int
  ) async throws(HubFailure) -> DeviceOutcomePage {
    try await answering {
      guard try await store.notification(id, hub: hub.id) != nil else {
        throw HubFailure(status: 404, message: "Notification not found")
      }
      let page = try await store.outcomes(
        of: id, hub: hub.id, filter, after: after, limit: limit)
      return DeviceOutcomePage(devices: page.outcomes.map(DeviceOutcome.init), next: page.next)
    }
  }
}

/// A page of a notification's devices.
package struct DeviceOutcomePage: Sendable {
  package let devices: [DeviceOutcome]
  /// After which the next page starts; `nil` when this was the last.
  package let next: RegistrationID?
}

extension DeviceOutcome {
  init(_ kept: KeptOutcome) {
    self.init(
      platform: kept.platform, registrationID: kept.registrationID,
      installationID: kept.installationID, handle: kept.handle?.firstLine,
      outcomeName: kept.failure.outcome.name, status: Int(kept.failure.status),
      reason: kept.failure.reason, attempts: kept.failure.attempts, time: kept.at)
  }
}
