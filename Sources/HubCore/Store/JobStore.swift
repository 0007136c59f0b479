package import Foundation

/// Jobs: imports and exports of registrations.
package protocol JobStore: Sendable {
  /// Stores a new job durably. Finished jobs of the hub that ended before `limit` are deleted.
  func addJob(_ job: HubJob, forgetting limit: Date) async throws
  /// Replaces an existing job, except for its request.
  func updateJob(_ job: HubJob) async throws
  func job(_ id: String, hub: Hub.ID) async throws -> HubJob?
  /// The jobs of a hub, the youngest first.
  func jobs(hub: Hub.ID) async throws -> [HubJob]
  /// The jobs of all hubs that are not finished, the oldest first.
  func unfinishedJobs() async throws -> [HubJob]
}
