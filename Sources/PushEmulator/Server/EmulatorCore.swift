import Synchronization

/// The state behind its one lock. Listener threads and the control API take it for microseconds;
/// nothing is awaited or written to a socket under it.
final class EmulatorCore: Sendable {
  private let state: Mutex<EmulatorState>

  init(_ state: EmulatorState) { self.state = Mutex(state) }

  func withState<Result: Sendable, Failure: Error>(
    _ body: (inout EmulatorState) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try state.withLock { (state: inout EmulatorState) throws(Failure) -> Result in
      try body(&state)
    }
  }
}
