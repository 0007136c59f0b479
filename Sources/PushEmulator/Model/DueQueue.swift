/// When which device has something to do on its own: a binary heap, earliest first.
struct DueQueue: Sendable {
  struct Entry: Sendable {
    /// In ms since the Unix epoch.
    let due: Int64
    let device: Int
  }

  private var heap: [Entry] = []

  var earliest: Int64? { heap.first?.due }

  mutating func add(_ entry: Entry) {
    heap.append(entry)
    var child = heap.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard heap[child].due < heap[parent].due else { return }
      heap.swapAt(child, parent)
      child = parent
    }
  }

  /// Takes the earliest entry when it is due at `now`.
  mutating func pop(dueAt now: Int64) -> Entry? {
    guard let first = heap.first, first.due <= now else { return nil }
    let last = heap.removeLast()
    guard !heap.isEmpty else { return first }
    heap[0] = last
    var parent = 0
    while true {
      var smallest = parent
      for child in [2 * parent + 1, 2 * parent + 2]
      where child < heap.count && heap[child].due < heap[smallest].due {
        smallest = child
      }
      guard smallest != parent else { return first }
      heap.swapAt(parent, smallest)
      parent = smallest
    }
  }
}
