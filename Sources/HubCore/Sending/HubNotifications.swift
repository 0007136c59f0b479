import Foundation
package import NotificationHubs

/// Notifications that were accepted: their telemetry, outcomes, progress and lists.
package struct HubNotifications: HubSubject {
  package let service: HubService

  /// The current outcomes of a notification (docs/protocol/rest.md, section 5.8).
  ///
  /// - Parameter isExtended: For readers of Belfry's own outcomes.
  /// - Returns: Without ``NotificationTelemetry/location``, which depends on the request's address.
  /// - Throws: ``HubFailure``: 404 for an id that this hub does not know, 503 when the store cannot
  ///   answer.
  package func telemetry(
    hub: Hub, id: NotificationID, isExtended: Bool = false
  ) async throws -> NotificationTelemetry {
    let record = try await answering { try await existing(id, hub) }
    return NotificationTelemetry(record.shown(limits), isExtended: isExtended)
  }

  /// The errors of a notification, device by device, as documents in the form of feedback
  /// (docs/protocol/rest.md, sections 5.8 and 6).
  ///
  /// - Parameter after: 0 for the first page, then ``NotificationErrors/next``.
  /// - Throws: ``HubFailure``: 404 for an id that this hub does not know, 503 when the store cannot
  ///   answer.
  package func errors(
    of id: NotificationID, hub: Hub, after: RegistrationID, limit: Int
  ) async throws -> NotificationErrors {
    try await answering {
      _ = try await existing(id, hub)
      let page = try await store.outcomes(
        of: id, hub: hub.id, .errors, after: after, limit: limit)
      let feedback = page.outcomes.map { target in
        PnsFeedback(
          feedbackTime: target.at,
          notificationSystemError: target.failure.outcome.inTelemetry.name,
          platform: target.platform?.sendFormat ?? "", pnsHandle: target.handle?.firstLine ?? "",
          registrationID: target.registrationID,
          installationID: target.installationID, notificationID: id.rawValue)
      }
      return NotificationErrors(feedback: feedback, next: page.next)
    }
  }

  /// - Throws: 404 for an id that this hub does not know.
  private func existing(_ id: NotificationID, _ hub: Hub) async throws -> NotificationRecord {
    guard let record = try await store.notification(id, hub: hub.id) else {
      throw HubFailure.noNotification
    }
    return record
  }

  /// The stored outcomes of a notification device by device.
  ///
  /// - Parameters:
  ///   - after: 0 for the first page, then ``DeviceOutcomePage/next``.
  /// - Throws: ``HubFailure``: 404 for an id that this hub does not know, 503 when the store cannot
  ///   answer.
  package func deviceOutcomes(
    of id: NotificationID, hub: Hub, _ filter: OutcomeFilter, after: RegistrationID, limit: Int
  ) async throws(HubFailure) -> DeviceOutcomePage {
    try await answering {
      _ = try await existing(id, hub)
      let page = try await store.outcomes(
        of: id, hub: hub.id, filter, after: after, limit: limit)
      return DeviceOutcomePage(devices: page.outcomes.map(DeviceOutcome.init), next: page.next)
    }
  }

  /// The progress of a notification.
  ///
  /// - Throws: ``HubFailure``: 404 for an id that this hub does not know, 503 when the store cannot
  ///   answer.
  package func progress(
    of id: NotificationID, hub: Hub
  ) async throws(HubFailure) -> NotificationProgress {
    try await answering {
      let record = try await existing(id, hub)
      var outcomes: [String: Int] = [:]
      for (key, count) in record.counts {
        outcomes[key.outcome.inExtendedTelemetry.name, default: 0] += count
      }
      let done = outcomes.values.reduce(0, +)
      let isFinal = record.state.isFinal
      let retrying = isFinal ? 0 : try await store.waitingRetries(id, hub: hub.id)
      let audience = isFinal ? done : try await audience(of: record)
      return NotificationProgress(
        notificationID: id.rawValue, state: .init(rawValue: record.state.rawValue),
        audience: audience.map { max($0, done + retrying) }, done: done, retrying: retrying,
        outcomes: outcomes,
        startTime: record.state == .scheduled ? nil : record.releasedAt,
        endTime: record.endedAt, dueTime: record.scheduledFor)
    }
  }

  /// Counts the audience of an unfinished notification; `nil` for a direct send, whose devices the
  /// store does not count.
  private func audience(of record: NotificationRecord) async throws -> Int? {
    guard !record.request.isDirect else { return nil }
    return try await store.count(record.audience)
  }

  /// The progress of a notification, with each change; see ``ProgressFeeds``.
  /// - Throws: 404 for an id that this hub does not know, 429 when too many watch.
  package func progressUpdates(
    of id: NotificationID, hub: Hub
  ) async throws(HubFailure) -> AsyncStream<NotificationProgress> {
    try await service.progressFeeds.follow(id, hub: hub.id) { () async throws(HubFailure) in
      try await progress(of: id, hub: hub)
    }
  }

  /// The next notifications of a list; read in slices like
  /// ``HubInstallations/list(hub:_:after:limit:)``.
  ///
  /// - Throws: 400 for a tag that none can have.
  package func list(
    hub: Hub, _ filter: NotificationFilter, in order: NotificationOrder,
    after: ListPosition?, limit: Int
  ) async throws(HubFailure) -> NotificationPage {
    if let tag = filter.tag, !tag.isValid {
      throw HubFailure(status: 400, message: Tag.invalid(tag.rawValue).message)
    }
    var filter = filter
    filter.hidesText = limits.hidesText
    return try await answering { [filter] in
      var page = NotificationPage(next: after)
      for _ in 0..<HubService.stretches {
        // Nobody waits for what a client that has left would find.
        try Task.checkCancellation()
        let more = try await store.notifications(
          filter, in: order, hub: hub.id, after: page.next,
          limit: limit - page.notifications.count)
        page.notifications += more.notifications
        page.unsearched += more.unsearched
        page.next = more.next
        guard page.next != nil, page.notifications.count < limit else { break }
      }
      return page
    }
  }
}

