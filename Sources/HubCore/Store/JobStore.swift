package import Foundation

/// Jobs: imports and exports of registrations.
package protocol JobStore: Sendable {
  /// Keeps a new job; from here on it survives anything. Finished jobs of the hub that ended before
  /// `limit` go.
  func addJob(_ job: HubJob, forgetting limit: Date) async throws
  /// Replaces a job that exists; what it was asked to do stays.
  func updateJob(_ job: HubJob) async throws
  func job(_ id: String, hub: Hub.ID) async throws -> HubJob?
  /// The jobs of a hub, the youngest first.
  func jobs(hub: Hub.ID) async throws -> [HubJob]
  /// The jobs of all hubs that are not finished, the oldest first.
  func unfinishedJobs() async throws -> [HubJob]
}
