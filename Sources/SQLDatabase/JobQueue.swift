import Foundation
import Synchronization

/// A queue of work from many tasks to the threads of a store, fair between callers (``JobRotation``).
/// Work that arrives while a thread is busy becomes its next batch, so that many callers can share
/// one transaction.
package final class JobQueue<Item: QueuedJob>: @unchecked Sendable {
  // `condition` guards all mutable state.
  private let condition = NSCondition()
  private let waiting: JobRotation
  private var lastNumber: UInt64 = 0
  private var counted = JobCounts()
  private var isClosed = false
  private var drained: [@Sendable () -> Void] = []
  /// Number of threads that still take from this queue.
  private var takers = 0
  /// Number of those that wait for work.
  private var idle = 0
  /// The end of the present turn: until then the other threads leave the work to the one that has it;
  /// see ``BatchCoalescing``.
  private var turnEnd: ContinuousClock.Instant?
  /// Number of threads that wait for their turn.
  private var turnWaiters = 0
  private let coalescing: BatchCoalescing?

  /// - Parameters:
  ///   - limits: Limits beyond which work is refused.
  ///   - coalescing: When several threads take work side by side; `nil` for always.
  package init(limits: JobLimits = JobLimits(), coalescing: BatchCoalescing? = nil) {
    waiting = JobRotation(limits: limits)
    self.coalescing = coalescing
  }

  /// - Returns: `false` when the queue is closed or full; the item is dropped.
  package func add(_ item: Item, _ label: JobLabel = JobLabel()) -> Bool {
    if case .success = enqueue(item, label) { true } else { false }
  }

  /// - Returns: The number by which ``drop(_:_:)`` identifies it.
  private func enqueue(_ item: Item, _ label: JobLabel) -> Result<UInt64, JobRefusal> {
    item.label = label
    condition.lock()
    guard !isClosed else {
      condition.unlock()
      return .failure(.closed)
    }
    lastNumber += 1
    let number = lastNumber
    item.number = number
    guard waiting.add(item) else {
      counted.refused[label.hub, default: 0] += 1
      condition.unlock()
      return .failure(.full)
    }
    // A thread that waits for its turn may have overslept the end of another's: the clock may step.
    let isAwaited =
      idle > 0
      || turnWaiters > 0
        && (waiting.count >= coalescing?.enough ?? 0 || turnEnd.map { $0 <= .now } ?? true)
    condition.unlock()
    // After the lock, which the thread that wakes up takes at once.
    if isAwaited { condition.signal() }
    return .success(number)
  }

  /// Removes work whose caller no longer waits.
  /// - Returns: `nil` when a thread has already taken it.
  private func drop(_ number: UInt64, _ label: JobLabel) -> QueuedJob? {
    condition.lock()
    defer { condition.unlock() }
    guard let job = waiting.remove(number, label) else { return nil }
    counted.dropped += 1
    return job
  }

  /// Waits for work and takes as much of it as fits into a group; nothing when the queue is closed
  /// and empty.
  ///
  /// - Parameters:
  ///   - rest: Work that was taken before and not done: it is queued again.
  ///   - charge: The cost beyond its label of work that was taken before.
  ///   - prepare: Called when there is work, before it is taken, with the share of all of it.
  ///   - hasTurn: Whether it is the calling thread's turn.
  private func take(
    _ group: JobGroup, after rest: inout ArraySlice<QueuedJob>,
    charge: (label: JobLabel, excess: Int)?, prepare: ((JobLabel.Share?) -> Void)?,
    hasTurn: inout Bool
  ) -> [QueuedJob] {
    condition.lock()
    defer { condition.unlock() }
    // No signal: this thread takes what waits itself.
    if hasTurn { (hasTurn, turnEnd) = (false, nil) }
    if let charge, charge.excess > 0 { waiting.charge(charge.excess, to: charge.label) }
    if !rest.isEmpty {
      waiting.putBack(rest)
      // From here on the queue alone has it: work that is dropped must end at once.
      rest = []
    }
    while true {
      while waiting.count == 0 && !isClosed {
        idle += 1
        condition.wait()
        idle -= 1
      }
      if let coalescing { awaitTurn(coalescing) }
      if let prepare, waiting.count > 0 {
        let share = waiting.onlyShare
        condition.unlock()
        prepare(share)
        condition.lock()
      }
      let taken = waiting.take(group)
      if let coalescing, turnEnd == nil, !taken.isEmpty {
        turnEnd = .now + coalescing.patience
        hasTurn = true
      }
      // All of it may have been dropped, or taken by another thread, meanwhile.
      if !taken.isEmpty || isClosed { return taken }
    }
  }

  /// Waits until no other thread has its turn, or for one of the exceptions of
  /// ``BatchCoalescing``.
  private func awaitTurn(_ coalescing: BatchCoalescing) {
    turnWaiters += 1
    defer { turnWaiters -= 1 }
    while let turnEnd, waiting.count > 0, waiting.count < coalescing.enough, !isClosed {
      let left = turnEnd - .now
      guard left > .zero else { return }
      // By the wall clock, which may step; `enqueue` looks, too.
      _ = condition.wait(until: Date(timeIntervalSinceNow: left / .seconds(1)))
    }
  }

  /// Removes all waiting work from the queue.
  package func takeWaiting() -> [Item] {
    condition.lock()
    defer { condition.unlock() }
    return Self.items(waiting.take(JobGroup(jobs: .max)))
  }

  /// The same array: all work of this queue was added as an item.
  private static func items(_ jobs: [QueuedJob]) -> [Item] {
    // Arrays of classes share one layout, and a copy would cost as much as the queue itself.
    unsafeBitCast(jobs, to: [Item].self)
  }

  /// Counts of waiting, refused and dropped work.
  package var counts: JobCounts {
    condition.lock()
    defer { condition.unlock() }
    var counts = counted
    counts.waiting = waiting.count
    return counts
  }

  /// Accepts no more work; waiting work is still done. Returns once all threads have left.
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

  /// Starts a thread that creates its context and uses it for all work that it takes.
  ///
  /// - Parameters:
  ///   - batch: Maximum amount of work that the thread takes at a time.
  ///   - prepare: Called when there is work, before it is taken, so that more of it can arrive; with
  ///     the share of all of it, `nil` for several. Not for a queue of several threads.
  ///   - isTimed: Whether work, one unit at a time, is charged by the time it takes where that
  ///     exceeds its label.
  ///   - open: Creates the context, on the new thread; the context never leaves it.
  ///   - work: Does a batch of work, or its first units, and returns their number; the others are
  ///     queued again.
  ///   - end: Closes the context after the last unit of work.
  /// - Throws: What `open` throws; there is no thread then.
  package func startThread<Context>(
    named name: String, batch: JobGroup, prepare: (@Sendable (JobLabel.Share?) -> Void)? = nil,
    isTimed: Bool = false,
    open: @escaping @Sendable () throws -> Context,
    work: @escaping @Sendable ([Item], Context) -> Int,
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
        var rest: ArraySlice<QueuedJob> = []
        var hasTurn = false
        var charge: (label: JobLabel, excess: Int)?
        while case let jobs = self.take(
          batch, after: &rest, charge: charge, prepare: prepare, hasTurn: &hasTurn),
          let label = jobs.first?.label
        {
          let start = isTimed ? ContinuousClock.now : nil
          let done = max(1, work(Self.items(jobs), context))
          rest = done < jobs.count ? jobs[done...] : []
          charge = start.map { (label, label.excess(after: $0.duration(to: .now))) }
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

extension JobQueue {
  /// As ``startThread(named:batch:prepare:open:work:end:)``, for work that always completes its
  /// batch.
  ///
  /// - Parameter batch: Number of units of work that the thread takes at a time.
  package func startThread<Context>(
    named name: String, batch: Int, isTimed: Bool = false,
    open: @escaping @Sendable () throws -> Context,
    work: @escaping @Sendable ([Item], Context) -> Void,
    end: @escaping @Sendable (Context) -> Void
  ) async throws {
    try await startThread(
      named: name, batch: JobGroup(jobs: batch), isTimed: isTimed, open: open,
      work: { items, context in
        work(items, context)
        return items.count
      }, end: end)
  }
}

/// When the threads of a queue take batches side by side.
///
/// Several threads that take whatever waits make many small batches. With turns, one thread at a
/// time takes what waits, so that batches are larger; another one joins when much is waiting, or
/// when the first one's batch takes long.
package struct BatchCoalescing: Sendable {
  /// Number of waiting units that are worth a batch of another thread.
  package let enough: Int
  /// Maximum length of a turn: afterwards the other threads take work too.
  package let patience: Duration

  package init(enough: Int, patience: Duration) {
    self.enough = enough
    self.patience = patience
  }
}

/// The reason that a queue refuses a unit of work.
package enum JobRefusal: Error, Hashable {
  /// So much is waiting for its caller, or for the hub, that it would wait for long.
  case full
  case closed
}

/// The fate of work submitted to a queue.
package struct JobCounts: Hashable, Sendable {
  /// Number of units of work that are waiting now.
  package var waiting = 0
  /// Number of refused units, by the number of their hub.
  package var refused: [Int64: Int] = [:]
  /// Number of units whose caller had left before their turn.
  package var dropped = 0

  package static func + (left: JobCounts, right: JobCounts) -> JobCounts {
    JobCounts(
      waiting: left.waiting + right.waiting,
      refused: left.refused.merging(right.refused, uniquingKeysWith: +),
      dropped: left.dropped + right.dropped)
  }
}

/// The task that waits for a unit of work. It is resumed exactly once: with a result, with an
/// error, or, when the work is released with neither, with ``JobRefusal/closed``.
package final class JobEnd<Value: Sendable>: Sendable {
  private let continuation: UnsafeContinuation<Value, any Error>
  private let isOver = Atomic(false)

  fileprivate init(_ continuation: UnsafeContinuation<Value, any Error>) {
    self.continuation = continuation
  }

  deinit { fail(JobRefusal.closed) }

  package func succeed(_ value: Value) { if ends { continuation.resume(returning: value) } }
  package func fail(_ error: any Error) { if ends { continuation.resume(throwing: error) } }

  /// Whether this call is the first one.
  private var ends: Bool { !isOver.exchange(true, ordering: .acquiringAndReleasing) }
}

/// The number by which a queue identifies a unit of work; 0 until it is queued.
private final class JobNumber: Sendable {
  let value = Atomic<UInt64>(0)
}

/// A unit of blocking work for a thread of the store.
open class Job<Context>: QueuedJob, @unchecked Sendable {  // adds no state
  /// Does the work and keeps its result for ``finish()``. The writer may call it a second time
  /// after it has rolled the first back; only the last result is used.
  open func run(_ context: Context) throws {
    // Impossible: nobody makes an instance of this class itself.
    preconditionFailure("a subclass has the work")
  }
  /// Keeps an error in place of a result.
  open func refuse(_ error: any Error) {}
  /// Resumes the task that waits for the work, if any, with what was kept.
  open func finish() {}
  /// Resumes it with an error at once.
  open func fail(_ error: any Error) {}
}

/// Work that a task waits for.
open class WaitedJob<Context, Value: Sendable>: Job<Context>, @unchecked Sendable {
  // `result` belongs to the thread that has taken the job, and is handed on with it.
  private let body: @Sendable (Context) throws -> Value
  private let end: JobEnd<Value>
  private var result: Result<Value, any Error>?

  package init(_ end: JobEnd<Value>, _ body: @escaping @Sendable (Context) throws -> Value) {
    self.end = end
    self.body = body
  }

  override open func run(_ context: Context) throws { succeed(try body(context)) }
  /// Keeps the result of work that was done in another way.
  package final func succeed(_ value: Value) { result = .success(value) }
  override open func refuse(_ error: any Error) { result = .failure(error) }
  override open func finish() {
    switch result {
    case .success(let value): end.succeed(value)
    case .failure(let error): end.fail(error)
    case nil: break
    }
  }
  override open func fail(_ error: any Error) { end.fail(error) }
}

extension JobQueue {
  /// Waits until a unit of work has ended. When the calling task is cancelled, work of a caller
  /// that has not begun is dropped.
  ///
  /// - Parameter make: Makes the work, which reports its end.
  /// - Throws: ``JobRefusal`` when the queue does not take it, `CancellationError`, and what the
  ///   work ends with.
  package func wait<Value: Sendable>(
    _ label: JobLabel, for make: @Sendable (JobEnd<Value>) -> Item
  ) async throws -> Value {
    guard label.caller != nil else {
      return try await withUnsafeThrowingContinuation { continuation in
        let end = JobEnd(continuation)
        if case .failure(let refusal) = enqueue(make(end), label) { end.fail(refusal) }
      }
    }
    let number = JobNumber()
    do {
      return try await withTaskCancellationHandler {
        try await withUnsafeThrowingContinuation { continuation in
          let end = JobEnd(continuation)
          switch enqueue(make(end), label) {
          case .success(let given):
            number.value.store(given, ordering: .sequentiallyConsistent)
            // The caller may have left before the work was queued and could be dropped.
            if Task.isCancelled { _ = drop(given, label) }
          case .failure(let refusal): end.fail(refusal)
          }
        }
      } onCancel: {
        _ = drop(number.value.load(ordering: .sequentiallyConsistent), label)
      }
    } catch JobRefusal.closed where Task.isCancelled {
      // It was released because it was dropped.
      throw CancellationError()
    }
  }

  /// Hands `body` to a thread and waits for its result, as ``wait(_:for:)``.
  package func perform<Context, Value: Sendable>(
    _ label: JobLabel = JobLabel(), _ body: @escaping @Sendable (Context) throws -> Value
  ) async throws -> Value where Item == Job<Context> {
    try await wait(label) { WaitedJob($0, body) }
  }
}
