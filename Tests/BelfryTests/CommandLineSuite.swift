import Testing

/// Everything here starts processes, each of which wants a core for a moment; a few at a time, so that the limits of the
/// tests that run beside them hold on a small machine, and that it does not wait for each one that waits.
@Suite(.atMost(3))
enum CommandLineSuite {}

extension Trait where Self == ConcurrencyLimit {
  /// So many cases of the suite, and of those within it, run at a time.
  fileprivate static func atMost(_ limit: Int) -> ConcurrencyLimit {
    ConcurrencyLimit(semaphore: Semaphore(limit))
  }
}

private struct ConcurrencyLimit: SuiteTrait, TestTrait, TestScoping {
  let semaphore: Semaphore
  let isRecursive = true

  func scopeProvider(for test: Test, testCase: Test.Case?) -> ConcurrencyLimit? {
    testCase == nil ? nil : self
  }

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    await semaphore.enter()
    let result: Result<Void, any Error>
    do { result = .success(try await function()) } catch { result = .failure(error) }
    await semaphore.leave()
    try result.get()
  }
}

private actor Semaphore {
  private var free: Int
  private var queue: [CheckedContinuation<Void, Never>] = []

  init(_ free: Int) { self.free = free }

  func enter() async {
    if free > 0 {
      free -= 1
    } else {
      await withCheckedContinuation { queue.append($0) }
    }
  }

  /// Hands the place to the one that has waited for longest.
  func leave() {
    if queue.isEmpty { free += 1 } else { queue.removeFirst().resume() }
  }
}
