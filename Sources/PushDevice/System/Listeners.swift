import NotificationHubs

/// Any number of listeners to a stream of elements, and what they listen to.
final class Listeners<State: Sendable, Element: Sendable>: Sendable {
  struct Contents {
    var state: State
    fileprivate var listeners: [Int: AsyncStream<Element>.Continuation] = [:]
    fileprivate var next = 0

    var isEmpty: Bool { listeners.isEmpty }

    func yield(_ element: Element) {
      for listener in listeners.values { listener.yield(element) }
    }
  }

  private let contents: Locked<Contents>

  init(_ state: State) { contents = Locked(Contents(state: state)) }

  func withLock<Result>(_ body: (inout Contents) -> Result) -> Result { contents.withLock(body) }

  /// - Parameter first: Returns the elements with which the stream begins.
  func stream(beginningWith first: (inout State) -> [Element]) -> AsyncStream<Element> {
    let (stream, continuation) = AsyncStream.makeStream(of: Element.self)
    let id = contents.withLock { contents in
      contents.next += 1
      contents.listeners[contents.next] = continuation
      for element in first(&contents.state) { continuation.yield(element) }
      return contents.next
    }
    continuation.onTermination = { [weak self] _ in
      self?.contents.withLock { $0.listeners[id] = nil }
    }
    return stream
  }
}