extension NotificationRecord {
  /// The record without its text where the operator lets nobody read that.
  func shown(_ limits: HubLimits) -> NotificationRecord {
    guard limits.hidesText else { return self }
    var shown = self
    shown.request.body = []
    shown.hasClearedText = true
    return shown
  }
}

extension HubService {
  package var notifications: HubNotifications { HubNotifications(service: self) }
}

/// A page of a notification's errors.
package struct NotificationErrors: Sendable {
  package let feedback: [PnsFeedback]
  /// The number after which the next page starts; `nil` when this was the last.
  package let next: RegistrationID?
}

extension NotificationTelemetry {
  /// Whether a device was not reached for a reason other than a duplicate handle.
  package var hasErrors: Bool {
    let fine = [NotificationOutcome.success.name, NotificationOutcome.skipped.name]
    return outcomes.values.contains { $0.contains { !fine.contains($0.key) && $0.value > 0 } }
  }
}

/// A page of a notification's devices.
package struct DeviceOutcomePage: Sendable {
  package let devices: [DeviceOutcome]
  /// The number after which the next page starts; `nil` when this was the last.
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

extension NotificationTelemetry {
  /// The telemetry of a notification in the form for clients (docs/protocol/rest.md, section 5.8).
  /// Outcomes that only feedback distinguishes are counted as the closest other one; the caller
  /// sets ``location``.
  /// - Parameter isExtended: For readers of Belfry's own outcomes.
  package init(_ record: NotificationRecord, isExtended: Bool = false) {
    var outcomes: [PushPlatform: [String: Int]] = [:]
    var formats: Set<String> = []
    for (key, count) in record.counts {
      let outcome = isExtended ? key.outcome.inExtendedTelemetry : key.outcome.inTelemetry
      outcomes[key.platform, default: [:]][outcome.name, default: 0] += count
      formats.insert(key.platform.sendFormat + (key.isTemplate ? "template" : ""))
    }
    if case .native(let platform) = record.request.format { formats.insert(platform.sendFormat) }
    self.init(
      notificationID: record.id.rawValue, state: State(rawValue: record.state.rawValue),
      enqueueTime: record.enqueuedAt, startTime: record.startedAt, endTime: record.endedAt,
      dueTime: record.scheduledFor,
      body: record.hasClearedText ? nil : String(decoding: record.request.body, as: UTF8.self),
      tags: record.request.tags,
      targetPlatforms: formats.sorted(), outcomes: outcomes)
    read(
      record.hasClearedText ? nil : record.request.body, format: record.request.format.word)
  }
}

extension HubFailure {
  /// 404: there is no such notification.
  static let noNotification = HubFailure(status: 404, message: "Notification not found")
}
