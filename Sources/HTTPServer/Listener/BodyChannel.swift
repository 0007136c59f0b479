import HTTP2
import Synchronization

/// The channel in which a stream's task passes bytes to the connection's thread: one write at a
/// time, where the writer sleeps until the bytes are taken, and the connection sleeps while there
/// are none.
///
/// The connection is suspended and woken under the lock, so it is woken exactly once, and never
/// after its end.
final class BodyChannel: HTTP2BodySource {
  /// The functions that suspend and wake the connection while there is nothing to send.
  struct Sleeper: @unchecked Sendable {  // used under the lock of the channel
    let sleep: () -> Void
    let wake: () -> Void
  }

  private typealias Writer = CheckedContinuation<HTTPWriteError?, Never>

  private enum End {
    case finished
    case failed(HTTPWriteError?)
  }

  private struct State: @unchecked Sendable {  // guarded by the Mutex around it
    /// The connection's sleeper; `nil` once the connection is done with the reply.
    var sleeper: Sleeper?
    var isSuspended = false
    var pending: [UInt8] = []
    /// The number of bytes in `pending` that the connection has taken.
    var taken = 0
    var writer: Writer?
    /// The monotonic time in nanoseconds after which a waiting writer counts as stalled.
    var writeDeadline = UInt64.max
    var end: End?
    var task: Task<Void, Never>?
  }

  private let state: Mutex<State>
  private let writeDeadline: @Sendable () -> UInt64

  /// - Parameter writeDeadline: The time at which a write that starts now counts as stalled.
  init(_ sleeper: Sleeper, writeDeadline: @escaping @Sendable () -> UInt64) {
    state = Mutex(State(sleeper: sleeper))
    self.writeDeadline = writeDeadline
  }

  // MARK: the task's side

  /// Runs `body` in a separate task.
  func start(_ body: @escaping @Sendable (HTTPBodyWriter) async throws -> Void) {
    let task = Task {
      do {
        try await body(HTTPBodyWriter(channel: self))
        finish(.finished)
      } catch {
        finish(.failed(nil))
      }
    }
    let isOver = state.withLock { state in
      state.task = task
      return state.end != nil
    }
    if isOver { task.cancel() }
  }

  func write(_ bytes: [UInt8]) async throws(HTTPWriteError) {
    guard !bytes.isEmpty else { return }
    let deadline = writeDeadline()
    let failure: HTTPWriteError? = await withCheckedContinuation { continuation in
      let refusal: HTTPWriteError?? = state.withLock { state in
        if let end = state.end {
          if case .failed(let error?) = end { return .some(error) }
          return .some(.clientGone)
        }
        precondition(state.writer == nil, "one write at a time")
        state.pending = bytes
        state.taken = 0
        state.writer = continuation
        state.writeDeadline = deadline
        Self.wake(&state)
        return nil
      }
      if let refusal { continuation.resume(returning: refusal) }
    }
    if let failure { throw failure }
  }

  private func finish(_ end: End) {
    state.withLock { state in
      guard state.end == nil else { return }
      state.end = end
      Self.wake(&state)
    }
  }

  private static func wake(_ state: inout State) {
    guard state.isSuspended, let sleeper = state.sleeper else { return }
    state.isSuspended = false
    sleeper.wake()
  }

  // MARK: the connection's side

  /// Copies pending bytes into `buffer`, or suspends the connection.
  func read(into buffer: UnsafeMutableRawBufferPointer) -> HTTP2BodyPart {
    let (supply, writer) = state.withLock { state -> (HTTP2BodyPart, Writer?) in
      let available = state.pending.count - state.taken
      if available > 0 {
        let count = min(available, buffer.count)
        state.pending.withUnsafeBytes { bytes in
          buffer.copyMemory(
            from: UnsafeRawBufferPointer(rebasing: bytes[state.taken...].prefix(count)))
        }
        state.taken += count
        guard state.taken == state.pending.count else { return (.bytes(count), nil) }
        defer { state.writer = nil }
        state.pending = []
        state.taken = 0
        state.writeDeadline = .max
        return (.bytes(count), state.writer)
      }
      switch state.end {
      case .finished, .failed(.stopping): return (.end, nil)
      case .failed: return (.failed, nil)
      case nil:
        guard let sleeper = state.sleeper else { return (.failed, nil) }
        sleeper.sleep()
        state.isSuspended = true
        return (.later, nil)
      }
    }
    writer?.resume(returning: nil)
    return supply
  }

  /// Whether the connection is suspended, so that libmicrohttpd cannot detect the peer's
  /// disconnect.
  var isIdle: Bool { state.withLock { $0.isSuspended } }

  /// Whether a write has exceeded its time limit.
  func isStalled(at now: UInt64) -> Bool { state.withLock { $0.writeDeadline <= now } }

  /// Ends the stream from outside: the writer gets `error`, and its task is cancelled.
  func fail(_ error: HTTPWriteError) {
    let (writer, task) = state.withLock { state -> (Writer?, Task<Void, Never>?) in
      defer {
        state.writer = nil
        state.task = nil
      }
      if state.end == nil {
        state.end = .failed(error)
        state.pending = []
        state.taken = 0
        state.writeDeadline = .max
        Self.wake(&state)
      }
      return (state.writer, state.task)
    }
    writer?.resume(returning: error)
    task?.cancel()
  }

  /// Called when the connection is done with the reply; it must not be woken afterwards.
  func release() {
    state.withLock { state in
      state.sleeper = nil
      state.isSuspended = false
    }
    fail(.clientGone)
  }
}

/// The writing end of a streamed body, used only by the stream's closure, one write at a time.
package struct HTTPBodyWriter: Sendable {
  private let channel: BodyChannel

  init(channel: BodyChannel) { self.channel = channel }

  /// Sends bytes and returns once the connection has taken all of them, so that a slow reader slows
  /// down its writer instead of filling memory.
  package func write(_ bytes: [UInt8]) async throws(HTTPWriteError) {
    try await channel.write(bytes)
  }

  /// Sends text as UTF-8.
  package func write(_ text: String) async throws(HTTPWriteError) {
    try await channel.write(Array(text.utf8))
  }
}

/// The reason why a stream can no longer be written; in each case the connection is closed.
package enum HTTPWriteError: Error, Equatable {
  /// The client closed the connection.
  case clientGone
  /// The client has not read for longer than `HTTPConfiguration.streamStallTimeout`.
  case stalled
  /// The server is stopping.
  case stopping
}
