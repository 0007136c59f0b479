import HubCore
import SQLDatabase

/// Work of the writing thread.
typealias WriteJob = Job<WriteSession>

extension WriteSession {
  /// Does all waiting work in one transaction, within a time limit; the callers are resumed once it
  /// is durable.
  ///
  /// Work that fails before it has written anything fails alone. Neighbouring installations that
  /// nothing can refuse are written together. When a unit of work fails halfway, or the commit does,
  /// everything is rolled back and each is tried in a transaction of its own, so that one cannot fail
  /// the others.
  ///
  /// - Parameter limit: The time after which no further unit of work begins; installations written
  ///   together begin as one.
  /// - Returns: The number of units done, at least one.
  func perform(_ jobs: [WriteJob], for limit: Duration) -> Int {
    var begun = 0
    do {
      try performTogether(jobs[...], for: limit, begun: &begun)
    } catch {
      let tried = jobs.prefix(max(1, begun))
      guard tried.count > 1 else {
        for job in tried { refuse(job, error) }
        return tried.count
      }
      for index in tried.indices {
        var one = 0
        do { try performTogether([jobs[index]], for: limit, begun: &one) } catch {
          refuse(jobs[index], error)
        }
      }
      return tried.count
    }
    return begun
  }

  private func refuse(_ job: WriteJob, _ error: any Error) {
    health.writeFailed(error)
    job.fail(StoreError.orRefusal(error))
  }

  /// - Throws: When nothing was written, and no caller will be resumed.
  private func performTogether(
    _ jobs: ArraySlice<WriteJob>, for limit: Duration, begun: inout Int
  ) throws {
    try sync.check()
    try begin()
    let end = ContinuousClock.now + limit
    let group = CommitSync.Group()
    let start = connection.totalChanges
    do {
      while begun < jobs.count, begun == 0 || ContinuousClock.now < end {
        let job = jobs[jobs.startIndex + begun]
        let together = try leadingInstallations(of: jobs.dropFirst(begun))
        begun += max(1, together.count)
        let before = connection.totalChanges
        let (mark, keyMark) = (changes.count, keys.changeCount)
        do {
          if together.count > 1 {
            try InstallationWriter(self).put(together.map(\.prepared))
            for job in together { job.succeed(()) }
          } else {
            try job.run(self)
          }
        } catch {
          guard together.count <= 1, connection.isInTransaction,
            connection.totalChanges == before
          else { throw error }
          changes.removeSubrange(mark...)
          keys.dropChanges(from: keyMark)
          health.writeFailed(error)
          job.refuse(StoreError.orRefusal(error))
        }
      }
      group.hasWritten = connection.totalChanges != start
      try commit(hasWritten: group.hasWritten)
      if group.hasWritten { group.commit = state.commitNumber }
    } catch {
      rollBack()
      throw error
    }
    // A copy without the rest, which is queued again, and ends when the queue lets go of it.
    group.jobs = begun == jobs.count ? jobs : ArraySlice(Array(jobs.prefix(begun)))
    sync.confirm(group)
    if group.hasWritten { copier.follow(connection) }
  }

  /// Limits of what is written together, because the clock is not looked at meanwhile.
  private static let togetherLimit = (installations: 32, registrations: 128, tags: 1_024)

  /// The installations with which some work begins that can be written together: of different devices,
  /// of hubs that exist, and none that could be refused.
  private func leadingInstallations(
    of jobs: ArraySlice<WriteJob>
  ) throws -> [InstallationJob] {
    let vocabulary = VocabularyWriter(self)
    var found: [InstallationJob] = []
    var (registrations, tags, templates) = (0, 0, 0)
    for job in jobs.prefix(Self.togetherLimit.installations) {
      guard let job = job as? InstallationJob,
        !found.contains(where: { $0.prepared.key == job.prepared.key })
      else { break }
      let prepared = job.prepared
      registrations += prepared.registrations.count
      tags += prepared.tagCount
      templates += prepared.document.templates.count
      guard registrations <= Self.togetherLimit.registrations, tags <= Self.togetherLimit.tags,
        try hasHub(prepared.hub),
        try vocabulary.hasRoom(tags: tags, templates: templates, hub: prepared.hub)
          || vocabulary.bringsNothingNew(prepared)
      else { break }
      found.append(job)
    }
    return found
  }
}

extension StoreError {
  /// Converts an internal error to the one that a caller of the store sees; errors of other kinds,
  /// which a caller's own closure has thrown, are returned unchanged.
  package static func orRefusal(_ error: any Error) -> any Error {
    guard let error = error as? SQLError else { return error }
    return switch error.kind {
    case .full: StoreError.diskFull
    case .locked, .conflict: StoreError.locked
    case .corrupt: StoreError.corrupt(error.message)
    case .notADatabase: StoreError.corrupt("it is not a database of Belfry")
    case .readOnly: StoreError.cannotOpen("it is read-only")
    case .cannotOpen, .notAllowed: StoreError.cannotOpen(error.message)
    case .newerSchema(let found, let known): StoreError.newerSchema(found: found, known: known)
    case .inputOutput, .constraint, .unfitValue, .lostSnapshot, .other:
      StoreError.engine(code: error.code, message: error.message)
    }
  }
}
