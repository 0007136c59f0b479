import Synchronization

/// Caches the version of hubs, policies and credentials, which every node that changes them raises.
///
/// Asked with every request: changes of this process are visible at once, those of others within
/// ``interval``.
final class DirectoryMark: Sendable {
  private struct State {
    var version: Int?
    var nextLook = ContinuousClock.now
    /// Rises with each change of this process, and invalidates a version that was read before.
    var changes = 0
  }

  private let state = Mutex(State())

  private static let interval = Duration.milliseconds(100)

  /// Reads the version again when next asked.
  func invalidate() {
    state.withLock { state in
      state.version = nil
      state.changes += 1
    }
  }

  /// - Returns: The version, unless it must be read; and the value to pass to
  ///   ``note(_:readAfter:)``.
  func known() -> (version: Int?, changes: Int) {
    state.withLock { ($0.nextLook > .now ? $0.version : nil, $0.changes) }
  }

  func note(_ version: Int, readAfter changes: Int) {
    state.withLock { state in
      guard state.changes == changes else { return }
      state.version = version
      state.nextLook = .now + Self.interval
    }
  }
}
