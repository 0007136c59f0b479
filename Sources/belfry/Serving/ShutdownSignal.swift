import Dispatch
import Foundation
import Synchronization

/// SIGTERM and SIGINT as something to wait for. The first asks for an orderly end; the second, for
/// people who press Ctrl-C again, ends the process at once.
final class ShutdownSignal: Sendable {
  private struct State {
    var received: Int32?
    var waiter: CheckedContinuation<Int32, Never>?
  }

  private let state = Mutex(State())
  // Owned by this object for its life, touched by nobody after `init`.
  nonisolated(unsafe) private let sources: [any DispatchSourceSignal]

  /// From here on the signals no longer end the process by themselves.
  init() {
    let numbers = [SIGTERM, SIGINT]
    sources = numbers.map { number in
      signal(number, SIG_IGN)
      return DispatchSource.makeSignalSource(signal: number, queue: .global())
    }
    for (source, number) in zip(sources, numbers) {
      source.setEventHandler { [weak self] in self?.receive(number) }
      source.resume()
    }
  }

  deinit {
    for source in sources { source.cancel() }
  }

  private func receive(_ number: Int32) {
    let (waiter, isSecond) = state.withLock { state in
      defer { state.waiter = nil }
      if state.received != nil { return (state.waiter, true) }
      state.received = number
      return (state.waiter, false)
    }
    if isSecond { exit(128 + number) }
    waiter?.resume(returning: number)
  }

  /// Returns with the first signal, also when it came before; waited for once.
  func wait() async -> Int32 {
    await withCheckedContinuation { continuation in
      let received = state.withLock { state in
        if state.received == nil { state.waiter = continuation }
        return state.received
      }
      if let received { continuation.resume(returning: received) }
    }
  }
}
