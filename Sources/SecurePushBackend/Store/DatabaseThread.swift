import SQLDatabase

/// Does a database's work in the order in which it came, on one thread, all that waits in one
/// transaction: many callers share one wait for the disk. No caller is resumed with success before
/// the commit.
final class DatabaseThread: Sendable {
  /// How many pieces one transaction takes, at most.
  private static let batch = 256
  /// Beyond this callers are refused instead of kept waiting.
  private static let limit = 10_000

  private let queue: JobQueue<Job<any SQLConnection>>

  /// - Parameter open: Makes the connection, with its schema up to date; called on the thread, and
  ///   again after the connection has been lost.
  init(open: @escaping @Sendable () throws -> any SQLConnection) async throws {
    var limits = JobLimits.none
    limits.total = Self.limit
    queue = JobQueue(limits: limits)
    try await queue.startThread(
      named: "backend database", batch: Self.batch, open: { try Session(open) },
      work: { jobs, session in session.perform(jobs) }, end: { $0.close() })
  }

  deinit { queue.closeWithoutWaiting() }

  /// Runs `work` in a transaction and returns what it returned, once that is committed.
  func run<Value: Sendable>(
    _ work: @escaping @Sendable (any SQLConnection) throws -> Value
  ) async throws -> Value {
    do { return try await queue.perform(JobLabel(), work) } catch is JobRefusal {
      throw SQLError(
        kind: .locked, code: 0, message: "too much work waits for the database, or it is closed")
    }
  }

  /// Ends the connection once the work that waits is done.
  func close() async { await queue.close() }
}

/// The connection, or what makes the next one. Only the thread touches it.
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
      for resume in try commit(jobs) { resume() }
    } catch {
      // Nothing of it is kept. Whatever the cause, the next transaction starts with a new
      // connection.
      close()
      for job in jobs { job.fail(error) }
    }
  }

  /// - Returns: What resumes the callers.
  private func commit(_ jobs: [Job<any SQLConnection>]) throws -> [@Sendable () -> Void] {
    let database = try connection ?? open()
    connection = database
    return try database.writing {
      // Looks and counts hold until the commit: SQLite has one writer, PostgreSQL is asked for it.
      if database.dialect != .sqlite {
        _ = try database.statement("SELECT pg_advisory_xact_lock(1650812518)").step()
      }
      return try jobs.map { job in
        try database.run("SAVEPOINT item")
        let resume: @Sendable () -> Void
        do {
          resume = try job.run(database)
        } catch let error as SQLError where !database.isInTransaction {
          throw error
        } catch {
          // This piece fails alone.
          try database.run("ROLLBACK TO SAVEPOINT item")
          resume = { job.fail(error) }
        }
        try database.run("RELEASE SAVEPOINT item")
        return resume
      }
    }
  }
}
