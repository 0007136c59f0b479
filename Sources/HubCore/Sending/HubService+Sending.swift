import Foundation
package import NotificationHubs

extension HubService {
  /// Accepts a send to a tag expression, or to everyone (docs/protocol/rest.md, section 5.3). When
  /// this returns the notification is durable, and its delivery has begun.
  ///
  /// - Parameters:
  ///   - headers: All header fields of the request, names in any letter case.
  ///   - activity: An entry of the activity log, stored in the transaction of the acceptance.
  /// - Returns: The record; its id goes into the `Location` of the reply. With a repeated
  ///   `Idempotency-Key`, that of the first time.
  /// - Throws: ``HubFailure``: 400 or 413 for an invalid request, 404 when the hub is gone, 422 for
  ///   an `Idempotency-Key` of another request, 503 when the store cannot accept it.
  package func send(
    hub: Hub, headers: some Sequence<(name: String, value: String)>, body: [UInt8],
    activity: ActivityNote? = nil
  ) async throws -> NotificationRecord {
    let headers = SendHeaders(headers)
    let request = try await read(headers, body)
    let now = clock.now()
    let record = NotificationRecord(
      id: NotificationID(at: now, random: random), hub: hub.id, request: request, state: .enqueued,
      enqueuedAt: now)
    return try await accept(
      Submission(record: record), headers: headers, kind: "send", activity: activity)
  }

  /// Accepts a send to one device that it names (docs/protocol/rest.md, section 5.4); as
  /// ``send(hub:headers:body:)``.
  package func sendDirect(
    hub: Hub, headers: some Sequence<(name: String, value: String)>, body: [UInt8],
    activity: ActivityNote? = nil
  ) async throws -> NotificationRecord {
    let headers = SendHeaders(headers)
    let request = try await read(headers, body, isDirect: true)
    let target = try DirectTarget.target(of: headers, platform: try request.directPlatform)
    let submission = direct(request, to: [target], hub: hub)
    return try await accept(submission, headers: headers, kind: "direct", activity: activity)
  }

  /// Accepts a send at a later time (docs/protocol/rest.md, section 5.6); one whose time is past is
  /// sent at once.
  ///
  /// - Returns: As ``send(hub:headers:body:)``, with an id of the scheduled form.
  /// - Throws: Also 400 for a time that is missing, unreadable or too far ahead.
  package func schedule(
    hub: Hub, headers: some Sequence<(name: String, value: String)>, body: [UInt8],
    activity: ActivityNote? = nil
  ) async throws -> NotificationRecord {
    let headers = SendHeaders(headers)
    let request = try await read(headers, body, isScheduled: true)
    let now = clock.now()
    let due = try ScheduleTime.read(headers[SendHeaderName.scheduleTime], now: now, limits: limits)
    let record = NotificationRecord(
      id: NotificationID(scheduledAt: now, random: random), hub: hub.id, request: request,
      state: due > now ? .scheduled : .enqueued, enqueuedAt: now, scheduledFor: due)
    return try await accept(
      Submission(record: record), headers: headers, kind: "schedule", activity: activity)
  }

  /// Cancels a scheduled notification (docs/protocol/rest.md, section 5.6).
  ///
  /// - Throws: ``HubFailure``: 404 when there is none of that id or its time has come.
  package func cancelScheduled(hub: Hub, id: NotificationID) async throws {
    let isCancelled = try await answering {
      try await store.cancelSchedule(id, hub: hub.id, at: clock.now())
    }
    guard isCancelled else {
      throw HubFailure(
        status: 404, message: "The scheduled notification does not exist, or was sent already")
    }
  }

  /// Maximum time for which an abort waits until the unsent targets are counted.
  private static let abortWait = Duration.seconds(2)

