import Dispatch
import SQLDatabase
import Synchronization

/// Does a database's work in the order in which it came, on one queue, all that waits in one
/// transaction: many callers share one wait for the disk. No caller is resumed with success before the
/// commit.
final class DatabaseThread: Sendable {
  /// One piece of work.
  private struct Item: Sendable {
    /// Runs inside a transaction; keeps its own result.
    let run: @Sendable (any SQLConnection) throws -> Void
    /// Told once the transaction has ended: `nil` when it is committed.
    let finish: @Sendable ((any Error)?) -> Void
  }

  private struct Waiting {
    var items: [Item] = []
    var isDraining = false
  }

  /// How many pieces one transaction takes, at most.
  private static let batch = 256
  /// Beyond this callers are refused instead of kept waiting.
  private static let limit = 10_000

  private let queue = DispatchQueue(label: "belfry.backend.database")
  private let waiting = Mutex(Waiting())
  private let connection: Owned

  /// `@unchecked Sendable`: used on `DatabaseThread.queue` alone.
  private final class Owned: @unchecked Sendable {
    let open: @Sendable () throws -> any SQLConnection
    var connection: (any SQLConnection)?

    init(_ open: @escaping @Sendable () throws -> any SQLConnection) { self.open = open }

    func current() throws -> any SQLConnection {
      if let connection { return connection }
      let new = try open()
      connection = new
      return new
    }
  }

  /// - Parameter open: Makes the connection, with its schema up to date; called on the thread, and
  ///   again after the connection has been lost.
  init(open: @escaping @Sendable () throws -> any SQLConnection) throws {
    let connection = Owned(open)
    self.connection = connection
    try queue.sync { _ = try connection.current() }
  }

  /// Runs `work` in a transaction and returns what it returned, once that is committed.
  func run<Value: Sendable>(
    _ work: @escaping @Sendable (any SQLConnection) throws -> Value
  ) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      let result = Mutex<Result<Value, any Error>?>(nil)
      let item = Item(
        run: { connection in
          let outcome = Result { try work(connection) }
          result.withLock { $0 = outcome }
          _ = try outcome.get()
        },
        finish: { failure in
          let outcome = result.withLock { $0 }
          if case .failure(let own)? = outcome {
            continuation.resume(throwing: own)
          } else if let failure {
            continuation.resume(throwing: failure)
          } else if let outcome {
            continuation.resume(with: outcome)
          }
        })
      add(item)
    }
  }

  /// Ends the connection once the work that waits is done.
  func close() async {
    await withCheckedContinuation { continuation in
      queue.async { [self] in
        connection.connection?.close()
        connection.connection = nil
        continuation.resume()
      }
    }
  }

  private func add(_ item: Item) {
    let (isTaken, mustDrain) = waiting.withLock { waiting in
      guard waiting.items.count < Self.limit else { return (false, false) }
      waiting.items.append(item)
      defer { waiting.isDraining = true }
      return (true, !waiting.isDraining)
    }
    guard isTaken else {
      item.finish(
        SQLError(kind: .locked, code: 0, message: "too much work waits for the database"))
      return
    }
    if mustDrain { queue.async { self.drain() } }
  }

  private func drain() {
    while true {
      let items = waiting.withLock { waiting -> [Item] in
        let taken = Array(waiting.items.prefix(Self.batch))
        waiting.items.removeFirst(taken.count)
        if taken.isEmpty { waiting.isDraining = false }
        return taken
      }
      if items.isEmpty { return }
      let failure = commit(items)
      for item in items { item.finish(failure) }
    }
  }

  /// - Returns: Why nothing of it is kept; `nil` when it is committed.
  private func commit(_ items: [Item]) -> (any Error)? {
    do {
      let database = try connection.current()
      try database.writing {
        // Looks and counts hold until the commit: SQLite has one writer, PostgreSQL is asked for it.
        if database.dialect != .sqlite {
          _ = try database.statement("SELECT pg_advisory_xact_lock(1650812518)").step()
        }
        for item in items {
          try database.run("SAVEPOINT item")
          do {
            try item.run(database)
          } catch let error as SQLError where !database.isInTransaction {
            throw error
          } catch {
            // This piece fails alone.
            try database.run("ROLLBACK TO SAVEPOINT item")
          }
          try database.run("RELEASE SAVEPOINT item")
        }
      }
      return nil
    } catch {
      // Whatever the cause, the next transaction starts with a new connection.
      connection.connection?.close()
      connection.connection = nil
      return error
    }
  }
}
