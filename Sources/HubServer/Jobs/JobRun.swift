import Foundation
import HubCore
import NotificationHubs

/// A running job: fetches its input, processes lines with checkpoints, publishes the results.
struct JobRun {
  var job: HubJob
  let service: HubService
  let configuration: JobConfiguration
  let workspace: JobWorkspace
  let transfer: JobTransfer
  /// Whether the job has run before: a crash may have left a page of lines partly applied to the
  /// hub.
  let isResumed: Bool

  init(job: HubJob, service: HubService, configuration: JobConfiguration) {
    self.job = job
    self.service = service
    self.configuration = configuration
    isResumed = job.status == .running
    workspace = JobWorkspace(configuration.workspace, job: job.id)
    transfer = JobTransfer(configuration: configuration, clock: service.clock)
  }

  /// - Throws: ``JobFault`` if the job cannot succeed; ``StoreError`` if the store is unavailable;
  ///   `CancellationError`.
  mutating func perform() async throws {
    let id = job.hub
    guard let hub = try await service.store.hubs().first(where: { $0.id == id }) else {
      throw StoreError.noHub
    }
    let folder = "\(configuration.namespace)//\(hub.name)/\(job.id)/"
    // Forbidden locations are detected before any work is done.
    let (input, output, failed) = try await JobFiles.blocking { [configuration, job] _ in
      (
        try job.importFile.map { uri throws(JobFault) in try configuration.input(uri) },
        try configuration.output(job.outputContainer, path: folder + "Output.txt"),
        try configuration.output(job.outputContainer, path: folder + "Failed.txt")
      )
    }
    let isThere = try await workspace.make()
    if isResumed, !isThere { try startAgain() }
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
    await workspace.remove()
  }

