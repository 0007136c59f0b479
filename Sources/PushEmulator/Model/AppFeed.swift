/// The events of all devices of one app in the order they happened, for the app's own stream; its
/// ids come from one counter. Holds places only: the events stand in the devices' logs.
struct AppFeed: Sendable {
  struct Entry: Sendable {
    let device: UInt32
    /// The event's number within the device.
    let seq: UInt32
  }

  /// Older entries are forgotten.
  static let capacity = 100_000

  private(set) var entries = RingBuffer<Entry>()
  /// The id of the newest entry; ids count from 1.
  private(set) var lastID = 0
  var reader: EventReader?

  /// - Parameter lastID: Where a feed that was saved goes on.
  init(lastID: Int = 0) { self.lastID = lastID }

  mutating func append(_ entry: Entry) {
    if entries.count == Self.capacity { entries.popFirst() }
    entries.append(entry)
    lastID += 1
    reader?.signal()
  }

  /// Entries after `id` with their ids, at most `limit`.
  func entries(after id: Int, limit: Int) -> [(id: Int, entry: Entry)] {
    let firstID = lastID - entries.count + 1
    let start = max(id + 1, firstID)
    let end = min(lastID, start + limit - 1)
    guard start <= end else { return [] }
    return (start...end).map { ($0, entries[$0 - firstID]) }
  }
}
