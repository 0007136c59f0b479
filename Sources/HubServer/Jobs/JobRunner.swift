import Foundation
package import HubCore
import NotificationHubs

/// Runs the jobs of all hubs, one at a time per hub, separately from requests.
///
/// Progress is checkpointed together with the working files, so that a restart resumes at the last
/// checkpoint; work done after it is recognized and not repeated.
package actor JobRunner: JobScheduler {
  private let service: HubService
  private let configuration: JobConfiguration
  private let report: @Sendable (String) -> Void
  /// Waiting jobs by hub; a hub has an entry while one of its jobs runs.
  private var waiting: [Hub.ID: [HubJob]] = [:]
  private var tasks: [Hub.ID: Task<Void, Never>] = [:]
  /// The ids of jobs that wait here, run, or have run.
  private var known: Set<String> = []
  private var isStopped = false
  private var idle: [CheckedContinuation<Void, Never>] = []

  /// - Parameters:
  ///   - service: The service that reads and writes the registrations.
  ///   - report: Called with a line about each job that ended, free of secrets.
  package init(
    service: HubService, configuration: JobConfiguration,
    report: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    self.service = service
    self.configuration = configuration
    self.report = report
  }

  /// Resumes the jobs that an earlier run has not finished, and removes the files of others.
  /// - Throws: ``StoreError``.
  package func start() async throws {
    let unfinished = try await service.store.unfinishedJobs()
    await JobWorkspace.clear(configuration.workspace, keeping: Set(unfinished.map(\.id)))
    for job in unfinished { submit(job) }
  }

  /// Adopts the jobs of nodes that are gone, until the task is cancelled. Only needed if nodes
  /// share the jobs.
  package func adopt() async {
    while !Task.isCancelled, !isStopped {
      do { try await service.clock.sleep(Self.adoption) } catch { return }
      guard let found = try? await service.store.unfinishedJobs() else { continue }
      for job in found where !known.contains(job.id) { submit(job) }
    }
  }

  /// The interval between checks for orphaned jobs.
  private static let adoption = Duration.seconds(10)

  package func submit(_ job: HubJob) {
    known.insert(job.id)
    guard !isStopped else { return }
    if tasks[job.hub] != nil {
      waiting[job.hub, default: []].append(job)
    } else {
      tasks[job.hub] = Task {
        // The job outlives the request that submitted it.
        await Admission.$current.withValue(nil) { await self.run(job) }
      }
    }
  }

  /// Stops running jobs at their next checkpoint, from which the next start resumes.
  package func stop() async {
    isStopped = true
    waiting = [:]
    let running = Array(tasks.values)
    for task in running { task.cancel() }
    for task in running { await task.value }
  }

  /// Returns when no job runs or waits.
  package func waitUntilIdle() async {
    guard !tasks.isEmpty else { return }
    await withCheckedContinuation { idle.append($0) }
  }

  private func run(_ first: HubJob) async {
    var next: HubJob? = first
    while let job = next, !Task.isCancelled {
      await perform(job)
      var rest = waiting[job.hub] ?? []
      next = rest.isEmpty ? nil : rest.removeFirst()
      waiting[job.hub] = rest.isEmpty ? nil : rest
    }
    tasks[first.hub] = nil
    if tasks.isEmpty {
      for waiter in idle { waiter.resume() }
      idle = []
    }
  }

  /// Runs a job to its end; retries while the store is unavailable.
  private func perform(_ job: HubJob) async {
    var job = job
    var pause = 1
    while !Task.isCancelled {
      do {
        if job.status == .started { try await service.clock.sleep(configuration.startDelay) }
        var run = JobRun(job: job, service: service, configuration: configuration)
        try await run.perform()
        let lines = run.job.checkpoint
        report(
          "job \(job.id) (\(job.kind)) is done: \(lines.lines) lines, \(lines.failedLines) failed")
        return
      } catch is CancellationError {
        return
      } catch let fault as JobFault {
        if await fail(job, because: fault.description) { return }
      } catch StoreError.noHub, StoreError.closed {
        return
      } catch StoreError.leaseLost {
        known.remove(job.id)
        report("job \(job.id): another node has taken it over")
        return
      } catch {
        report("job \(job.id) waits: \(error)")
      }
      // The store or the disk is currently unavailable.
      try? await service.clock.sleep(.seconds(pause))
      pause = min(pause * 2, 60)
      do {
        // Continues from the last checkpoint in the store; the state in memory may be older.
        guard let stored = try await stored(job) else { return }
        job = stored
      } catch {
        return
      }
    }
  }

  /// The job as stored, once the store is available; `nil` if it no longer exists.
  private func stored(_ job: HubJob) async throws -> HubJob? {
    while true {
      do {
        return try await service.store.job(job.id, hub: job.hub)
      } catch StoreError.closed {
        return nil
      } catch {
        try await service.clock.sleep(.seconds(1))
      }
    }
  }

  private func fail(_ job: HubJob, because reason: String) async -> Bool {
    do {
      var job = try await service.store.job(job.id, hub: job.hub) ?? job
      job.status = .failed
      job.failure = reason
      job.updatedAt = service.clock.now()
      try await service.store.updateJob(job)
      await JobWorkspace(configuration.workspace, job: job.id).remove()
      report("job \(job.id) (\(job.kind)) has failed: \(reason)")
      return true
    } catch {
      return false
    }
  }
}
