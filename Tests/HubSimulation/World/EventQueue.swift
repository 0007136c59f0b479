/// Events in the order of their times, those of one time in the order in which they came: a binary
/// heap.
struct EventQueue {
  struct Event {
    /// True time in nanoseconds.
    let at: Int64
    let number: Int
    let place: ProcessID
    let run: () -> Void
  }

  private var heap: [Event] = []

  var isEmpty: Bool { heap.isEmpty }
  var first: Event? { heap.first }

  private static func precedes(_ one: Event, _ other: Event) -> Bool {
    one.at != other.at ? one.at < other.at : one.number < other.number
  }

  mutating func insert(_ event: Event) {
    heap.append(event)
    var index = heap.count - 1
    while index > 0 {
      let parent = (index - 1) / 2
      guard Self.precedes(event, heap[parent]) else { break }
      heap[index] = heap[parent]
      index = parent
    }
    heap[index] = event
  }

  mutating func removeFirst() -> Event {
    let first = heap[0]
    let last = heap.removeLast()
    guard !heap.isEmpty else { return first }
    var index = 0
    while true {
      var child = 2 * index + 1
      guard child < heap.count else { break }
      if child + 1 < heap.count, Self.precedes(heap[child + 1], heap[child]) { child += 1 }
      guard Self.precedes(heap[child], last) else { break }
      heap[index] = heap[child]
      index = child
    }
    heap[index] = last
    return first
  }
}
