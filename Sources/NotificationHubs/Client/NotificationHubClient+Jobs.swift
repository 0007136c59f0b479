public import Foundation
import Wire

extension NotificationHubClient {
  /// Starts a job over all registrations of the hub.
  /// - Returns: The job with its id.
  public func submit(_ job: NotificationHubJob) async throws -> NotificationHubJob {
    let reply = try await perform(
      .submitJob, headers: [WireName.contentType: WireName.atomEntry],
      body: Data(job.requestXML.utf8))
    return try reply.read { (body) throws(WireFormatError) in
      try NotificationHubJob.decode(body)
    }
  }

  /// Reads the state of a job.
  ///
  /// - Throws: ``NotificationHubError`` of kind `notFound` if there is no such job.
  public func job(_ jobID: String) async throws -> NotificationHubJob {
    let reply = try await perform(.getJob, jobID)
    return try reply.read { (body) throws(WireFormatError) in
      try NotificationHubJob.decode(body)
    }
  }

  /// Returns the hub's jobs.
  public func jobs() async throws -> [NotificationHubJob] {
    let reply = try await perform(.listJobs)
    return try reply.read { (body) throws(WireFormatError) in
      try NotificationHubJob.decodeFeed(body)
    }
  }

  /// Returns the URL of the container in which the hub stores push service feedback about devices,
  /// access token included; ``PnsFeedback/parse(_:)`` reads its files.
  public func feedbackContainer() async throws -> URL {
    let reply = try await perform(.feedbackContainer)
    let text = String(decoding: reply.body, as: UTF8.self).trimmingBlanks
    guard text.isAbsoluteURI, let url = URL(string: text) else {
      throw NotificationHubError(
        kind: .unexpectedReply, status: reply.status, detail: "the reply is no address",
        trackingID: reply.header(WireName.trackingID))
    }
    return url
  }
}
