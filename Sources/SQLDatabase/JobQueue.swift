import Foundation

/// Work on its way from many tasks to the threads of a store, in the order in which it came. What
/// has come while a thread was busy is its next batch, so that many callers can share one
/// transaction.
package final class JobQueue<Item: Sendable>: @unchecked Sendable {
  // `condition` guards all that varies here.
  private let condition = NSCondition()
  private var waiting: [Item] = []
  private var isClosed = false
  private var drained: [@Sendable () -> Void] = []
  /// Threads that still take from this queue.
  private var takers = 0
  private let limit: Int

  /// - Parameter limit: Beyond this many pieces of work that wait, more is refused.
  package init(limit: Int = .max) { self.limit = limit }

  /// - Returns: `false` when the queue is closed or full; the item is dropped.
  package func add(_ item: Item) -> Bool {
    condition.lock()
    defer { condition.unlock() }
    guard !isClosed, waiting.count < limit else { return false }
    waiting.append(item)
    condition.signal()
    return true
  }

  /// Waits for work and takes up to `limit` pieces of it; none when the queue is closed and empty.
  ///
  /// - Parameter prepare: Called when there is work, before it is taken.
  private func take(upTo limit: Int, prepare: (() -> Void)? = nil) -> [Item] {
    condition.lock()
    defer { condition.unlock() }
    while waiting.isEmpty && !isClosed { condition.wait() }
    if let prepare, !waiting.isEmpty {
      condition.unlock()
      prepare()
      condition.lock()
    }
    if waiting.count <= limit {
      let all = waiting
      waiting = []
      return all
    }
    let first = Array(waiting.prefix(limit))
    waiting.removeFirst(limit)
    return first
  }

  /// Takes what waits from the threads.
  package func takeWaiting() -> [Item] {
    condition.lock()
    defer { condition.unlock() }
    defer { waiting = [] }
    return waiting
  }

  /// No more work is accepted; what waits is still done. Returns once all threads have left.
  package func close() async {
    await withUnsafeContinuation { continuation in
      if closeAndAwait({ continuation.resume() }) { continuation.resume() }
    }
  }

  /// As ``close()``, without waiting.
  package func closeWithoutWaiting() { _ = closeAndAwait(nil) }

  /// - Returns: `true` when there is no thread to wait for.
  private func closeAndAwait(_ continuation: (@Sendable () -> Void)?) -> Bool {
    condition.lock()
    defer { condition.unlock() }
    isClosed = true
    condition.broadcast()
    if takers == 0 { return true }
    if let continuation { drained.append(continuation) }
    return false
  }

  /// Starts a thread that makes its context there and uses it for all work that it takes.
  ///
  /// - Parameters:
  ///   - batch: How many pieces of work the thread takes at a time.
  ///   - prepare: Called when there is work, before it is taken, so that more of it can come. A
  ///     queue of several threads has none.
  ///   - open: Makes the context, on the new thread; the context never leaves it.
  ///   - work: Does a batch of work.
  ///   - end: Closes the context after the last piece of work.
  /// - Throws: What `open` throws; there is no thread then.
  package func startThread<Context>(
    named name: String, batch: Int, prepare: (@Sendable () -> Void)? = nil,
    open: @escaping @Sendable () throws -> Context,
    work: @escaping @Sendable ([Item], Context) -> Void,
    end: @escaping @Sendable (Context) -> Void
  ) async throws {
    try await withUnsafeThrowingContinuation { (ready: UnsafeContinuation<Void, any Error>) in
      let thread = Thread {
        let context: Context
        do {
          context = try open()
        } catch {
          ready.resume(throwing: error)
          return
        }
        self.enter()
        ready.resume()
        while case let items = self.take(upTo: batch, prepare: prepare), !items.isEmpty {
          work(items, context)
        }
        end(context)
        self.leave()
      }
      thread.name = name
      thread.start()
    }
  }

  private func enter() {
    condition.lock()
    takers += 1
    condition.unlock()
  }

  private func leave() {
    condition.lock()
    takers -= 1
    let waiters = takers == 0 ? drained : []
    if takers == 0 { drained = [] }
    condition.unlock()
    for resume in waiters { resume() }
  }
}

/// A piece of blocking work, done on a thread of the store, and the task that waits for it.
package struct Job<Context>: Sendable {
  /// Does the work and returns what resumes the waiting task with its result. The writer may call
  /// it a second time after it has rolled the first back; only one of the results is resumed.
  package let run: @Sendable (Context) throws -> @Sendable () -> Void
  /// Resumes the waiting task with an error.
  package let fail: @Sendable (any Error) -> Void

  package init(
    run: @escaping @Sendable (Context) throws -> @Sendable () -> Void,
    fail: @escaping @Sendable (any Error) -> Void
  ) {
    self.run = run
    self.fail = fail
  }
}

extension JobQueue {
  /// Hands `body` to a thread and waits for its result.
  ///
  /// - Parameter refusal: What is thrown when the queue does not take it.
  package func perform<Context, Value: Sendable>(
    orThrow refusal: any Error, _ body: @escaping @Sendable (Context) throws -> Value
  ) async throws -> Value where Item == Job<Context> {
    try await withUnsafeThrowingContinuation { continuation in
      let job = Job<Context>(
        run: { context in
          let value = try body(context)
          return { continuation.resume(returning: value) }
        },
        fail: { continuation.resume(throwing: $0) })
      if !add(job) { continuation.resume(throwing: refusal) }
    }
  }
}
