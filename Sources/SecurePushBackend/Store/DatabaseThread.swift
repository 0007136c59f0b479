import SQLDatabase

/// Runs database work in order on one thread, with all pending work in one transaction, so that
/// many callers share one disk sync. No caller is resumed with success before the commit.
final class DatabaseThread: Sendable {
  /// The maximum number of jobs per transaction.
  private static let batch = 256
  /// The maximum number of pending jobs; further callers are refused.
  private static let limit = 10_000

  private let queue: JobQueue<Job<any SQLConnection>>

  /// - Parameter open: Opens a connection with its schema up to date; called on the thread, and
  ///   again after the connection is lost.
  init(open: @escaping @Sendable () throws -> any SQLConnection) async throws {
    var limits = JobLimits.none
    limits.total = Self.limit
    queue = JobQueue(limits: limits)
    try await queue.startThread(
      named: "backend database", batch: Self.batch, open: { try Session(open) },
      work: { jobs, session in session.perform(jobs) }, end: { $0.close() })
  }

  deinit { queue.closeWithoutWaiting() }

  /// Runs `work` in a transaction and returns its result once the transaction is committed.
  func run<Value: Sendable>(
    _ work: @escaping @Sendable (any SQLConnection) throws -> Value
  ) async throws -> Value {
    do { return try await queue.perform(JobLabel(), work) } catch is JobRefusal {
      throw SQLError(
        kind: .locked, code: 0, message: "too much work waits for the database, or it is closed")
    }
  }

  /// Closes the connection once the pending work is done.
  func close() async { await queue.close() }
}

/// The connection, reopened after a failure. Accessed only by the thread.
private final class Session {
  private let open: @Sendable () throws -> any SQLConnection
  private var connection: (any SQLConnection)?

  init(_ open: @escaping @Sendable () throws -> any SQLConnection) throws {
    self.open = open
    connection = try open()
  }

  func close() {
    connection?.close()
    connection = nil
  }

  func perform(_ jobs: [Job<any SQLConnection>]) {
    do {
      try commit(jobs)
      for job in jobs { job.finish() }
    } catch {
      // The transaction is rolled back. Whatever the cause, the next one uses a new connection.
      close()
      for job in jobs { job.fail(error) }
    }
  }

  private func commit(_ jobs: [Job<any SQLConnection>]) throws {
    let database = try connection ?? open()
    connection = database
    try database.writing {
      // Reads must stay valid until the commit: SQLite has a single writer, PostgreSQL needs the
      // lock.
      if database.dialect != .sqlite {
        _ = try database.statement("SELECT pg_advisory_xact_lock(1650812518)").step()
      }
      for job in jobs {
        try database.run("SAVEPOINT item")
        do {
          try job.run(database)
        } catch let error as SQLError where !database.isInTransaction {
          throw error
        } catch {
          // Only this job fails.
          try database.run("ROLLBACK TO SAVEPOINT item")
          job.refuse(error)
        }
        try database.run("RELEASE SAVEPOINT item")
      }
    }
  }
}
