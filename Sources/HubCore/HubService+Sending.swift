extension HubService {
  /// Accepts a send to a tag expression, or to everyone (spec `rest-api.md` 5.3). When this
  /// returns the notification is durable, and its delivery has begun.
  ///
  /// - Parameter headers: All header fields of the request, names in any letter case.
  /// - Returns: The record; its id goes into the `Location` of the reply.
  /// - Throws: ``HubFailure``: 400 or 413 for what is wrong with the request, 404 when the hub is
  ///   gone, 503 when the store cannot take it.
  package func send(
    hub: Hub, headers: some Sequence<(name: String, value: String)>, body: [UInt8]
  ) async throws -> NotificationRecord {
    let request = try NotificationRequest(headers: SendHeaders(headers), body: body)
    return try await send(request, hub: hub)
  }

  /// Accepts a send that has been checked already, as from the command line.
  package func send(
    _ request: NotificationRequest, hub: Hub
  ) async throws -> NotificationRecord {
    let now = clock.now()
    let record = NotificationRecord(
      id: NotificationID(at: now), hub: hub.id, request: request, state: .enqueued,
      enqueuedAt: now)
    try await answering { try await store.accept(record) }
    await dispatcher.submit(record)
    return record
  }
}
