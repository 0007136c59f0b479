import HubCore

/// A piece of blocking work, done on a thread of the store, and the task that waits for it.
struct Job<Context>: Sendable {
  /// Does the work and returns what resumes the waiting task with its result. The writer may call
  /// it a second time after it has rolled the first back; only one of the results is resumed.
  let run: @Sendable (Context) throws -> @Sendable () -> Void
  /// Resumes the waiting task with an error.
  let fail: @Sendable (any Error) -> Void
}

extension JobQueue {
  /// Hands `body` to a thread and waits for its result.
  func perform<Context, Value: Sendable>(
    _ body: @escaping @Sendable (Context) throws -> Value
  ) async throws -> Value where Item == Job<Context> {
    try await withUnsafeThrowingContinuation { continuation in
      let job = Job<Context>(
        run: { context in
          let value = try body(context)
          return { continuation.resume(returning: value) }
        },
        fail: { continuation.resume(throwing: $0) })
      if !add(job) { continuation.resume(throwing: StoreError.closed) }
    }
  }
}
