import Foundation
package import NotificationHubs

extension HubService {
  /// Time for which a finished job can be queried, in seconds: 30 days.
  package static let jobLifetime = 30.0 * 86_400

  /// Accepts an import or export of registrations (docs/protocol/rest.md, section 7). When this
  /// returns the job is durable; it runs later, and its outcome shows whether its URIs may be used.
  ///
  /// - Throws: ``HubFailure``: 400 for a body that is not a job, 404 when the hub is gone, 503 when
  ///   the store cannot accept it.
  package func submitJob(hub: Hub, body: [UInt8]) async throws(HubFailure) -> HubJob {
    let wanted: NotificationHubJob
    do {
      wanted = try NotificationHubJob.decodeRequest(body)
    } catch {
      throw HubFailure(status: 400, message: error.description)
    }
    let now = clock.now()
    let job = HubJob(
      id: HubJob.newID(at: now, random: random), hub: hub.id, kind: wanted.kind,
      outputContainer: wanted.outputContainerURI, importFile: wanted.importFileURI,
      createdAt: now)
    try await answering {
      try await store.addJob(job, forgetting: now.addingTimeInterval(-Self.jobLifetime))
    }
    await jobs?.submit(job)
    return job
  }

  /// - Throws: 404 for an id that the hub does not know.
  package func job(hub: Hub, id: String) async throws(HubFailure) -> HubJob {
    guard let job = try await answering({ try await store.job(id, hub: hub.id) }) else {
      throw HubFailure(status: 404, message: "Job not found")
    }
    return job
  }

  /// The jobs of the last 30 days and unfinished ones, the youngest first.
  package func jobs(hub: Hub) async throws(HubFailure) -> [HubJob] {
    try await answering { try await store.jobs(hub: hub.id) }
  }
}

extension NotificationHubJob {
  /// A job in the form that its owner may see.
  package init(_ job: HubJob) {
    self.init(
      kind: job.kind, outputContainerURI: job.outputContainer, importFileURI: job.importFile,
      jobID: job.id, status: job.status, progress: job.progress, failure: job.failure,
      createdAt: job.createdAt, updatedAt: job.updatedAt)
    outputProperties[Self.outputFilePath] = job.outputFile
    outputProperties[Self.failedFilePath] = job.failedFile
  }
}