  /// Aborts a notification that is being delivered, or not due yet; the abort is stored before
  /// anything else. Pushes that have been handed to push services are delivered, nothing else.
  ///
  /// - Returns: The notification once it has ended or, if that takes longer, in its current state.
  /// - Throws: ``HubFailure``: 404 for an id that this hub does not know, 409 when it has ended.
  package func abort(hub: Hub, id: NotificationID) async throws -> NotificationAbort {
    let verdict = try await answering { try await store.abort(id, hub: hub.id, at: clock.now()) }
    switch verdict {
    case nil: throw HubFailure.noNotification
    case .finished(let state)?:
      throw HubFailure(
        status: 409,
        message: "The notification has ended already, as \(state.rawValue); there is nothing left "
          + "to abort")
    case .aborting?: await dispatcher.abort(id)
    case .aborted?, .cancelled?: break
    }
    let record = try await answering {
      try await dispatcher.record(of: id, hub: hub.id, finishedWithin: Self.abortWait)
    }
    guard let record else { throw HubFailure.noNotification }
    return NotificationAbort(
      notificationID: id.rawValue, state: .init(rawValue: record.state.rawValue),
      aborted: record.counts.reduce(0) { $0 + ($1.key.outcome == .aborted ? $1.value : 0) })
  }

  // MARK: Accepting

  /// The notification that a request describes.
  func read(
    _ headers: SendHeaders, _ body: [UInt8], isDirect: Bool = false, isScheduled: Bool = false
  ) async throws -> NotificationRequest {
    try await reading(body) {
      try NotificationRequest(
        headers: headers, body: body, limits: self.limits, isDirect: isDirect,
        isScheduled: isScheduled)
    }
  }

  func direct(_ request: NotificationRequest, to targets: [DirectTarget], hub: Hub) -> Submission {
    let now = clock.now()
    let record = NotificationRecord(
      id: NotificationID(at: now, random: random), hub: hub.id, request: request, state: .enqueued,
      enqueuedAt: now)
    return Submission(record: record, targets: targets)
  }

  func accept(
    _ submission: Submission, headers: SendHeaders, kind: String, activity: ActivityNote?
  ) async throws -> NotificationRecord {
    var submission = submission
    if submission.record.state == .enqueued { submission.record.steadyRelease = clock.steady() }
    let record = submission.record
    submission.idempotency = try IdempotencyClaim(
      headers: headers, kind: kind, submission: submission,
      expiresAt: record.enqueuedAt.addingTimeInterval(limits.idempotencyLifetime))
    activity?.refine(object: record.id.rawValue)
    submission.activity = activity?.entry(status: 201)
    let complete = submission
    switch try await answering({ try await store.accept(complete) }) {
    case .accepted:
      activity?.settle()
      await dispatcher.submit(record)
      return record
    case .repeated(let id):
      activity?.settle()
      let earlier = try await answering { try await store.notification(id, hub: record.hub) }
      guard let earlier else {
        throw HubFailure(status: 404, message: "The notification of this key has been erased")
      }
      return earlier
    case .keyInUse:
      throw HubFailure(
        status: 422,
        message: "The Idempotency-Key was used for another request; every request needs a key "
          + "of its own")
    }
  }
}

extension NotificationRequest {
  /// The platform of a direct send, which is native.
  var directPlatform: PushPlatform {
    get throws {
      guard case .native(let platform) = format else {
        throw HubFailure(status: 400, message: "A direct send needs a native format")
      }
      return platform
    }
  }
}

extension HubService {
  /// Accepts one notification for many devices that the body names (docs/protocol/rest.md,
  /// section 5.5); as ``send(hub:headers:body:)``.
  ///
  /// - Parameters:
  ///   - headers: The headers of the request; the content type determines how the body is split.
  ///   - body: A multipart body, with the parts `notification` and `devices`.
  package func sendBatch(
    hub: Hub, headers: some Sequence<(name: String, value: String)>, body: [UInt8],
    activity: ActivityNote? = nil
  ) async throws -> NotificationRecord {
    let headers = SendHeaders(headers)
    let (request, targets) = try await reading(body) {
      let batch: DirectBatch
      do throws(WireFormatError) {
        batch = try DirectBatch(
          body, contentType: headers[SendHeaderName.contentType] ?? "",
          maximum: self.limits.devicesPerBatch)
      } catch {
        throw HubFailure(status: 400, message: error.message)
      }
      let request = try NotificationRequest(
        headers: headers.with(contentType: batch.contentType), body: batch.notification,
        limits: self.limits, isDirect: true)
      return (request, try DirectTarget.targets(for: batch.devices, try request.directPlatform))
    }
    let submission = direct(request, to: targets, hub: hub)
    return try await accept(submission, headers: headers, kind: "batch", activity: activity)
  }
}
