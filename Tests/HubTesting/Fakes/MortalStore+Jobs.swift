package import Foundation
package import HubCore

extension MortalStore {
  package func addJob(_ job: HubJob, forgetting limit: Date) async throws {
    try await ask { try await $0.addJob(job, forgetting: limit) }
  }
  package func updateJob(_ job: HubJob) async throws {
    try await ask { try await $0.updateJob(job) }
  }
  package func job(_ id: String, hub: Hub.ID) async throws -> HubJob? {
    try await ask { try await $0.job(id, hub: hub) }
  }
  package func jobs(hub: Hub.ID) async throws -> [HubJob] {
    try await ask { try await $0.jobs(hub: hub) }
  }
  package func unfinishedJobs() async throws -> [HubJob] {
    try await ask { try await $0.unfinishedJobs() }
  }
  package func feedbackHours(hub: Hub.ID) async throws -> [FeedbackHour] {
    try await ask { try await $0.feedbackHours(hub: hub) }
  }
  package func feedback(
    hub: Hub.ID, hour: Int64, after: Int64, limit: Int
  ) async throws -> [HandleFeedback] {
    try await ask { try await $0.feedback(hub: hub, hour: hour, after: after, limit: limit) }
  }
}
