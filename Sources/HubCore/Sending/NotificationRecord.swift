package import Foundation
package import NotificationHubs

/// Where a notification stands (docs/protocol/rest.md, section 5.8).
package enum NotificationState: String, CaseIterable, Hashable, Sendable {
  case enqueued = "Enqueued"
  case scheduled = "Scheduled"
  case processing = "Processing"
  case completed = "Completed"
  case noTargetFound = "NoTargetFound"
  case abandoned = "Abandoned"
  case canceled = "Canceled"

  /// Nothing more will happen to it.
  package var isFinal: Bool {
    switch self {
    case .enqueued, .scheduled, .processing: false
    case .completed, .noTargetFound, .abandoned, .canceled: true
    }
  }
}

/// What targets are counted by: telemetry shows each platform apart, and template deliveries
/// apart from native ones.
package struct OutcomeKey: Hashable, Sendable {
  package let platform: PushPlatform
  package let isTemplate: Bool
  package let outcome: NotificationOutcome
  package init(platform: PushPlatform, isTemplate: Bool, outcome: NotificationOutcome) {
    self.platform = platform
    self.isTemplate = isTemplate
    self.outcome = outcome
  }
}

/// One notification with all that is known of it.
package struct NotificationRecord: Sendable {
  package let id: NotificationID
  package let hub: Hub.ID
  package let request: NotificationRequest
  package var state: NotificationState
  /// When it was accepted.
  package var enqueuedAt: Date
  /// When a scheduled notification is to be sent; `nil` for one that was sent at once.
  package var scheduledFor: Date?
  /// When its delivery began; of a scheduled one, when it was released.
  package var startedAt: Date?
  package var endedAt: Date?
  /// When its sender has called it off.
  package var abortedAt: Date?
  /// The part of its work that the record stands for, where it was claimed; cursor and
  /// ``isAudienceRead`` are those of the part.
  package var lease = WorkLease()
  /// Targets up to this number have their outcome or a retry row.
  package var cursor: RegistrationID
  /// All pages have been read; only retries are left.
  package var isAudienceRead: Bool
  package var counts: [OutcomeKey: Int]
  /// Which outcomes were kept device by device; `nil` while there are none, and for a notification
  /// that an older Belfry has delivered.
  package var keeping: OutcomeKeeping?
  /// Some of what was kept has been deleted since.
  package var hasClearedOutcomes = false
  /// The store's last registration when it was accepted: greater numbers were not there yet. `nil`
  /// when an older Belfry has accepted it.
  package var lastRegistration: RegistrationID?

  /// When the hub began to owe its delivery; its time in the hub counts from here.
  package var releasedAt: Date {
    scheduledFor == nil ? enqueuedAt : startedAt ?? enqueuedAt
  }

  package init(
    id: NotificationID, hub: Hub.ID, request: NotificationRequest, state: NotificationState,
    enqueuedAt: Date, scheduledFor: Date? = nil, startedAt: Date? = nil, endedAt: Date? = nil,
    cursor: RegistrationID = 0,
    isAudienceRead: Bool = false, counts: [OutcomeKey: Int] = [:]
  ) {
    self.id = id
    self.hub = hub
    self.request = request
    self.state = state
    self.enqueuedAt = enqueuedAt
    self.scheduledFor = scheduledFor
    self.startedAt = startedAt
    self.endedAt = endedAt
    self.cursor = cursor
    self.isAudienceRead = isAudienceRead
    self.counts = counts
  }
}

/// Notifications that a store was asked for, and those of them that it cannot read.
package struct FoundNotifications: Sendable {
  package var records: [NotificationRecord]
  package var unreadable: [UnreadableNotification]

  package init(
    _ records: [NotificationRecord] = [], unreadable: [UnreadableNotification] = []
  ) {
    self.records = records
    self.unreadable = unreadable
  }
}

/// A stored notification that makes no sense; it stays as it is, to be repaired.
package struct UnreadableNotification: Hashable, Sendable {
  package let id: NotificationID
  package let hub: Hub.ID
  package let reason: String

  package init(id: NotificationID, hub: Hub.ID, reason: String) {
    self.id = id
    self.hub = hub
    self.reason = reason
  }
}

extension FoundNotifications: RandomAccessCollection {
  package var startIndex: Int { records.startIndex }
  package var endIndex: Int { records.endIndex }
  package subscript(index: Int) -> NotificationRecord { records[index] }
}

/// The public id of one notification (docs/protocol/rest.md, section 5.3): 32 lower-case
/// hexadecimal digits, `-`, `yyyyMMddHHmmss` in UTC, `-`, a number, `-`, a number.
package struct NotificationID: RawRepresentable, Hashable, Sendable {
  package let rawValue: String
  package init(rawValue: String) { self.rawValue = rawValue }

  /// A new id: 128 random bits and the moment of acceptance. The two numbers at the end name the
  /// service's machines in the recordings; here they are random and only keep the form.
  package init(at now: Date) {
    rawValue = Self.words(at: now).joined(separator: "-")
  }

  /// A new id of a scheduled notification (docs/protocol/rest.md, section 5.6): the same words
  /// joined by `_`, and the name of a queue and a number, which are random here as well.
  package init(scheduledAt now: Date) {
    let place = Int64.random(in: 10_000_000_000_000_000...99_999_999_999_999_999)
    let queue = "QNHQueue\(Self.randomDigits())-S\(place)"
    rawValue = (Self.words(at: now) + [queue]).joined(separator: "_")
  }

  private static func words(at now: Date) -> [String] {
    [
      randomDigits(), timestamp(now), String(Int.random(in: 10_000_000...99_999_999)),
      String(Int.random(in: 0...31)),
    ]
  }

  /// 128 random bits.
  private static func randomDigits() -> String {
    var random = SystemRandomNumberGenerator()
    let halves: [UInt64] = [random.next(), random.next()]
    return halves.map { padded(String($0, radix: 16), to: 16) }.joined()
  }

  private static func timestamp(_ date: Date) -> String {
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = .gmt
    let parts = calendar.dateComponents(
      [.year, .month, .day, .hour, .minute, .second], from: date)
    let rest = [parts.month, parts.day, parts.hour, parts.minute, parts.second]
    return padded(String(parts.year ?? 0), to: 4)
      + rest.map { padded(String($0 ?? 0), to: 2) }.joined()
  }

  private static func padded(_ digits: String, to width: Int) -> String {
    String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}

extension NotificationTelemetry {
  /// What clients see of a notification (docs/protocol/rest.md, section 5.8). Outcomes that only
  /// feedback knows count as their nearest relative; ``location`` is for the caller to fill.
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
      body: String(decoding: record.request.body, as: UTF8.self), tags: record.request.tags,
      targetPlatforms: formats.sorted(), outcomes: outcomes)
  }
}

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

  /// Counts whom an unfinished notification goes to; `nil` for a direct send, whose devices the
  /// store does not count.
  private func audience(of record: NotificationRecord) async throws -> Int? {
    guard !record.request.isDirect else { return nil }
    return try await store.count(record.audience)
  }
}
