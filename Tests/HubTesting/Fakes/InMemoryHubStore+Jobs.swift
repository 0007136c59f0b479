package import Foundation
package import HubCore
import NotificationHubs

extension InMemoryHubStore {
  // MARK: Jobs

  package func addJob(_ job: HubJob, forgetting limit: Date) throws {
    _ = try book(job.hub)
    jobs.removeAll { $0.hub == job.hub && $0.status.isFinal && $0.updatedAt < limit }
    jobs.append(job)
  }

  package func updateJob(_ job: HubJob) throws {
    try check()
    guard let index = jobs.firstIndex(where: { $0.id == job.id && $0.hub == job.hub }) else {
      return
    }
    jobs[index] = job
  }

  package func job(_ id: String, hub: Hub.ID) throws -> HubJob? {
    try check()
    return jobs.first { $0.id == id && $0.hub == hub }
  }

  package func jobs(hub: Hub.ID) throws -> [HubJob] {
    try check()
    return jobs.filter { $0.hub == hub }.sorted { $0.id < $1.id }
  }

  package func unfinishedJobs() throws -> [HubJob] {
    try check()
    return jobs.filter { !$0.status.isFinal }.sorted { $0.createdAt < $1.createdAt }
  }

  // MARK: Feedback

  func addFeedback(_ checkpoint: Checkpoint) {
    guard var book = books[checkpoint.hub] else { return }
    for failure in checkpoint.failures
    where HandleFeedback.outcomes.contains(failure.outcome)
      && !checkpoint.spared.contains(failure.registration)
    {
      if let named = directTarget(failure.registration, of: checkpoint.notification) {
        lastFeedback += 1
        book.feedback.append(
          HandleFeedback(
            number: lastFeedback, at: checkpoint.at, outcome: failure.outcome,
            platform: named.platform, handle: named.handle, registration: nil, installation: nil,
            notification: checkpoint.notification))
        continue
      }
      guard let row = book.rows[failure.registration] else { continue }
      lastFeedback += 1
      book.feedback.append(
        HandleFeedback(
          number: lastFeedback, at: checkpoint.at, outcome: failure.outcome,
          platform: row.draft.platform, handle: row.draft.channel.handle,
          registration: row.publicID ?? "\(row.id)",
          installation: row.installation.isEmpty ? nil : row.installation,
          notification: checkpoint.notification))
    }
    for replacement in checkpoint.replacedHandles {
      guard let row = book.rows[replacement.registration] else { continue }
      lastFeedback += 1
      book.feedback.append(
        HandleFeedback(
          number: lastFeedback, at: checkpoint.at, outcome: .refreshToken,
          platform: row.draft.platform, handle: row.draft.channel.handle,
          registration: row.publicID ?? "\(row.id)",
          installation: row.installation.isEmpty ? nil : row.installation,
          notification: checkpoint.notification, newHandle: replacement.newHandle))
    }
    book.feedback.removeAll {
      Self.hour($0.at) < Self.hour(checkpoint.at) - Int64(HandleFeedback.lifetime / 3600)
    }
    books[checkpoint.hub] = book
  }

  package func feedbackHours(hub: Hub.ID) throws -> [FeedbackHour] {
    try check()
    let groups = Dictionary(grouping: books[hub]?.feedback ?? []) { Self.hour($0.at) }
    return groups.map { hour, all in
      FeedbackHour(hour: hour, count: all.count, modifiedAt: all.map(\.at).max() ?? .distantPast)
    }.sorted { $0.hour < $1.hour }
  }

  package func feedback(
    hub: Hub.ID, hour: Int64, after: Int64, limit: Int
  ) throws -> [HandleFeedback] {
    try check()
    let all = books[hub]?.feedback.filter { Self.hour($0.at) == hour && $0.number > after } ?? []
    return Array(all.prefix(limit))
  }

  private static func hour(_ date: Date) -> Int64 { milliseconds(date) / 3_600_000 }
}
