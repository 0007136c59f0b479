package import Foundation
package import HubCore
import NotificationHubs

extension InMemoryHubStore {
  package func notification(_ id: NotificationID, hub: Hub.ID) throws -> NotificationRecord? {
    try check()
    guard let record = entries[id]?.record, record.hub == hub else { return nil }
    return record
  }

  package func unfinishedNotifications() throws -> FoundNotifications {
    try check()
    return FoundNotifications(
      entries.values.map(\.record).filter { !$0.state.isFinal && $0.state != .scheduled }
        .sorted { ($0.enqueuedAt, $0.id.rawValue) < ($1.enqueuedAt, $1.id.rawValue) })
  }

  package func checkpoint(_ checkpoint: Checkpoint) throws {
    _ = try book(checkpoint.hub)
    guard var entry = entries[checkpoint.notification] else { return }
    if entry.record.startedAt == nil {
      entry.record.startedAt = checkpoint.startedAt ?? checkpoint.at
    }
    if let cursor = checkpoint.cursor { entry.record.cursor = cursor }
    if checkpoint.isAudienceRead { entry.record.isAudienceRead = true }
    if let state = checkpoint.state {
      entry.record.state = state
      if state.isFinal { entry.record.endedAt = checkpoint.at }
    }
    entry.record.counts.merge(checkpoint.counts, uniquingKeysWith: +)
    keepOutcomes(of: checkpoint, in: &entry)
    for registration in checkpoint.settledRetries { entry.retries[registration] = nil }
    for retry in checkpoint.retries {
      let answer = retry.answer ?? entry.retries[retry.registration]?.answer
      entry.retries[retry.registration] = Checkpoint.Retry(
        registration: retry.registration, platform: retry.platform, attempts: retry.attempts,
        due: retry.due, answer: answer)
    }
    if entry.record.state.isFinal { entry.retries = [:] }
    for dead in checkpoint.deadHandles {
      entry.removed[dead.registration] = books[checkpoint.hub]?.rows[dead.registration]
    }
    entries[checkpoint.notification] = entry
    for found in checkpoint.environments {
      books[checkpoint.hub]?.rows[found.registration]?.environment = found.environment
    }
    addFeedback(checkpoint)
    for word in checkpoint.deadHandles + checkpoint.replacedHandles {
      condemn(word, hub: checkpoint.hub, at: checkpoint.at)
    }
  }

  package func dueRetries(of lane: LaneKey, asOf now: Date, limit: Int) throws -> [DueRetries] {
    try check()
    let due = entries.values.filter { $0.record.hub == lane.hub }.flatMap { entry in
      entry.retries.values.filter { $0.platform == lane.platform && $0.due <= now }
        .map { (entry: entry, retry: $0) }
    }
    let first = due.sorted {
      ($0.retry.due, $0.retry.registration) < ($1.retry.due, $1.retry.registration)
    }.prefix(limit)
    return Dictionary(grouping: first) { $0.entry.record.id }.values.map { group in
      let record = group[0].entry.record
      return retries(group.map(\.retry), of: record)
    }.sorted { $0.notification.rawValue < $1.notification.rawValue }
  }

  private func retries(_ retries: [Checkpoint.Retry], of record: NotificationRecord) -> DueRetries {
    if record.request.isDirect { return directRetries(retries, of: record) }
    var page = PageBuilder(templates: templates)
    page.page.revision = revision
    var gone: [RegistrationID] = []
    for retry in retries.sorted(by: { $0.registration < $1.registration }) {
      if let row = books[record.hub]?.rows[retry.registration] {
        page.append(row, isDuplicate: false)
      } else {
        gone.append(retry.registration)
      }
    }
    templates = page.templateIDs
    return DueRetries(
      notification: record.id, hub: record.hub, page: page.page,
      attempts: Dictionary(
        retries.map { ($0.registration, $0.attempts) }, uniquingKeysWith: { $1 }),
      gone: gone)
  }

  package func nextRetry(of lane: LaneKey) throws -> Date? { try retryLanes()[lane] }

  package func retryLanes() throws -> [LaneKey: Date] {
    try check()
    var lanes: [LaneKey: Date] = [:]
    for entry in entries.values {
      for retry in entry.retries.values {
        let lane = LaneKey(hub: entry.record.hub, platform: retry.platform)
        lanes[lane] = min(lanes[lane] ?? retry.due, retry.due)
      }
    }
    return lanes
  }

  package func retries(
    of lane: LaneKey, notification: NotificationID, limit: Int
  ) throws -> [DueRetries] {
    _ = try book(lane.hub)
    guard let entry = entries[notification], entry.record.hub == lane.hub else { return [] }
    let found = entry.retries.values.filter { $0.platform == lane.platform }
      .sorted { $0.registration < $1.registration }.prefix(limit)
    return found.isEmpty ? [] : [retries(Array(found), of: entry.record)]
  }

  package func waitingRetries(_ id: NotificationID, hub: Hub.ID) throws -> Int {
    try check()
    return entries[id]?.retries.count ?? 0
  }

  package func failures(
    _ id: NotificationID, hub: Hub.ID, after: RegistrationID, limit: Int
  ) throws -> [Checkpoint.Failure] {
    try check()
    guard let entry = entries[id], entry.record.hub == hub else { return [] }
    let later = entry.failures.values.filter { $0.registration > after }
    return Array(later.sorted { $0.registration < $1.registration }.prefix(limit))
  }
}
