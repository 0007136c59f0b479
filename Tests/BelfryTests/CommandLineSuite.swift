import Testing

/// Everything here starts processes, each of which wants a core for a moment; a few at a time, so that the limits of the
/// tests that run beside them hold on a small machine, and that it does not wait for each one that waits.
@Suite(.atMost(3))
enum CommandLineSuite {}

extension Trait where Self == Crowd {
  /// So many cases of the suite, and of those within it, run at a time.
  fileprivate static func atMost(_ limit: Int) -> Crowd { Crowd(room: Room(limit)) }
}

private struct Crowd: SuiteTrait, TestTrait, TestScoping {
  let room: Room
  let isRecursive = true

  func scopeProvider(for test: Test, testCase: Test.Case?) -> Crowd? {
    testCase == nil ? nil : self
  }

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    await room.enter()
    let result: Result<Void, any Error>
    do { result = .success(try await function()) } catch { result = .failure(error) }
    await room.leave()
    try result.get()
  }
}

private actor Room {
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
