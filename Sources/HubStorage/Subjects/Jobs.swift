package import Foundation
package import HubCore
import NotificationHubs
import SQLDatabase

/// Jobs. Their URIs are sealed, because they may contain a signature for a file elsewhere.
extension SubjectStore {
  package func addJob(_ job: HubJob, forgetting limit: Date) async throws {
    try await writing(#function) { session in
      try session.requireHub(job.hub)
      try session.insert(job, forgetting: limit)
    }
  }

  package func updateJob(_ job: HubJob) async throws {
    try await writing(#function) { try $0.update(job) }
  }

  package func job(_ id: String, hub: Hub.ID) async throws -> HubJob? {
    try await reading(#function) {
      try $0.jobs("WHERE hub = ?1 AND public_id = ?2", hub, id).first
    }
  }

  package func jobs(hub: Hub.ID) async throws -> [HubJob] {
    try await reading(#function) { try $0.jobs("WHERE hub = ?1 ORDER BY public_id", hub) }
  }

  package func unfinishedJobs() async throws -> [HubJob] {
    try await reading(#function) { try $0.jobs("WHERE ended_at IS NULL ORDER BY created_at") }
  }
}

extension SubjectReading {
  /// - Parameter condition: The SQL condition, with its order.
  func jobs(_ condition: String, _ values: any SQLValue...) throws -> [HubJob] {
    let row = try sql.statement("SELECT \(HubJob.columns) FROM job \(condition)", values: values)
    var jobs: [HubJob] = []
    while try row.step() { jobs.append(try HubJob(row, sealing: sealing)) }
    return jobs
  }
}

extension SubjectWriting {
  func insert(_ job: HubJob, forgetting limit: Date) throws {
    try sql.change(
      "DELETE FROM job WHERE hub = ?1 AND ended_at < ?2", job.hub, limit.milliseconds)
    var uris = ByteWriter()
    uris.write(job.outputContainer)
    uris.write(job.importFile)
    let sealed = try seal(uris.bytes, context: HubJob.context(job.id, hub: job.hub))
    try sql.change(
      """
      INSERT INTO job (hub, public_id, kind, uris, status, progress, results, position,
        created_at, updated_at, ended_at)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
      """, job.hub, job.id, job.kind.rawValue, sealed, job.status.rawValue, job.progress,
      job.results, job.checkpoint.bytes, job.createdAt.milliseconds, job.updatedAt.milliseconds,
      job.endedAt)
  }

  func update(_ job: HubJob) throws {
    try sql.change(
      """
      UPDATE job SET status = ?3, progress = ?4, results = ?5, position = ?6, updated_at = ?7,
        ended_at = ?8
      WHERE hub = ?1 AND public_id = ?2
      """, job.hub, job.id, job.status.rawValue, job.progress, job.results,
      job.checkpoint.bytes, job.updatedAt.milliseconds, job.endedAt)
  }
}

extension HubJob {
  fileprivate static let columns =
    "hub, public_id, kind, uris, status, progress, results, position, created_at, updated_at"

  static func context(_ id: String, hub: Hub.ID) -> String { "job/\(hub)/\(id)" }

  fileprivate init(_ row: borrowing Statement, sealing: any SecretSealing) throws {
    let hub = row.integer(0)
    let id = row.text(1)
    var uris = ByteReader(
      try sealing.opened(row.bytes(3), context: Self.context(id, hub: hub)))
    self.init(
      id: id, hub: hub, kind: Kind(rawValue: row.text(2)), outputContainer: try uris.text(),
      importFile: try uris.optionalText(), createdAt: Date(milliseconds: row.integer(8)))
    status = Status(rawValue: row.text(4))
    progress = row.double(5)
    var results = ByteReader(row.bytes(6))
    failure = try results.optionalText()
    outputFile = try results.optionalText()
    failedFile = try results.optionalText()
    checkpoint = try Checkpoint(row.bytes(7))
    updatedAt = Date(milliseconds: row.integer(9))
  }

  /// The column `ended_at`.
  fileprivate var endedAt: Int64? { status.isFinal ? updatedAt.milliseconds : nil }

  fileprivate var results: [UInt8] {
    var writer = ByteWriter()
    writer.write(failure)
    writer.write(outputFile)
    writer.write(failedFile)
    return writer.bytes
  }
}

extension HubJob.Checkpoint {
  fileprivate var bytes: [UInt8] {
    var writer = ByteWriter()
    for number in [
      inputSize ?? -1, inputBytes, cursor, lines, failedLines, outputBytes, failedBytes,
    ] { writer.write(number) }
    return writer.bytes
  }

  fileprivate init(_ bytes: [UInt8]) throws {
    self.init()
    var reader = ByteReader(bytes)
    let size = try reader.signedNumber()
    inputSize = size < 0 ? nil : size
    inputBytes = try reader.signedNumber()
    cursor = try reader.signedNumber()
    lines = try reader.signedNumber()
    failedLines = try reader.signedNumber()
    outputBytes = try reader.signedNumber()
    failedBytes = try reader.signedNumber()
  }
}
