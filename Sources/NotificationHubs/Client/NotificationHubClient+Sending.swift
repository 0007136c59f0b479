public import Foundation
import Wire

extension NotificationHubClient {
  /// Sends to every device whose tags satisfy the expression.
  ///
  /// - Parameter idempotencyKey: A key of your choice; Belfry gives a second send with the same key
  ///   the same reply as the first, and delivers once. Azure ignores it.
  @discardableResult
  public func send(
    _ notification: PushNotification, to audience: TagExpression, idempotencyKey: String? = nil
  ) async throws -> SendReceipt {
    var headers = headers(notification, idempotencyKey)
    headers[WireName.tags] = audience.description
    return try await post(.send, headers, notification.body)
  }

  /// Sends to every device of the hub.
  /// - Parameter idempotencyKey: See ``send(_:to:idempotencyKey:)``.
  @discardableResult
  public func broadcast(
    _ notification: PushNotification, idempotencyKey: String? = nil
  ) async throws -> SendReceipt {
    try await post(.send, headers(notification, idempotencyKey), notification.body)
  }

  /// Sends to one device, registered or not.
  ///
  /// - Parameters:
  ///   - notification: A native notification.
  ///   - idempotencyKey: See ``send(_:to:idempotencyKey:)``.
  @discardableResult
  public func sendDirect(
    _ notification: PushNotification, to device: PushChannel, idempotencyKey: String? = nil
  ) async throws -> SendReceipt {
    var headers = headers(notification, idempotencyKey)
    headers[WireName.deviceHandle] = device.handle
    if case .subscription(_, let p256dh, let auth) = device {
      headers[WireName.browserP256DH] = p256dh
      headers[WireName.browserAuth] = auth
    }
    return try await post(.send, headers, notification.body, flag: WireName.direct)
  }

  /// Sends to several devices of one platform, registered or not.
  ///
  /// - Parameters:
  ///   - notification: A native notification.
  ///   - devices: At least one. Azure accepts 1000, Belfry 10 000 unless it runs in strict mode; a
  ///     hub with a lower limit rejects the whole request as a bad request and sends nothing.
  ///   - idempotencyKey: See ``send(_:to:idempotencyKey:)``.
  @discardableResult
  public func sendDirect(
    _ notification: PushNotification, to devices: [PushChannel], idempotencyKey: String? = nil
  ) async throws -> SendReceipt {
    guard !devices.isEmpty else {
      throw NotificationHubError(kind: .badRequest, detail: "a batch has at least one device")
    }
    let batch = DirectBatch(
      notification: Array(notification.body), contentType: notification.contentType,
      devices: devices)
    let boundary = "batch-\(UUID().uuidString)"
    var headers = headers(notification, idempotencyKey)
    headers[WireName.contentType] = "multipart/mixed; boundary=\"\(boundary)\""
    return try await post(
      .sendBatch, headers, Data(batch.encoded(boundary: boundary)),
      flag: WireName.direct)
  }

  /// Schedules a send for a time in the future, on Azure at most seven days ahead.
  ///
  /// - Parameters:
  ///   - time: The time to send, rounded down to a whole second.
  ///   - audience: `nil` for every device of the hub.
  ///   - idempotencyKey: See ``send(_:to:idempotencyKey:)``.
  @discardableResult
  public func schedule(
    _ notification: PushNotification, at time: Date, to audience: TagExpression? = nil,
    idempotencyKey: String? = nil
  ) async throws -> SendReceipt {
    var headers = headers(notification, idempotencyKey)
    headers[WireName.tags] = audience?.description
    headers[WireName.scheduleTime] = WireDate.seconds(time)
    return try await post(.schedule, headers, notification.body)
  }

  /// Cancels a scheduled notification.
  ///
  /// - Throws: ``NotificationHubError`` of kind `notFound` if it has already been sent.
  public func cancel(scheduled notificationID: String) async throws {
    _ = try await perform(.cancelScheduled, notificationID)
  }

