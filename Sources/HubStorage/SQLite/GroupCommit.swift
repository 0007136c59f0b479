import HubCore
import SQLDatabase

/// Work of the writing thread.
typealias WriteJob = Job<WriteSession>

extension WriteSession {
  /// How many pieces of work share a transaction at most.
  static let groupLimit = 512

  /// Does all that was waiting in one transaction; the callers are resumed once it is durable.
  ///
  /// Work that fails before it has written anything fails alone. When a piece of work fails
  /// halfway, or the commit does, everything is undone and each is tried in a transaction of its
  /// own, so that one cannot spoil the others.
  func perform(_ jobs: [WriteJob]) {
    do {
      try performTogether(jobs)
    } catch {
      guard jobs.count > 1 else {
        for job in jobs { refuse(job, error) }
        return
      }
      for job in jobs {
        do { try performTogether([job]) } catch { refuse(job, error) }
      }
    }
  }

  private func refuse(_ job: WriteJob, _ error: any Error) {
    health.writeFailed(error)
    job.fail(StoreError.orRefusal(error))
  }

  /// - Throws: When nothing was written and nobody will be resumed.
  private func performTogether(_ jobs: [WriteJob]) throws {
    try sync.check()
    try begin()
    var group = CommitSync.Group()
    group.callers.reserveCapacity(jobs.count)
    let start = connection.totalChanges
    do {
      for job in jobs {
        let before = connection.totalChanges
        let (mark, keyMark) = (changes.count, keys.changeCount)
        do {
          group.callers.append(CommitSync.Group.Caller(resume: try job.run(self), fail: job.fail))
        } catch {
          guard connection.isInTransaction, connection.totalChanges == before else { throw error }
          changes.removeSubrange(mark...)
          keys.dropChanges(from: keyMark)
          health.writeFailed(error)
          let refusal = StoreError.orRefusal(error)
          group.callers.append(
            CommitSync.Group.Caller(resume: { job.fail(refusal) }, fail: job.fail))
        }
      }
      group.hasWritten = connection.totalChanges != start
      try commit(hasWritten: group.hasWritten)
      if group.hasWritten { group.commit = state.commitNumber }
    } catch {
      rollBack()
      throw error
    }
    sync.confirm(group)
    if group.hasWritten { copier.follow(connection) }
  }
}

extension StoreError {
  /// What a caller of the store sees of an error inside; errors of other kinds, which a caller's
  /// own closure has thrown, pass as they are.
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
    case .inputOutput, .constraint, .unfitValue, .other:
      StoreError.engine(code: error.code, message: error.message)
    }
  }
}