  /// Restarts a job whose node is gone together with its working files.
  private mutating func startAgain() throws {
    guard job.importFile == nil || job.checkpoint.lines == 0 else {
      throw JobFault(
        "the node that did it has ended after \(job.checkpoint.lines) lines; what it has written is "
          + "in the hub, start another job with the lines behind them")
    }
    job.checkpoint = HubJob.Checkpoint()
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
      service.dispatcher.note(page.unreadable, hub: hub.id)
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

  /// The approximate number of registrations, for the progress.
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

/// The four imports. Each line of the file is a registration's description (docs/protocol/rest.md,
/// section 7).
///
/// `Output.txt` gets `number,result,detail` for each line: the line number from 1, then `Created`,
/// `Updated`, `Deleted` or `Failed`, then the registration's id or the reason. `Failed.txt` gets
/// the failed lines unchanged, so that they can be corrected and imported again.
extension JobRun {
  private struct Item {
    let number: Int64
    let line: LineReader.Line
    let registration: Result<Registration, HubFailure>
  }

  private struct Done {
    let item: Item
    let result: Result<(word: String, id: String), HubFailure>
  }

  mutating func importLines(_ hub: Hub) async throws {
    var reader = try LineReader(
      path: workspace.input, offset: job.checkpoint.inputBytes, limit: configuration.maximumLine)
    var output = try AppendFile(path: workspace.output, size: job.checkpoint.outputBytes)
    var failed = try AppendFile(path: workspace.failed, size: job.checkpoint.failedBytes)
    var isRepeat = isResumed
    var line = job.checkpoint.lines
    var next = try item(from: &reader, line: &line)
    while next != nil {
      try Task.checkCancellation()
      var page: [Item] = []
      var ids: Set<String> = []
      var place = reader.offset
      while let item = next, page.count < configuration.batch {
        // Two lines about one registration are processed in sequence.
        if case .success(let registration) = item.registration,
          let id = registration.registrationID?.lowercased(), !ids.insert(id).inserted
        {
          break
        }
        page.append(item)
        place = reader.offset
        job.checkpoint.lines = line
        next = try self.item(from: &reader, line: &line)
      }
      let done = try await perform(page, hub: hub, isRepeat: isRepeat)
      isRepeat = false
      for one in done { try write(one, output: &output, failed: &failed) }
      try await output.synchronize()
      try await failed.synchronize()
      job.checkpoint.inputBytes = place
      job.checkpoint.outputBytes = output.size
      job.checkpoint.failedBytes = failed.size
      let size = Double(max(1, job.checkpoint.inputSize ?? 1))
      try await checkpoint(min(99, Double(place) * 100 / size))
    }
  }

  /// Reads the next line that is not empty.
  private func item(from reader: inout LineReader, line number: inout Int64) throws -> Item? {
    while let line = try reader.next() {
      number += 1
      switch line {
      case .tooLong:
        return Item(
          number: number, line: line,
          registration: .failure(
            HubFailure(
              status: 400,
              message: "The line has more than \(configuration.maximumLine) bytes")))
      case .text(let text):
        if text.isEmpty { continue }
        return Item(number: number, line: line, registration: Self.read(text))
      }
    }
    return nil
  }

  private static func read(_ line: [UInt8]) -> Result<Registration, HubFailure> {
    do {
      return .success(try Registration.decode(line))
    } catch {
      return .failure(HubFailure(status: 400, message: error.message))
    }
  }

  /// Processes a page of lines concurrently, so that the store needs few transactions.
  private func perform(_ page: [Item], hub: Hub, isRepeat: Bool) async throws -> [Done] {
    let run = self
    return try await withThrowingTaskGroup(of: (Int, Done).self) { group in
      for (index, item) in page.enumerated() {
        group.addTask {
          do throws(HubFailure) {
            let registration = try item.registration.get()
            let done = try await run.perform(
              registration, number: item.number, hub: hub, isRepeat: isRepeat)
            return (index, Done(item: item, result: .success(done)))
          } catch {
            // The store may be available later; then the line is processed.
            if error.status >= 500 { throw error }
            return (index, Done(item: item, result: .failure(error)))
          }
        }
      }
      var done: [Done?] = Array(repeating: nil, count: page.count)
      for try await (index, one) in group { done[index] = one }
      return done.compactMap { $0 }
    }
  }

  private func perform(
    _ registration: Registration, number: Int64, hub: Hub, isRepeat: Bool
  ) async throws(HubFailure) -> (word: String, id: String) {
    var new = registration
    new.registrationID = nil
    new.etag = nil
    new.expirationTime = nil
    let id = registration.registrationID
    switch job.kind {
    case .importCreateRegistrations:
      let id = id ?? newID(line: number)
      if let present = try await present(id, hub: hub) {
        guard isRepeat, present.isSame(as: new) else {
          throw HubFailure(status: 409, message: "The registration '\(id)' exists already")
        }
        return ("Created", id)
      }
      _ = try await service.registrations.put(hub: hub, id: id, condition: .none, new)
      return ("Created", id)
    case .importUpdateRegistrations:
      let id = try required(id)
      if isRepeat, let present = try await present(id, hub: hub), present.isSame(as: new) {
        return ("Updated", id)
      }
      let condition = registration.etag.map { ETagCondition.tag($0) } ?? .any
      do throws(HubFailure) {
        _ = try await service.registrations.put(hub: hub, id: id, condition: condition, new)
      } catch {
        throw error == .noRegistration ? Self.missing(id) : error
      }
      return ("Updated", id)
    case .importUpsertRegistrations:
      let wasThere = try await id.asyncMap { id throws(HubFailure) in
        try await present(id, hub: hub) != nil
      }
      let id = id ?? newID(line: number)
      _ = try await service.registrations.put(hub: hub, id: id, condition: .none, new)
      return (wasThere == true ? "Updated" : "Created", id)
    default:
      let id = try required(id)
      do throws(HubFailure) {
        try await service.registrations.delete(hub: hub, id: id, condition: .any)
      } catch {
        guard error == .noRegistration else { throw error }
        if !isRepeat { throw Self.missing(id) }
      }
      return ("Deleted", id)
    }
  }

  private func present(_ id: String, hub: Hub) async throws(HubFailure) -> StoredRegistration? {
    do throws(HubFailure) {
      return try await service.registrations.get(hub: hub, id: id)
    } catch {
      guard error == .noRegistration else { throw error }
      return nil
    }
  }

  private func required(_ id: String?) throws(HubFailure) -> String {
    guard let id else {
      throw HubFailure(status: 400, message: "The line has no RegistrationId")
    }
    return id
  }

  private static func missing(_ id: String) -> HubFailure {
    HubFailure(status: 404, message: "There is no registration '\(id)'")
  }

  /// The id of a registration whose line has none. It is derived from job and line, so that a line
  /// repeated after a crash does not create a second registration.
  private func newID(line: Int64) -> String {
    let ticks = job.id.prefix(19)
    let mark = UInt64(job.id.dropFirst(19).prefix(8), radix: 16) ?? 0
    return "\(ticks)-\(mark << 31 | UInt64(line & 0x7FFF_FFFF))-\(line % 3 + 1)"
  }

  private mutating func write(
    _ done: Done, output: inout AppendFile, failed: inout AppendFile
  ) throws {
    switch done.result {
    case .success(let (word, id)):
      try output.append(Array("\(done.item.number),\(word),\(id)\n".utf8))
    case .failure(let failure):
      job.checkpoint.failedLines += 1
      let reason = failure.description.replacing("\r\n", with: " ").replacing("\n", with: " ")
      try output.append(Array("\(done.item.number),Failed,\(reason)\n".utf8))
      if case .text(let line) = done.item.line {
        try failed.append(line + [UInt8(ascii: "\n")])
      }
    }
  }
}

extension StoredRegistration {
  /// Whether writing the description would change nothing.
  fileprivate func isSame(as wanted: Registration) -> Bool {
    var present = Registration(self)
    present.registrationID = nil
    present.etag = nil
    present.expirationTime = nil
    return present.descriptionXML(form: .request).lowercased()
      == wanted.descriptionXML(form: .request).lowercased()
  }
}

extension Optional where Wrapped: Sendable {
  fileprivate func asyncMap<Value, Failure: Error>(
    _ transform: (Wrapped) async throws(Failure) -> Value
  ) async throws(Failure) -> Value? {
    if let self { try await transform(self) } else { nil }
  }
}
