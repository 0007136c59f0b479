/// A value whose changes any number of listeners follow.
struct Broadcast<Value: Hashable & Sendable>: Sendable {
  private let listeners: Listeners<Value, Value>

  init(_ value: Value) { listeners = Listeners(value) }

  var latest: Value { listeners.withLock { $0.state } }

  /// Sends a value, unless it is the latest one.
  func send(_ value: Value) {
    listeners.withLock { contents in
      guard contents.state != value else { return }
      contents.state = value
      contents.yield(value)
    }
  }

  /// The latest value, then each new one.
  func stream() -> AsyncStream<Value> { listeners.stream { [$0] } }
}
