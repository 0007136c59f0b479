package import Foundation
package import HubCore
import NotificationHubs

/// Notifications as their senders see them.
extension SimulatedStore {
  package func accept(_ submission: Submission) async throws -> Acceptance {
    let (node, isSettled) = (livingID, isSettled)
    return try await write { state in
      try state.requireHub(submission.record.hub)
      var submission = submission
      if !isSettled, submission.record.steadyRelease != nil {
        submission.record.steadyRelease = NotificationRecord.unknownRelease
      }
      return state.accept(submission, at: node)
    }
  }

  package func notification(_ id: NotificationID, hub: Hub.ID) async throws -> NotificationRecord? {
    try await read { $0.notification(id, hub: hub)?.shown() }
  }

  package func notifications(
    _ filter: NotificationFilter, in order: NotificationOrder, hub: Hub.ID,
    after: ListPosition?, limit: Int
  ) async throws -> NotificationPage {
    try await read { state in
      let isNewestFirst = order == .newestFirst
      func isBefore(_ left: ListPosition, _ right: ListPosition) -> Bool {
        isNewestFirst ? right.isBefore(left) : left.isBefore(right)
      }
      let (from, until) = (filter.from?.milliseconds, filter.until?.milliseconds)
      let rows = state.notifications.lazy
        .filter { $0.record.hub == hub && (isNewestFirst || $0.record.state == .scheduled) }
        .map { row in
          let time = isNewestFirst ? row.record.enqueuedAt : row.record.scheduledFor
          let milliseconds = (time ?? .distantPast).milliseconds
          return (ListPosition(time: milliseconds, number: row.number), row)
        }
        .filter { $0.0.time >= from ?? .min && $0.0.time < until ?? .max }
        .filter { place, _ in after.map { isBefore($0, place) } ?? true }
        .sorted { isBefore($0.0, $1.0) }
      var unsearched = 0
      let (all, next) = listPage(of: rows, limit: limit) { row -> NotificationSummary? in
        let summary = row.summary(hidesText: filter.hidesText)
        guard filter.concerns(summary, row.record.request.expression) else { return nil }
        if filter.finds(summary) { return summary }
        if summary.textState == .off { unsearched += 1 }
        return nil
      }
      var page = NotificationPage(notifications: all, next: next)
      page.unsearched = unsearched
      return page
    }
  }

  package func cancelSchedule(_ id: NotificationID, hub: Hub.ID, at: Date) async throws -> Bool {
    try await write { state in
      guard let row = state.notification(id, hub: hub), row.record.state == .scheduled else {
        return false
      }
      state.notifications.change(row.number) { row in
        row.record.state = .canceled
        row.record.endedAt = at.stored
      }
      return true
    }
  }

  package func abort(_ id: NotificationID, hub: Hub.ID, at: Date) async throws -> AbortVerdict? {
    try await write { state in
      try state.requireHub(hub)
      guard let row = state.notification(id, hub: hub) else { return nil }
      return state.notifications.change(row.number) { $0.abort(at: at.stored) }
    }
  }

  /// The most notifications that one call deletes, or clears.
  private static let clearingLimit = 100

  package func clearNotifications(endedBefore limit: Date) async throws -> Bool {
    try await write { state in
      let due = state.notifications.filter { row in row.record.endedAt.map { $0 < limit } ?? false }
        .prefix(Self.clearingLimit)
      for row in due { state.delete(row) }
      return due.count == Self.clearingLimit
    }
  }

  package func clearTexts(endedBefore limit: Date) async throws -> Bool {
    try await write { state in
      let due = state.notifications.filter { row in
        !row.record.hasClearedText && row.record.endedAt.map { $0 < limit } ?? false
      }.prefix(Self.clearingLimit)
      for row in due {
        state.notifications.change(row.number) { row in
          row.record.request.body = []
          row.record.hasClearedText = true
        }
      }
      return due.count == Self.clearingLimit
    }
  }

  // MARK: Schedules

  package func nextSchedule() async throws -> Date? {
    try await read { state in
      state.notifications.active { $0.record.state == .scheduled }
        .compactMap(\.record.scheduledFor).min()
    }
  }

  package func releaseSchedules(asOf now: Date, limit: Int) async throws -> FoundNotifications {
    let (node, steady) = (livingID, isSettled ? clock.steady() : NotificationRecord.unknownRelease)
    return try await write(ifUnclear: .again) { state in
      let due = state.notifications.active { row in
        row.record.state == .scheduled && row.record.scheduledFor.map { $0 <= now } ?? false
      }.sorted {
        ($0.record.scheduledFor ?? now, $0.number) < ($1.record.scheduledFor ?? now, $1.number)
      }.prefix(max(0, limit))
      return FoundNotifications(
        due.compactMap { row in
          state.notifications.change(row.number) { row in
            row.record.state = .enqueued
            row.record.startedAt = now.stored
            row.record.steadyRelease = steady.stored
            row.acceptance = state.commit - 1
          }
          state.makeWork(row.number, at: node)
          return state.notifications[number: row.number]?.shown()
        })
    }
  }
}

