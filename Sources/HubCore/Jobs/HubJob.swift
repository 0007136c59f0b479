package import Foundation
package import NotificationHubs

/// An import or export of a hub's registrations, which runs in the background
/// (docs/protocol/rest.md, section 7).
package struct HubJob: Hashable, Sendable {
  package typealias Kind = NotificationHubJob.Kind
  package typealias Status = NotificationHubJob.Status

  /// The progress of a job. Everything up to here is durable in the hub and in the job's working
  /// files; anything beyond it is truncated after a crash and repeated.
  package struct Checkpoint: Hashable, Sendable {
    /// Bytes of the input's working file; `nil` until all of the input has arrived.
    package var inputSize: Int64?
    /// Bytes of the input that are processed.
    package var inputBytes: Int64 = 0
    /// The last registration that was exported.
    package var cursor: RegistrationID = 0
    package var lines: Int64 = 0
    package var failedLines: Int64 = 0
    /// Bytes of the output's working file.
    package var outputBytes: Int64 = 0
    /// Bytes of the working file for failures.
    package var failedBytes: Int64 = 0

    package init() {}
  }

  package let id: String
  package let hub: Hub.ID
  package let kind: Kind
  /// The container for the results; may contain a signature.
  package let outputContainer: String
  /// The file to import; may contain a signature.
  package let importFile: String?
  package let createdAt: Date
  package var updatedAt: Date
  package var status = Status.started
  /// 0 to 100.
  package var progress = 0.0
  /// The reason that it failed.
  package var failure: String?
  /// Paths below the output container, when done.
  package var outputFile: String?
  package var failedFile: String?
  package var checkpoint = Checkpoint()

  package init(
    id: String, hub: Hub.ID, kind: Kind, outputContainer: String, importFile: String?,
    createdAt: Date
  ) {
    self.id = id
    self.hub = hub
    self.kind = kind
    self.outputContainer = outputContainer
    self.importFile = importFile
    self.createdAt = createdAt
    updatedAt = createdAt
  }

  /// Generates an id: ticks of 100 ns left until the year 10000, then a UUID, so that the youngest
  /// comes first in the order of the ids (docs/protocol/rest.md, section 7, recorded).
  package static func newID(at now: Date, random: HubRandom) -> String {
    let ticks = min(max(now.timeIntervalSince1970, 0), 253_402_300_799) * 1e7
    let left = 3_155_378_975_999_999_999 - 621_355_968_000_000_000 - Int64(ticks)
    let digits = String(left)
    return String(repeating: "0", count: max(0, 19 - digits.count)) + digits
      + random.uuid()
  }
}

/// Runs jobs, independently of the requests that submit them.
package protocol JobScheduler: Sendable {
  /// Accepts a stored job; it runs after the earlier jobs of its hub.
  func submit(_ job: HubJob) async
}
