import NotificationHubs

/// Passes on the first of several values, once. The handler of a service extension is called from
/// two places, and must be called once.
final class Once<Value: Sendable>: Sendable {
  private enum State {
    case waiting
    case value(Value)
    case handler(@Sendable (Value) -> Void)
    case done
  }

  private let state = Locked(State.waiting)

  init() {}

  /// Sets what is called with the value.
  func receive(_ handler: @escaping @Sendable (Value) -> Void) {
    let value: Value? = state.withLock { state in
      guard case .value(let value) = state else {
        state = .handler(handler)
        return nil
      }
      state = .done
      return value
    }
    if let value { handler(value) }
  }

  /// Passes on the value, unless it is not the first one.
  func call(_ value: Value) {
    let handler = state.withLock { state -> (@Sendable (Value) -> Void)? in
      switch state {
      case .waiting:
        state = .value(value)
        return nil
      case .handler(let handler):
        state = .done
        return handler
      case .value, .done: return nil
      }
    }
    handler?(value)
  }
}
