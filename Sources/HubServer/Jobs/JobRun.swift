import Foundation
import HubCore
import NotificationHubs

/// One job on its way: input fetched, lines done with checkpoints, results published.
struct JobRun {
  var job: HubJob
  let service: HubService
  let configuration: JobConfiguration
  let workspace: JobWorkspace
  let transfer: JobTransfer
  /// The job has run before: a crash may have left a page of lines half done in the hub.
  let isResumed: Bool

  init(job: HubJob, service: HubService, configuration: JobConfiguration) {
    self.job = job
    self.service = service
    self.configuration = configuration
    isResumed = job.status == .running
    workspace = JobWorkspace(configuration.workspace, job: job.id)
    transfer = JobTransfer(configuration: configuration, clock: service.clock)
  }

  /// - Throws: ``JobFault`` when the job cannot succeed; ``StoreError`` when the store cannot answer
  ///   now; `CancellationError`.
  mutating func perform() async throws {
    let id = job.hub
    guard let hub = try await service.store.hubs().first(where: { $0.id == id }) else {
      throw StoreError.noHub
    }
    let folder = "\(configuration.namespace)//\(hub.name)/\(job.id)/"
    // What must not be used is found out before any work is done.
    let input = try job.importFile.map { uri throws(JobFault) in try configuration.input(uri) }
    let output = try configuration.output(job.outputContainer, path: folder + "Output.txt")
    let failed = try configuration.output(job.outputContainer, path: folder + "Failed.txt")
    try workspace.make()
    job.status = .running
    try await checkpoint(job.progress)
    if let input {
      if job.checkpoint.inputSize == nil {
        job.checkpoint.inputSize = try await transfer.fetch(input, to: workspace.input)
        try await checkpoint(0)
      }
      try await importLines(hub)
    } else {
      try await exportRegistrations(hub)
    }
    try await transfer.publish(workspace.output, to: output)
    try await transfer.publish(workspace.failed, to: failed)
    job.outputFile = folder + "Output.txt"
    job.failedFile = folder + "Failed.txt"
    job.status = .completed
    try await checkpoint(100)
    workspace.remove()
  }

  mutating func checkpoint(_ progress: Double) async throws {
    job.progress = progress
    job.updatedAt = service.clock.now()
    try await service.store.updateJob(job)
  }

  private mutating func exportRegistrations(_ hub: Hub) async throws {
    var file = try AppendFile(path: workspace.output, size: job.checkpoint.outputBytes)
    _ = try AppendFile(path: workspace.failed, size: 0)
    let total = try await registrationCount(hub)
    while true {
      try Task.checkCancellation()
      let page = try await service.store.registrations(
        .all, hub: hub.id, asOf: service.clock.now(), after: job.checkpoint.cursor,
        limit: configuration.batch)
      guard let last = page.registrations.last else { return }
      var lines: [UInt8] = []
      for stored in page.registrations {
        lines += Registration(stored).descriptionXML(form: .read).singleLine.utf8
        lines.append(UInt8(ascii: "\n"))
      }
      try file.append(lines)
      try await file.synchronize()
      job.checkpoint.cursor = last.number
      job.checkpoint.lines += Int64(page.registrations.count)
      job.checkpoint.outputBytes = file.size
      try await checkpoint(
        min(99, Double(job.checkpoint.lines) * 100 / Double(max(total, 1))))
      guard page.hasMore else { return }
    }
  }

  /// Roughly how many there are, for the progress.
  private func registrationCount(_ hub: Hub) async throws -> Int {
    let now = service.clock.now()
    var total = try await service.store.count(
      AudienceQuery(hub: hub.id, kind: .template, expression: nil, asOf: now))
    for platform in PushPlatform.allCases {
      total += try await service.store.count(
        AudienceQuery(hub: hub.id, kind: .native(platform), expression: nil, asOf: now))
    }
    return total
  }
}