  /// Aborts a notification in progress, or cancels a scheduled one: nothing more of it is sent, and
  /// the remaining devices are counted as `Aborted`. Idempotent. Belfry only.
  ///
  /// - Throws: ``NotificationHubError`` of kind `conflict` if it has already ended.
  @discardableResult
  public func abort(_ notificationID: String) async throws -> NotificationAbort {
    let reply = try await perform(.abortNotification, notificationID)
    return try reply.read { (body) throws(WireFormatError) in try NotificationAbort(json: body) }
  }

  /// Sends to at most ten devices and waits for the outcomes.
  /// - Parameter audience: `nil` for any device of the hub.
  public func testSend(
    _ notification: PushNotification, to audience: TagExpression? = nil
  ) async throws -> NotificationOutcomeReport {
    var headers = headers(notification, nil)
    headers[WireName.tags] = audience?.description
    let reply = try await perform(
      .send, query: [URLQueryItem(name: WireName.test, value: nil)],
      headers: headers, body: notification.body)
    return try reply.read { (body) throws(WireFormatError) in
      try NotificationOutcomeReport(xml: body)
    }
  }

  /// Returns the current telemetry of a notification.
  public func telemetry(of notificationID: String) async throws -> NotificationTelemetry {
    let reply = try await perform(.getNotification, notificationID)
    return try reply.read { (body) throws(WireFormatError) in
      try NotificationTelemetry(xml: body)
    }
  }

  /// Waits for the final telemetry of a notification, or until the time limit.
  ///
  /// The protocol has no events, so the client polls: first after 20 ms, later at most once a
  /// second.
  ///
  /// - Parameters:
  ///   - limit: The maximum sum of the pauses between polls.
  ///   - progress: Called with each telemetry that is not final yet.
  /// - Returns: The last telemetry read; its state says whether it is final.
  public func finalTelemetry(
    of notificationID: String, within limit: Duration = .seconds(30),
    progress: (NotificationTelemetry) -> Void = { _ in }
  ) async throws -> NotificationTelemetry {
    var pause = Duration.milliseconds(20)
    var waited = Duration.zero
    while true {
      let telemetry = try await telemetry(of: notificationID)
      guard !telemetry.state.isFinal, waited < limit else { return telemetry }
      progress(telemetry)
      try await connection.retry.sleep(pause)
      waited += pause
      pause = min(pause * 2, .seconds(1))
    }
  }

  /// Waits for the final telemetry of what was sent, or until the time limit.
  ///
  /// - Throws: ``NotificationHubError`` of kind `unexpectedReply` if the hub gave the notification
  ///   no id, as on Azure's lower tiers.
  public func finalTelemetry(
    of receipt: SendReceipt, within limit: Duration = .seconds(30),
    progress: (NotificationTelemetry) -> Void = { _ in }
  ) async throws -> NotificationTelemetry {
    guard let id = receipt.notificationID else {
      throw NotificationHubError(
        kind: .unexpectedReply,
        detail: "the hub gave the notification no id, so it cannot be asked what became of it",
        trackingID: receipt.trackingID)
    }
    return try await finalTelemetry(of: id, within: limit, progress: progress)
  }

  /// Counts the registrations that an expression reaches, without sending. A phone with a native
  /// registration and two templates counts as three. Belfry only.
  /// - Parameter audience: `nil` for every registration of the hub.
  public func count(of audience: TagExpression? = nil) async throws -> AudienceCount {
    let query = audience.map { [URLQueryItem(name: WireName.audienceTags, value: $0.description)] }
    let reply = try await perform(.countAudience, query: query ?? [])
    return try reply.read { (body) throws(WireFormatError) in try AudienceCount(json: body) }
  }

  func headers(
    _ notification: PushNotification, _ idempotencyKey: String?
  ) -> [String: String] {
    var headers = notification.headers
    headers[WireName.contentType] = notification.contentType
    headers[WireName.format] = notification.format.wireWord
    if let idempotencyKey { headers[WireName.idempotencyKey] = idempotencyKey }
    return headers
  }

  private func post(
    _ operation: HubOperation, _ headers: [String: String], _ body: Data, flag: String? = nil
  ) async throws -> SendReceipt {
    let query = flag.map { [URLQueryItem(name: $0, value: nil)] }
    return SendReceipt(
      reply: try await perform(operation, query: query ?? [], headers: headers, body: body))
  }
}
