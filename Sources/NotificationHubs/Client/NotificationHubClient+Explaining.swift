import Foundation

/// Details about notifications that Belfry offers beyond telemetry.
extension NotificationHubClient {
  /// The hub's notifications, newest first, loaded page by page. Belfry only; needs the Send right.
  ///
  /// ```swift
  /// for try await sent in client.notifications(.init(states: [.processing])) { … }
  /// ```
  public func notifications(
    _ query: NotificationQuery = NotificationQuery()
  ) -> PagedList<NotificationSummary> {
    notifications(.listNotifications, query)
  }

  /// The scheduled notifications that are still waiting, soonest first, loaded page by page. Belfry
  /// only; needs the Send right.
  ///
  /// - Parameter query: Its time range applies to the scheduled times.
  public func scheduledNotifications(
    _ query: NotificationQuery = NotificationQuery()
  ) -> PagedList<NotificationSummary> {
    notifications(.listScheduled, query)
  }

  /// - Parameter passing: Receives the number of notifications that the search of a page could not
  ///   look at, because their text is not kept.
  package func notifications(
    _ operation: HubOperation, _ query: NotificationQuery,
    passing: @escaping @Sendable (Int) -> Void = { _ in }
  ) -> PagedList<NotificationSummary> {
    PagedList(items: query.items) { items in
      let reply = try await perform(operation, query: items)
      return try (
        reply.read { (body) throws(WireFormatError) in
          let list = try NotificationList.decode(body)
          passing(list.unsearched)
          return list.notifications
        },
        reply.header(WireName.continuationToken)
      )
    }
  }

  /// The outcomes of a notification device by device, loaded page by page. The server keeps only
  /// failures unless configured otherwise. Belfry only.
  ///
  /// ```swift
  /// for try await device in client.devices(of: id, .init(outcome: .expiredChannel)) { … }
  /// ```
  public func devices(
    of notificationID: String, _ query: DeviceOutcomeQuery = DeviceOutcomeQuery()
  ) -> PagedList<DeviceOutcome> {
    PagedList(items: query.items) { items in
      let reply = try await perform(
        .listDeviceOutcomes, notificationID, query: items)
      return try (
        reply.read { (body) throws(WireFormatError) in try DeviceOutcomeList.decode(body) },
        reply.header(WireName.continuationToken)
      )
    }
  }

  /// Explains why an installation did or did not get a notification. Belfry only; needs the Manage
  /// right.
  public func explanation(
    of notificationID: String, installation: String
  ) async throws -> NotificationExplanation {
    try await explanation(
      of: notificationID,
      URLQueryItem(name: DeviceOutcomeList.Parameter.installation, value: installation))
  }

  /// Explains why a registration did or did not get a notification. Belfry only; needs the Manage
  /// right.
  public func explanation(
    of notificationID: String, registration: String
  ) async throws -> NotificationExplanation {
    try await explanation(
      of: notificationID,
      URLQueryItem(name: DeviceOutcomeList.Parameter.registration, value: registration))
  }

  private func explanation(
    of id: String, _ device: URLQueryItem
  ) async throws -> NotificationExplanation {
    let reply = try await perform(.explainNotification, id, query: [device])
    return try reply.read { (body) throws(WireFormatError) in
      try NotificationExplanation(json: body)
    }
  }

  /// Returns the progress of a notification, with the number of devices it goes to. Belfry only.
  public func progress(of notificationID: String) async throws -> NotificationProgress {
    let reply = try await perform(.getProgress, notificationID)
    return try reply.read { (body) throws(WireFormatError) in
      try NotificationProgress(json: body)
    }
  }

  /// Computes the effects of a send without sending: audience, payloads, templates that would fail,
  /// duration. Belfry only: a hub without this preview would send, so the client first checks that
  /// the hub is Belfry, and throws otherwise.
  ///
  /// - Parameter audience: `nil` for every device of the hub.
  public func preview(
    _ notification: PushNotification, to audience: TagExpression? = nil
  ) async throws -> SendPreview {
    var headers = headers(notification, nil)
    headers[WireName.tags] = audience?.description
    return try await preview(headers, notification, flags: [WireName.dryRun])
  }

  /// Computes the effects of a send to one device; otherwise the same as ``preview(_:to:)``.
  public func previewDirect(
    _ notification: PushNotification, to device: PushChannel
  ) async throws -> SendPreview {
    var headers = headers(notification, nil)
    headers[WireName.deviceHandle] = device.handle
    if case .subscription(_, let p256dh, let auth) = device {
      headers[WireName.browserP256DH] = p256dh
      headers[WireName.browserAuth] = auth
    }
    return try await preview(headers, notification, flags: [WireName.direct, WireName.dryRun])
  }

  private func preview(
    _ headers: [String: String], _ notification: PushNotification, flags: [String]
  ) async throws -> SendPreview {
    // Only Belfry counts audiences; another service would ignore the flag and send.
    do { _ = try await count(of: .installation("dry-run")) } catch let error as NotificationHubError
      where [.notFound, .badRequest, .unexpectedReply].contains(error.kind)
    {
      throw NotificationHubError(
        kind: .badRequest, status: error.status,
        detail: "this hub has no dry run, and would send; nothing was sent",
        trackingID: error.trackingID)
    }
    let reply = try await perform(
      .send, query: flags.map { URLQueryItem(name: $0, value: nil) },
      headers: headers, body: notification.body)
    return try reply.read { (body) throws(WireFormatError) in try SendPreview(json: body) }
  }
}
