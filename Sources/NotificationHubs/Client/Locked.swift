import Foundation

/// A value protected by a lock. The standard library's `Mutex` needs iOS 18 and macOS 15, and this
/// package supports older systems (`script/availability`).
///
/// `@unchecked Sendable`: `lock` guards `value`.
package final class Locked<Value: Sendable>: @unchecked Sendable {
  private let lock = NSLock()
  private var value: Value

  package init(_ value: Value) { self.value = value }

  package func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
    lock.lock()
    defer { lock.unlock() }
    return try body(&value)
  }
}

/// Returns the result of a task that several callers wait for. A cancelled caller stops waiting,
/// while the task continues for the others.
///
/// - Throws: `CancellationError` as soon as the caller is cancelled.
package func value<Success: Sendable>(
  of shared: Task<Success, any Error>
) async throws -> Success {
  let waiting = Locked<CheckedContinuation<Success, any Error>?>(nil)
  // Called from several places; the first call resumes the caller.
  @Sendable func end(_ result: Result<Success, any Error>) {
    let continuation = waiting.withLock { waiting in
      defer { waiting = nil }
      return waiting
    }
    continuation?.resume(with: result)
  }
  return try await withTaskCancellationHandler {
    try await withCheckedThrowingContinuation { continuation in
      waiting.withLock { $0 = continuation }
      // A cancellation handler that ran before the line above found no continuation.
      if Task.isCancelled { return end(.failure(CancellationError())) }
      Task { end(await shared.result) }
    }
  } onCancel: {
    end(.failure(CancellationError()))
  }
}
