import NotificationHubs

/// A value whose changes any number of listeners follow.
final class Broadcast<Value: Hashable & Sendable>: Sendable {
  private struct Contents {
    var latest: Value
    var listeners: [Int: AsyncStream<Value>.Continuation] = [:]
    var next = 0
  }

  private let contents: Locked<Contents>

  init(_ value: Value) { contents = Locked(Contents(latest: value)) }

  var latest: Value { contents.withLock { $0.latest } }

  /// Sends a value, unless it is the latest one.
  func send(_ value: Value) {
    contents.withLock { contents in
      guard contents.latest != value else { return }
      contents.latest = value
      for listener in contents.listeners.values { listener.yield(value) }
    }
  }

  /// The latest value, then each new one.
  func stream() -> AsyncStream<Value> {
    let (stream, continuation) = AsyncStream.makeStream(of: Value.self)
    let id = contents.withLock { contents in
      contents.next += 1
      contents.listeners[contents.next] = continuation
      continuation.yield(contents.latest)
      return contents.next
    }
    continuation.onTermination = { [weak self] _ in
      self?.contents.withLock { $0.listeners[id] = nil }
    }
    return stream
  }
}