extension ListPosition {
  func isBefore(_ other: ListPosition) -> Bool { (time, number) < (other.time, other.number) }
}

extension NotificationRow {
  fileprivate mutating func abort(at: Date) -> AbortVerdict {
    if record.endedAt != nil {
      return record.abortedAt != nil && record.state == .canceled
        ? .aborted : .finished(record.state)
    }
    record.abortedAt = record.abortedAt ?? at
    guard record.state == .scheduled else { return .aborting }
    record.state = .canceled
    record.endedAt = at
    return .cancelled
  }

  fileprivate func summary(hidesText: Bool) -> NotificationSummary {
    let (now, request) = (record(), record.request)
    var outcomes: [String: Int] = [:]
    for (key, count) in now.counts {
      outcomes[key.outcome.inExtendedTelemetry.name, default: 0] += count
    }
    var summary = NotificationSummary(
      notificationID: now.id.rawValue, state: .init(rawValue: now.state.rawValue),
      kind: .init(
        isScheduled: now.scheduledFor != nil, isDirect: request.isDirect,
        expression: request.expression),
      format: request.format.word, tags: request.tags, enqueueTime: now.enqueuedAt,
      startTime: now.startedAt, endTime: now.endedAt, dueTime: now.scheduledFor,
      outcomes: outcomes)
    summary.read(hidesText || now.hasClearedText ? nil : request.body)
    return summary
  }

  /// As lists of notifications show it; only a claim tells when it was released by the steady clock.
  func shown() -> NotificationRecord {
    var record = record()
    record.steadyRelease = nil
    return record
  }
}

extension SimulatedDatabase.State {
  func notification(_ id: NotificationID, hub: Hub.ID) -> NotificationRow? {
    notificationNumbers[HubKey(hub: hub, id: id)].flatMap { notifications[number: $0] }
  }

  mutating func delete(_ row: NotificationRow) {
    notifications[number: row.number] = nil
    notificationNumbers[HubKey(hub: row.record.hub, id: row.record.id)] = nil
  }

  /// Keeps a notification, or recognises it as a repeat.
  /// - Parameter node: That which begins with a narrow one.
  fileprivate mutating func accept(_ submission: Submission, at node: Int64?) -> Acceptance {
    var record = submission.record
    record.enqueuedAt = record.enqueuedAt.stored
    record.scheduledFor = record.scheduledFor?.stored
    record.startedAt = record.startedAt?.stored
    record.steadyRelease = record.steadyRelease?.stored
    if let claim = submission.idempotency {
      let place = HubKey(hub: record.hub, id: claim.key)
      if let known = keys[place], known.claim.expiresAt > record.enqueuedAt {
        guard known.claim.fingerprint == claim.fingerprint else { return .keyInUse }
        // Its own, when the answer was lost.
        return known.notification == record.id ? .accepted : .repeated(known.notification)
      }
      keys[place] = IdempotencyRow(claim: claim, notification: record.id)
    }
    guard notification(record.id, hub: record.hub) == nil else { return .accepted }
    let isNarrow = record.request.isNarrow
    record.lastRegistration = isNarrow ? nil : registrations.last { $0.hub == record.hub }?.number
    let row = NotificationRow(
      number: sequences.next(\.notification), record: record, targets: submission.targets,
      acceptance: commit - 1)
    notifications.put(row)
    notificationNumbers[HubKey(hub: record.hub, id: record.id)] = row.number
    if record.state != .scheduled, !record.state.isFinal { makeWork(row.number, at: node) }
    if let activity = submission.activity { add(activity) }
    count(hub: record.hub, at: record.enqueuedAt) { $0.accepted += 1 }
    return .accepted
  }

  /// Divides the work of a notification: a narrow one is a part that the accepting node begins
  /// with, any other has parts for all nodes.
  fileprivate mutating func makeWork(_ number: Int64, at node: Int64?) {
    guard let row = notifications[number: number], row.parts.isEmpty else { return }
    let request = row.record.request
    let isNarrow = request.isNarrow || hasFew(request.expression, hub: row.record.hub)
    let parts = isNarrow ? 0...0 : 1...slots + 1
    notifications.change(number) { row in
      row.parts = parts.map { part in
        WorkPart(
          part: part, owner: isNarrow ? node : nil, position: row.record.cursor,
          isRead: row.record.isAudienceRead)
      }
    }
  }

  /// Whether an audience is one page at most, as its plain tags tell; without one, as the hub does.
  private func hasFew(_ expression: TagExpression?, hub: Hub.ID) -> Bool {
    let bounds = expression?.bounds ?? []
    return (bounds.isEmpty ? [nil] : bounds.map(Optional.init)).contains { bound in
      registrations.lazy.filter { $0.hub == hub && bound?.chooses($0) ?? true }
        .prefix(narrowLimit + 1).count <= narrowLimit
    }
  }
}
