import Synchronization

/// The concurrent requests of each caller and hub. A caller that has too many is refused at once:
/// the handlers of requests are limited, and a caller that holds them all makes everybody else
/// wait.
package final class CallsUnderWay: Sendable {
  /// Limits below the listener's own, so that handlers are left for callers with few requests.
  package struct Bounds: Sendable {
    package var caller = 512
    package var hub = 768
    package var all = 960
    /// A caller with fewer requests is never refused.
    package var reserved = 32
  }

  private struct State {
    var all = 0
    var hubs: [Hub.ID: Int] = [:]
    var callers: [Key: Int] = [:]
    var refused: [Hub.ID: Int] = [:]
  }

  private struct Key: Hashable {
    let hub: Hub.ID
    let caller: String
  }

  private let bounds: Bounds
  private let state = Mutex(State())

  package init(_ bounds: Bounds = Bounds()) { self.bounds = bounds }

  /// Number of refused requests, by hub.
  package var refused: [Hub.ID: Int] { state.withLock { $0.refused } }

  /// Runs `work` as a request of this caller: counts it, and sets ``Admission/current``, which
  /// determines its turn in the store.
  ///
  /// - Throws: 429 when the caller has too many; nothing is done in this case.
  package func counting<Value>(
    _ admission: Admission, _ work: () async throws -> Value
  ) async throws -> Value {
    let key = Key(hub: admission.hub.id, caller: admission.caller.name)
    try begin(key)
    defer { end(key) }
    return try await Admission.$current.withValue(admission, operation: work)
  }

  private func begin(_ key: Key) throws(HubFailure) {
    let hasRoom = state.withLock { state in
      let (all, hub) = (state.all, state.hubs[key.hub] ?? 0)
      // Changed in place, because hashing the caller's name twice takes a while.
      guard bounds.admit(&state.callers[key], hub: hub, all: all) else {
        state.refused[key.hub, default: 0] += 1
        return false
      }
      state.all = all + 1
      state.hubs[key.hub] = hub + 1
      return true
    }
    guard hasRoom else {
      throw HubFailure(
        status: 429,
        message: "TooManyRequests: Too many requests of this key or hub are under way; try again "
          + "later", retryAfter: 1)
    }
  }

  private func end(_ key: Key) {
    state.withLock { state in
      state.all -= 1
      state.hubs[key.hub].countDown()
      state.callers[key].countDown()
    }
  }
}

extension CallsUnderWay.Bounds {
  /// Counts one more request of a caller if there is room.
  fileprivate func admit(_ own: inout Int?, hub: Int, all: Int) -> Bool {
    let count = own ?? 0
    guard count < reserved || count < caller && hub < self.hub && all < self.all else {
      return false
    }
    own = count + 1
    return true
  }
}

extension Int? {
  /// Subtracts one; a hub or caller without requests is forgotten.
  fileprivate mutating func countDown() {
    if let count = self { self = count > 1 ? count - 1 : nil }
  }
}
