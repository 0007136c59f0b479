import Synchronization

/// Something that happens once, and those who wait for it.
final class Signal: Sendable {
  private let state = Mutex((isSet: false, waiters: [CheckedContinuation<Void, Never>]()))

  func set() {
    let waiters = state.withLock { state in
      defer { state = (true, []) }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  func wait() async {
    await withCheckedContinuation { waiter in
      let isSet = state.withLock { state in
        if !state.isSet { state.waiters.append(waiter) }
        return state.isSet
      }
      if isSet { waiter.resume() }
    }
  }
}
