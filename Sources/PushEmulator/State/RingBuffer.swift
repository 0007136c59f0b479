/// A first-in, first-out buffer that grows as needed; adding at the end, taking from the front and
/// reading by index cost the same at any length.
struct RingBuffer<Element> {
  private var slots: [Element?] = []
  private var head = 0
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }
  var first: Element? { isEmpty ? nil : self[0] }
  var last: Element? { isEmpty ? nil : self[count - 1] }

  /// - Precondition: `0 <= index < count`; 0 is the oldest.
  subscript(index: Int) -> Element {
    precondition(index >= 0 && index < count)
    // A slot inside `count` is always filled.
    return slots[(head + index) & (slots.count - 1)].unsafelyUnwrapped
  }

  mutating func append(_ element: Element) {
    if count == slots.count { grow() }
    slots[(head + count) & (slots.count - 1)] = element
    count += 1
  }

  @discardableResult
  mutating func popFirst() -> Element? {
    guard count > 0 else { return nil }
    let element = slots[head]
    slots[head] = nil
    head = (head + 1) & (slots.count - 1)
    count -= 1
    return element
  }

  mutating func removeAll() { self = Self() }

  private mutating func grow() {
    var larger: [Element?] = []
    let capacity = max(1, slots.count * 2)
    larger.reserveCapacity(capacity)
    for index in 0..<count { larger.append(self[index]) }
    larger.append(contentsOf: repeatElement(nil, count: capacity - count))
    (slots, head) = (larger, 0)
  }
}

extension RingBuffer: Sendable where Element: Sendable {}
