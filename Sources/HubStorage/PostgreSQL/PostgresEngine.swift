import HubCore
import SQLDatabase
import Synchronization

/// An open database: threads with a connection each, and their shared state.
///
/// Installations are the most frequent writes of a hub: all that are waiting when one of their
/// threads is free share a transaction. A transaction by itself costs as much as several
/// installations, so a second one begins beside another only when many are waiting or the other one
/// takes long. Other writes are done by other threads, each in a transaction of its own.
final class PostgresEngine: Sendable {
  typealias Options = PostgresHubStore.Options

  let writers: JobQueue<PostgresWork>
  let readers: JobQueue<PostgresWork>
  let batches: JobQueue<InstallationWork>
  let documents: DocumentQueue
  let shared: PostgresShared

  private init(
    writers: JobQueue<PostgresWork>, readers: JobQueue<PostgresWork>,
    batches: JobQueue<InstallationWork>, documents: DocumentQueue, shared: PostgresShared
  ) {
    self.writers = writers
    self.readers = readers
    self.batches = batches
    self.documents = documents
    self.shared = shared
  }

  deinit {
    shared.isClosing.store(true, ordering: .relaxed)
    writers.closeWithoutWaiting()
    readers.closeWithoutWaiting()
    batches.closeWithoutWaiting()
    documents.closeWithoutWaiting()
  }

  static func open(
    address: String, sealing: any SecretSealing, options: Options
  ) async throws -> PostgresEngine {
    let writers = JobQueue<PostgresWork>(limits: options.limits)
    let readers = JobQueue<PostgresWork>(limits: .none)
    let batches = JobQueue<InstallationWork>(
      limits: options.limits, coalescing: options.coalescing)
    let opened = Opened()
    do {
      try await writers.startThread(
        named: "hub store writer 1", batch: 1,
        open: {
          let connection = try PostgresShared.connect(
            to: address, for: .writing, answerLimit: options.answerTime)
          let shared = try PostgresSchema.prepare(
            connection, address: address, sealing: sealing, options: options)
          opened.shared.withLock { $0 = shared }
          return PostgresSession(connection, shared: shared, role: .writing, lane: 0)
        },
        work: { works, session in for work in works { session.perform(work) } },
        end: { $0.connection.close() })
      guard let shared = opened.shared.withLock({ $0 }) else { throw StoreError.closed }
      let writerCount = max(1, options.writers)
      for lane in 1..<max(1, writerCount) where lane < writerCount {
        try await writers.startThread(
          named: "hub store writer \(lane + 1)", batch: 1,
          open: { try PostgresSession(shared: shared, role: .writing, lane: lane) },
          work: { works, session in for work in works { session.perform(work) } },
          end: { $0.connection.close() })
      }
      for lane in 0..<max(1, options.batchWriters) {
        try await batches.startThread(
          named: "hub store batches \(lane + 1)", batch: options.batch,
          open: { try PostgresSession(shared: shared, role: .batches, lane: writerCount + lane) },
          work: { works, session in
            PostgresInstallations(session).perform(works)
            return works.count
          },
          end: { $0.connection.close() })
      }
      for lane in 0..<max(1, options.readers) {
        try await readers.startThread(
          named: "hub store reader \(lane + 1)", batch: 1, isTimed: true,
          open: { try PostgresSession(shared: shared, role: .reading, lane: lane) },
          work: { works, session in for work in works { session.perform(work) } },
          end: { $0.connection.close() })
      }
      return PostgresEngine(
        writers: writers, readers: readers, batches: batches,
        documents: try await .documents(limits: options.limits), shared: shared)
    } catch {
      await readers.close()
      await batches.close()
      await writers.close()
      throw PostgresRefusal.opening(error, address: address)
    }
  }

  /// Carries the results of the first thread to the task that opens the store.
  private final class Opened: Sendable {
    let shared = Mutex<PostgresShared?>(nil)
  }

  func perform<Value: Sendable>(
    _ kind: PostgresWork.Kind, on queue: JobQueue<PostgresWork>, as label: JobLabel = JobLabel(),
    ifUnclear unclear: UnclearCommit<Value>,
    _ body: @escaping @Sendable (PostgresSession) throws -> Value
  ) async throws -> Value {
    do {
      return try await queue.wait(label) { end in
        let done: @Sendable (Value) -> @Sendable () -> Void = { value in { end.succeed(value) } }
        let look: PostgresWork.Look =
          switch unclear {
          case .refuse: .refuse
          case .again: .again
          case .mark: .mark
          case .look(let found): .look { session in try found(session).map(done) }
          }
        return PostgresWork(
          kind: kind, unclear: look, run: { done(try body($0)) }, fail: { end.fail($0) })
      }
    } catch let refusal as JobRefusal {
      throw StoreError(refusal)
    }
  }

  var counts: JobCounts {
    writers.counts + batches.counts + readers.counts + documents.counts
  }

  /// A database that accepts connections but has not replied for two leases is given up: waiting
  /// and new work is refused until a heartbeat succeeds.
  ///
  /// - Throws: When the database hangs. In a process without a heartbeat, silence proves nothing.
  func refuseIfHung() throws {
    guard let heartbeat = shared.heartbeat.withLock({ $0 }), heartbeat.isBeating,
      shared.health.silence > heartbeat.lease * 2
    else { return }
    let error =
      shared.health.fault
      ?? .engine(
        code: 0,
        message: "the database does not answer; look at its server, and try again once it does")
    for work in writers.takeWaiting() + readers.takeWaiting() { work.fail(error) }
    for work in batches.takeWaiting() { work.fail(error) }
    throw error
  }

  func close() async {
    shared.isClosing.store(true, ordering: .relaxed)
    await documents.close()
    await readers.close()
    await batches.close()
    await writers.close()
  }
}

/// A unit of work for a thread with a connection, and the task that waits for it.
final class PostgresWork: QueuedJob, @unchecked Sendable {  // adds constants only
  enum Kind: Sendable {
    /// In a transaction that writes.
    case writing
    /// In a transaction that sees one state of the database.
    case reading
    /// Each statement on its own, outside a transaction.
    case single
  }

  /// As ``UnclearCommit``, with a closure that resumes the waiting task.
  enum Look: Sendable {
    case refuse
    case again
    case mark
    case look(@Sendable (PostgresSession) throws -> (@Sendable () -> Void)?)
  }

  let kind: Kind
  let unclear: Look
  /// Does the work and returns a closure that resumes the waiting task with its result.
  let run: @Sendable (PostgresSession) throws -> @Sendable () -> Void
  let fail: @Sendable (any Error) -> Void

  init(
    kind: Kind, unclear: Look,
    run: @escaping @Sendable (PostgresSession) throws -> @Sendable () -> Void,
    fail: @escaping @Sendable (any Error) -> Void
  ) {
    self.kind = kind
    self.unclear = unclear
    self.run = run
    self.fail = fail
  }
}
