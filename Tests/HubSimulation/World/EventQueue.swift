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

  /// An element of the heap. Moving the event itself would retain and release its closure.
  private struct Entry {
    let at: Int64
    let number: Int
    let slot: Int

    func precedes(_ other: Entry) -> Bool {
      at != other.at ? at < other.at : number < other.number
    }
  }

  private var heap: [Entry] = []
  private var slots: [Event?] = []
  private var freeSlots: [Int] = []

  /// When the first event is due; `nil` when there is none.
  var due: Int64? { heap.first?.at }

  mutating func insert(_ event: Event) {
    let slot = freeSlots.popLast() ?? slots.count
    if slot == slots.count { slots.append(event) } else { slots[slot] = event }
    let entry = Entry(at: event.at, number: event.number, slot: slot)
    var index = heap.count
    heap.append(entry)
    while index > 0 {
      let parent = (index - 1) / 2
      guard entry.precedes(heap[parent]) else { break }
      heap[index] = heap[parent]
      index = parent
    }
    heap[index] = entry
  }

  mutating func removeFirst() -> Event? {
    guard let first = heap.first, let last = heap.popLast() else { return nil }
    defer {
      slots[first.slot] = nil
      freeSlots.append(first.slot)
    }
    guard !heap.isEmpty else { return slots[first.slot] }
    var index = 0
    while true {
      var child = 2 * index + 1
      guard child < heap.count else { break }
      if child + 1 < heap.count, heap[child + 1].precedes(heap[child]) { child += 1 }
      guard heap[child].precedes(last) else { break }
      heap[index] = heap[child]
      index = child
    }
    heap[index] = last
    return slots[first.slot]
  }
}
