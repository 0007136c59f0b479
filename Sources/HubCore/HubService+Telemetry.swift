import Foundation
package import NotificationHubs

extension HubService {
  /// What has become of a notification so far (docs/protocol/rest.md, section 5.8).
  ///
  /// - Parameter isExtended: For readers of Belfry's own outcomes.
  /// - Returns: Without ``NotificationTelemetry/location``, which depends on the request's address.
  /// - Throws: ``HubFailure``: 404 for an id that this hub does not know, 503 when the store cannot
  ///   answer.
  package func telemetry(
    hub: Hub, id: NotificationID, isExtended: Bool = false
  ) async throws -> NotificationTelemetry {
    let record = try await answering { try await store.notification(id, hub: hub.id) }
    guard let record else {
      throw HubFailure(status: 404, message: "Notification not found")
    }
    return NotificationTelemetry(record, isExtended: isExtended)
  }

  /// What went wrong with a notification, device by device, as the documents of feedback
  /// (docs/protocol/rest.md, sections 5.8 and 6).
  ///
  /// - Parameter after: 0 for the first page, then ``NotificationErrors/next``.
  /// - Throws: ``HubFailure``: 404 for an id that this hub does not know, 503 when the store cannot
  ///   answer.
  package func errors(
    of id: NotificationID, hub: Hub, after: RegistrationID, limit: Int
  ) async throws -> NotificationErrors {
    try await answering {
      guard let record = try await store.notification(id, hub: hub.id) else {
        throw HubFailure(status: 404, message: "Notification not found")
      }
      let page = try await store.outcomes(
        of: id, hub: hub.id, .errors, after: after, limit: limit)
      // When it failed was not kept by older versions.
      let time = record.endedAt ?? clock.now()
      let feedback = page.outcomes.map { target in
        PnsFeedback(
          feedbackTime: target.at ?? time,
          notificationSystemError: target.failure.outcome.inTelemetry.name,
          platform: target.platform?.sendFormat ?? "", pnsHandle: target.handle?.firstLine ?? "",
          registrationID: target.registrationID,
          installationID: target.installationID, notificationID: id.rawValue)
      }
      return NotificationErrors(feedback: feedback, next: page.next)
    }
  }
}

/// A page of a notification's errors.
package struct NotificationErrors: Sendable {
  package let feedback: [PnsFeedback]
  /// After which the next page starts; `nil` when this was the last.
  package let next: RegistrationID?
}

extension NotificationTelemetry {
  /// Whether a device was not reached for another reason than that another one has its handle.
  package var hasErrors: Bool {
    let fine = [NotificationOutcome.success.name, NotificationOutcome.skipped.name]
    return outcomes.values.contains { $0.contains { !fine.contains($0.key) && $0.value > 0 } }
  }
}

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
