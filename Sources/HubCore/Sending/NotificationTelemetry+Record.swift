package import NotificationHubs

extension NotificationTelemetry {
  /// What clients see of a notification (spec `rest-api.md` 5.8). Outcomes that only feedback
  /// knows count as their nearest relative; ``location`` is for the caller to fill.
  package init(_ record: NotificationRecord) {
    var outcomes: [PushPlatform: [String: Int]] = [:]
    var formats: Set<String> = []
    for (key, count) in record.counts {
      outcomes[key.platform, default: [:]][key.outcome.inTelemetry.name, default: 0] += count
      formats.insert(key.platform.sendFormat + (key.isTemplate ? "template" : ""))
    }
    if case .native(let platform) = record.request.format { formats.insert(platform.sendFormat) }
    self.init(
      notificationID: record.id.rawValue, state: State(rawValue: record.state.rawValue),
      enqueueTime: record.enqueuedAt, startTime: record.startedAt, endTime: record.endedAt,
      dueTime: record.scheduledFor,
      body: String(decoding: record.request.body, as: UTF8.self), tags: record.request.tags,
      targetPlatforms: formats.sorted(), outcomes: outcomes)
  }
}
