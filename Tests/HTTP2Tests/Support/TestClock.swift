import Synchronization

@testable import HTTP2

/// A clock for connections and servers that stands still until a test moves it.
final class TestClock: Sendable {
  private let nanoseconds = Atomic<UInt64>(1_000_000_000_000)
  private let wakes = Mutex<[@Sendable () -> Void]>([])

  /// What a configuration is given.
  var now: @Sendable () -> UInt64 { { self.nanoseconds.load(ordering: .sequentiallyConsistent) } }

  /// Moves the clock and lets everyone who reads it look again.
  func advance(by duration: Duration) {
    nanoseconds.add(duration.nanoseconds, ordering: .sequentiallyConsistent)
    for wake in wakes.withLock({ $0 }) { wake() }
  }

  /// Has a connection look at its clock whenever that is moved.
  func drives(_ connection: HTTP2Connection) {
    wakes.withLock { $0.append { [weak core = connection.core] in core?.pipe?.wake() } }
  }

  /// Has a server look at its clock whenever that is moved.
  func drives(_ server: HTTP2Server) {
    wakes.withLock { $0.append { [weak server] in server?.lookAtClock() } }
  }
}
