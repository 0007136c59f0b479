package import NotificationHubs

extension HubService {
  /// What has become of a notification so far (spec `rest-api.md` 5.8).
  ///
  /// - Returns: Without ``NotificationTelemetry/location``, which depends on the request's address.
  /// - Throws: ``HubFailure``: 404 for an id that this hub does not know, 503 when the store cannot
  ///   answer.
  package func telemetry(hub: Hub, id: NotificationID) async throws -> NotificationTelemetry {
    let record = try await answering { try await store.notification(id, hub: hub.id) }
    guard let record else {
      throw HubFailure(status: 404, message: "Notification not found")
    }
    return NotificationTelemetry(record)
  }
}
