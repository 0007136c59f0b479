package import NotificationHubs

extension HubService {
  /// How far a notification has come.
  ///
  /// - Throws: ``HubFailure``: 404 for an id that this hub does not know, 503 when the store cannot
  ///   answer.
  package func progress(
    of id: NotificationID, hub: Hub
  ) async throws(HubFailure) -> NotificationProgress {
    try await answering {
      guard let record = try await store.notification(id, hub: hub.id) else {
        throw HubFailure(status: 404, message: "Notification not found")
      }
      var outcomes: [String: Int] = [:]
      for (key, count) in record.counts {
        outcomes[key.outcome.inTelemetry.name, default: 0] += count
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

  /// Counts whom an unfinished notification goes to; `nil` for a direct send, whose devices the
  /// store does not count.
  private func audience(of record: NotificationRecord) async throws -> Int? {
    guard !record.request.isDirect else { return nil }
    return try await store.count(record.audience)
  }
}
