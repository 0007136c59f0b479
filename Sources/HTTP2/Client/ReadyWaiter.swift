import Synchronization

/// A caller that waits for a connection to be ready: told once, by the first to come.
final class ReadyWaiter: Sendable {
  typealias Outcome = Result<Void, HTTP2ConnectionError>

  private struct State {
    var outcome: Outcome?
    var continuation: CheckedContinuation<Outcome, Never>?
  }

  private let state = Mutex(State())

  /// Waits for the outcome, which may be known already.
  func await(_ continuation: CheckedContinuation<Outcome, Never>) {
    let known = state.withLock { state in
      if state.outcome == nil { state.continuation = continuation }
      return state.outcome
    }
    if let known { continuation.resume(returning: known) }
  }

  /// Tells the outcome; a second call does nothing.
  func resume(_ outcome: Outcome) {
    let continuation = state.withLock { state -> CheckedContinuation<Outcome, Never>? in
      guard state.outcome == nil else { return nil }
      state.outcome = outcome
      return state.continuation.take()
    }
    continuation?.resume(returning: outcome)
  }
}
